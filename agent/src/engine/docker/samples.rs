//! Images for a registry of the test's own: layers of random bytes, named by what is in them, so that images share
//! those of the same name.

use crate::engine::registry::Registry;
use edgeloom_blobs::Digest;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::report::LayerInventory;

pub(crate) const LAYER_BYTES: usize = 600_000;
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What the registry has.
pub(crate) struct Sample {
    pub(crate) image: ImageRef,
    pub(crate) manifest: Vec<u8>,
    pub(crate) config: Vec<u8>,
    layers: Vec<Layer>,
}

/// A layer, unpacked and as the registry has it.
pub(crate) struct Layer {
    pub(crate) archive: Vec<u8>,
    content: Digest,
    blob: Digest,
    bytes: usize,
}

impl Sample {
    /// Bytes of its layers that the registry sent so far.
    pub(crate) fn sent(&self, registry: &Registry) -> usize {
        self.layers.iter().map(|layer| registry.sent(&layer.blob)).sum()
    }

    /// A layer as the registry has it, the lowest first.
    pub(crate) fn blob(&self, layer: usize) -> Digest {
        self.layers[layer].blob
    }

    /// What a pull of it would fetch of layers, by the law of graph drivers.
    pub(crate) fn missing(&self, held: &LayerInventory) -> usize {
        let has = |list: &[String], digest: &Digest| list.contains(&digest.to_string());
        if has(&held.image_ids, &Digest::of(&self.config)) {
            return 0;
        }
        let mut chain: Option<Digest> = None;
        let mut skips = true;
        let mut missing = 0;
        for layer in &self.layers {
            let below = chain.map(|below| Digest::of(format!("{below} {}", layer.content).as_bytes()));
            let this = below.unwrap_or(layer.content);
            skips &= has(&held.known_digests, &layer.blob) && has(&held.chain_ids, &this);
            missing += if skips { 0 } else { layer.bytes };
            chain = Some(this);
        }
        missing
    }

    /// As `docker save` would write it.
    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        let names: Vec<String> = (0..self.layers.len()).map(|at| format!("{at}.tar")).collect();
        let manifest = serde_json::json!([{ "Config": "config.json", "RepoTags": null, "Layers": names }]);
        append(&mut archive, "config.json", &self.config);
        names.iter().zip(&self.layers).for_each(|(name, layer)| append(&mut archive, name, &layer.archive));
        append(&mut archive, "manifest.json", manifest.to_string().as_bytes());
        archive.into_inner().unwrap()
    }
}

/// An image of these layers. Of layers that were packed another time only the content is the same.
pub(crate) fn sample(registry: &Registry, repository: &str, layers: &[&str], packed: u8) -> Sample {
    let layers: Vec<Layer> = layers.iter().map(|name| layer(registry, name, packed)).collect();
    let contents: Vec<String> = layers.iter().map(|layer| layer.content.to_string()).collect();
    let config = serde_json::json!({
        "architecture": "amd64", "os": "linux", "config": { "Cmd": ["/app"], "Labels": { "of": repository } },
        "rootfs": { "type": "layers", "diff_ids": contents },
    });
    let config = config.to_string().into_bytes();
    let named = |kind: &str, digest: &Digest, size: usize| serde_json::json!({ "mediaType": kind, "digest": digest.to_string(), "size": size });
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": named(CONFIG, &registry.hold(&config), config.len()),
        "layers": layers.iter().map(|layer| named(LAYER, &layer.blob, layer.bytes)).collect::<Vec<_>>(),
    });
    let manifest = manifest.to_string().into_bytes();
    let digest = registry.hold(&manifest).to_string();
    let repository = format!("{}/{repository}", registry.address);
    let image = ImageRef { name: format!("{repository}:1"), repository, digest };
    Sample { image, manifest, config, layers }
}

fn layer(registry: &Registry, name: &str, packed: u8) -> Layer {
    let named = Digest::of(name.as_bytes()).to_string();
    let mut seed = u64::from_str_radix(&named[7..23], 16).unwrap();
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as u8
    };
    let data: Vec<u8> = (0..LAYER_BYTES).map(|_| random()).collect();
    let mut archive = tar::Builder::new(Vec::new());
    append(&mut archive, &format!("data-{name}"), &data);
    let archive = archive.into_inner().unwrap();
    let blob = gzip(&archive, packed);
    let (content, bytes) = (Digest::of(&archive), blob.len());
    Layer { blob: registry.hold(&blob), content, bytes, archive }
}

fn append(archive: &mut tar::Builder<Vec<u8>>, name: &str, data: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, data).unwrap();
}

/// In blocks that are not compressed (RFC 1951, 3.2.4), with `packed` as the time in the header (RFC 1952).
fn gzip(data: &[u8], packed: u8) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, packed, 0, 0, 0, 0, 255];
    for piece in data.chunks(0xffff) {
        let length = piece.len() as u16;
        out.push(0);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(piece);
    }
    out.extend([1, 0, 0, 0xff, 0xff]);
    out.extend(crc32fast::hash(data).to_le_bytes());
    out.extend((data.len() as u32).to_le_bytes());
    out
}
