//! Which bytes a pull fetches on a node, from what the node holds.
//!
//! Two stores, two laws. A graph driver walks the layers from the bottom: layer i is skipped if the daemon
//! knows its blob digest *and* has the layer of that chain (OCI image specification, "Layer ChainID"); the
//! first miss makes every layer above it download. containerd keeps blobs by digest: exactly the absent ones
//! are fetched. In both a blob is fetched once, the configuration counts, and an image whose configuration
//! is present fetches nothing.

use edgeloom_common::report::{ImageStore, LayerInventory};
use edgeloom_common::units::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

/// One blob of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Blob {
    pub(crate) digest: String,
    pub(crate) size: Bytes,
}

/// One platform's image: configuration and layers, bottom first, with the digests of their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layers {
    pub(crate) config: Blob,
    pub(crate) layers: Vec<Blob>,
    /// Uncompressed digests, one a layer.
    pub(crate) diff_ids: Vec<String>,
}

/// What a node holds, to which planned pulls are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    store: ImageStore,
    images: BTreeSet<String>,
    chains: BTreeSet<String>,
    blobs: BTreeSet<String>,
}

impl Held {
    /// As the node reported it.
    #[must_use]
    pub(crate) fn new(store: ImageStore, inventory: &LayerInventory) -> Self {
        Self {
            store,
            images: inventory.image_ids.iter().cloned().collect(),
            chains: inventory.chain_ids.iter().cloned().collect(),
            blobs: inventory.known_digests.iter().cloned().collect(),
        }
    }

    /// Bytes that a pull of `image` would fetch now.
    #[must_use]
    pub(crate) fn missing(&self, image: &Layers) -> Bytes {
        if self.images.contains(&image.config.digest) {
            return Bytes(0);
        }
        let present = match self.store {
            ImageStore::Containerd => 0,
            ImageStore::Graphdriver => self.present_below(image),
        };
        let mut fetched = BTreeSet::new();
        let above = image.layers[present..]
            .iter()
            .filter(|layer| !self.has_blob(layer) && fetched.insert(layer.digest.as_str()));
        let layers: u64 = above.map(|layer| layer.size.0).sum();
        let config = if self.has_blob(&image.config) { 0 } else { image.config.size.0 };
        Bytes(layers + config)
    }

    /// It is kept as it came.
    fn has_blob(&self, blob: &Blob) -> bool {
        self.store == ImageStore::Containerd && self.blobs.contains(&blob.digest)
    }

    /// Layers from the bottom that a graph driver skips.
    fn present_below(&self, image: &Layers) -> usize {
        let chains = chain_ids(&image.diff_ids);
        image
            .layers
            .iter()
            .zip(chains)
            .take_while(|(layer, chain)| self.blobs.contains(&layer.digest) && self.chains.contains(chain))
            .count()
    }

    /// Counts `image` as pulled.
    pub(crate) fn add(&mut self, image: &Layers) {
        self.images.insert(image.config.digest.clone());
        self.chains.extend(chain_ids(&image.diff_ids));
        self.blobs.extend(image.layers.iter().map(|layer| layer.digest.clone()));
    }
}

/// `chain_1 = diff_1`, `chain_i = sha256(chain_{i-1} + " " + diff_i)`.
#[must_use]
pub(crate) fn chain_ids(diff_ids: &[String]) -> Vec<String> {
    let mut chains: Vec<String> = Vec::with_capacity(diff_ids.len());
    for diff in diff_ids {
        let chain = match chains.last() {
            None => diff.clone(),
            Some(below) => sha256(format!("{below} {diff}").as_bytes()),
        };
        chains.push(chain);
    }
    chains
}

/// `sha256:<hex>` of some bytes.
#[must_use]
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers of the measured table, in bytes: base 6 MB, base2 2.4 MB and small ones above.
    const SIZES: [(&str, u64); 7] = [
        ("base", 6_000_000),
        ("base2", 2_400_000),
        ("L1", 2_100_000),
        ("L2", 2_000_000),
        ("L3", 1_000_000),
        ("L4", 700_000),
        ("L5", 700_000),
    ];
    const CONFIG: u64 = 500;

    fn image(name: &str, layers: &[&str]) -> Layers {
        let size = |layer: &str| SIZES.iter().find(|(known, _)| *known == layer).unwrap().1;
        Layers {
            config: Blob { digest: format!("config-{name}"), size: Bytes(CONFIG) },
            layers: layers
                .iter()
                .map(|layer| Blob { digest: format!("blob-{layer}"), size: Bytes(size(layer)) })
                .collect(),
            diff_ids: layers.iter().map(|layer| format!("diff-{layer}")).collect(),
        }
    }

    fn holding(store: ImageStore, images: &[Layers]) -> Held {
        let mut held = Held::new(store, &LayerInventory::default());
        images.iter().for_each(|image| held.add(image));
        held
    }

    fn abcde() -> [Layers; 5] {
        [
            image("a", &["base", "L1", "L2"]),
            image("b", &["base", "L1", "L3"]),
            image("c", &["base2", "L2", "L4"]),
            image("d", &["base", "L2", "L5"]),
            image("e", &["base2", "base", "L1"]),
        ]
    }

    #[test]
    fn a_graph_driver_fetches_everything_above_the_first_miss() {
        let [a, b, c, d, e] = abcde();
        let held = holding(ImageStore::Graphdriver, std::slice::from_ref(&a));
        assert_eq!(held.missing(&b), Bytes(1_000_000 + CONFIG));
        assert_eq!(held.missing(&c), Bytes(5_100_000 + CONFIG));
        assert_eq!(held.missing(&a), Bytes(0));
        let held = holding(ImageStore::Graphdriver, &[a, c]);
        assert_eq!(held.missing(&d), Bytes(2_700_000 + CONFIG));
        assert_eq!(held.missing(&e), Bytes(8_100_000 + CONFIG));
    }

    #[test]
    fn containerd_fetches_exactly_the_absent_blobs() {
        let [a, _, c, d, e] = abcde();
        let held = holding(ImageStore::Containerd, std::slice::from_ref(&a));
        assert_eq!(held.missing(&c), Bytes(3_100_000 + CONFIG));
        let held = holding(ImageStore::Containerd, &[a, c]);
        assert_eq!(held.missing(&d), Bytes(700_000 + CONFIG));
        assert_eq!(held.missing(&e), Bytes(CONFIG));
    }

    #[test]
    fn an_image_whose_record_is_gone_fetches_no_blob_that_is_left() {
        let [a, ..] = abcde();
        let blobs = a.layers.iter().chain([&a.config]).map(|blob| blob.digest.clone());
        let inventory = LayerInventory { known_digests: blobs.collect(), ..LayerInventory::default() };
        assert_eq!(Held::new(ImageStore::Containerd, &inventory).missing(&a), Bytes(0));
    }

    #[test]
    fn a_loaded_image_has_chains_but_no_known_digests() {
        let [a, b, ..] = abcde();
        let inventory = LayerInventory {
            image_ids: vec![a.config.digest.clone()],
            chain_ids: chain_ids(&a.diff_ids),
            ..LayerInventory::default()
        };
        let held = Held::new(ImageStore::Graphdriver, &inventory);
        assert_eq!(held.missing(&b), Bytes(9_100_000 + CONFIG));
        assert_eq!(held.missing(&a), Bytes(0));
    }

    #[test]
    fn a_removed_image_leaves_digests_without_chains() {
        let [a, b, ..] = abcde();
        let known_digests = a.layers.iter().map(|layer| layer.digest.clone()).collect();
        let inventory = LayerInventory { known_digests, ..LayerInventory::default() };
        let held = Held::new(ImageStore::Graphdriver, &inventory);
        assert_eq!(held.missing(&b), Bytes(9_100_000 + CONFIG));
    }

    #[test]
    fn a_layer_that_comes_thrice_is_fetched_once() {
        let thrice = image("t", &["L1", "L1", "L1"]);
        for store in [ImageStore::Graphdriver, ImageStore::Containerd] {
            assert_eq!(holding(store, &[]).missing(&thrice), Bytes(2_100_000 + CONFIG));
        }
    }

    #[test]
    fn a_chain_is_the_hash_of_two_texts() {
        let chains = chain_ids(&["sha256:a".to_owned(), "sha256:b".to_owned()]);
        assert_eq!(chains, ["sha256:a".to_owned(), sha256(b"sha256:a sha256:b")]);
    }
}
