//! Manifests and configurations as registries serve them, Docker's and OCI's, as far as they matter here.
//!
//! In: bytes of anybody. Out: the layers of a platform, or why there are none. Media types do not decide, since
//! registries mislabel them; fields do. Invariant: what comes out is bounded.

use edgeloom_common::digest::Digest;
use serde::{Deserialize, Serialize};

/// Every manifest type that a node's Docker accepts.
pub(crate) const ACCEPT: &str = "application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

/// Docker's own bound is 127 layers.
const LAYERS_MAX: usize = 512;
/// Platforms of an index that are looked at.
const PLATFORMS_MAX: usize = 64;
/// Longest name of an architecture.
const ARCHITECTURE_MAX: usize = 32;

/// One blob of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Blob {
    pub digest: Digest,
    /// Compressed, as it travels.
    #[serde(rename = "size")]
    pub size_bytes: u64,
}

/// A layer: the blob that travels and the digest of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Layer {
    #[serde(flatten)]
    pub blob: Blob,
    /// Of the uncompressed content.
    pub diff_id: Digest,
}

/// What nodes of one architecture pull; layers bottom first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// As image configurations name it: `amd64`, `arm64`.
    pub architecture: String,
    pub config: Blob,
    pub layers: Vec<Layer>,
}

/// What a manifest's name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Manifest {
    Image(Single),
    /// Digests of the manifests of platforms that Linux runs on, with their names for messages.
    Index(Vec<(Digest, String)>),
}

/// One platform's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Single {
    pub(crate) config: Blob,
    pub(crate) layers: Vec<Blob>,
}

/// Why a document is no manifest or no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("{0}")]
    Json(String),
    #[error("neither an image nor an index with a Linux platform")]
    Neither,
    #[error("a manifest has no configuration")]
    NoConfig,
    #[error("it lists {count} {what}, at most {max} are read")]
    TooMany { what: &'static str, count: usize, max: usize },
    #[error("{0}")]
    Digest(#[from] edgeloom_common::digest::DigestError),
    #[error("manifest and configuration count different layers: {manifest} and {config}")]
    Different { manifest: usize, config: usize },
    #[error("its configuration names no architecture")]
    Architecture,
}

#[derive(Debug, Deserialize)]
struct RawManifest {
    #[serde(default)]
    manifests: Vec<RawEntry>,
    config: Option<RawBlob>,
    #[serde(default)]
    layers: Vec<RawBlob>,
}

#[derive(Debug, Deserialize)]
struct RawEntry {
    digest: String,
    platform: Option<RawPlatform>,
}

#[derive(Debug, Deserialize)]
struct RawPlatform {
    architecture: String,
    os: String,
}

#[derive(Debug, Deserialize)]
struct RawBlob {
    digest: String,
    size: u64,
}

#[derive(Debug, Deserialize)]
struct RawConfig {
    architecture: String,
    rootfs: RawRootFs,
}

#[derive(Debug, Deserialize)]
struct RawRootFs {
    #[serde(default)]
    diff_ids: Vec<String>,
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ManifestError> {
    serde_json::from_slice(body).map_err(|error| ManifestError::Json(error.to_string()))
}

fn bounded(what: &'static str, count: usize, max: usize) -> Result<(), ManifestError> {
    if count > max { Err(ManifestError::TooMany { what, count, max }) } else { Ok(()) }
}

impl TryFrom<&RawBlob> for Blob {
    type Error = ManifestError;
    fn try_from(raw: &RawBlob) -> Result<Self, ManifestError> {
        Ok(Self { digest: raw.digest.parse()?, size_bytes: raw.size })
    }
}

/// Reads a manifest or an index.
pub(crate) fn manifest(body: &[u8]) -> Result<Manifest, ManifestError> {
    let raw: RawManifest = read(body)?;
    if raw.config.is_some() {
        return single(&raw).map(Manifest::Image);
    }
    // Attestations are entries of an unknown platform.
    let runs = |it: &RawPlatform| it.os == "linux" && it.architecture != "unknown";
    let runs = |entry: &&RawEntry| entry.platform.as_ref().is_some_and(runs);
    let entries: Vec<_> = raw.manifests.iter().filter(runs).collect();
    bounded("platforms", entries.len(), PLATFORMS_MAX)?;
    let named = |entry: &&RawEntry| {
        let name = entry.platform.as_ref().map(|it| it.architecture.clone()).unwrap_or_default();
        Ok((entry.digest.parse()?, name))
    };
    let entries = entries.iter().map(named).collect::<Result<Vec<_>, ManifestError>>()?;
    if entries.is_empty() { Err(ManifestError::Neither) } else { Ok(Manifest::Index(entries)) }
}

/// Reads what has to be the manifest of one platform.
pub(crate) fn platform_manifest(body: &[u8]) -> Result<Single, ManifestError> {
    single(&read(body)?)
}

fn single(raw: &RawManifest) -> Result<Single, ManifestError> {
    bounded("layers", raw.layers.len(), LAYERS_MAX)?;
    let config = raw.config.as_ref().ok_or(ManifestError::NoConfig)?.try_into()?;
    let layers = raw.layers.iter().map(Blob::try_from).collect::<Result<_, _>>()?;
    Ok(Single { config, layers })
}

/// Joins manifest and configuration, whose layers have to match one to one.
pub(crate) fn platform(manifest: &Single, config: &[u8]) -> Result<Platform, ManifestError> {
    let raw: RawConfig = read(config)?;
    let (blobs, diff_ids) = (&manifest.layers, &raw.rootfs.diff_ids);
    if blobs.len() != diff_ids.len() {
        return Err(ManifestError::Different { manifest: blobs.len(), config: diff_ids.len() });
    }
    if !(1..=ARCHITECTURE_MAX).contains(&raw.architecture.len()) {
        return Err(ManifestError::Architecture);
    }
    let layer = |(blob, diff_id): (&Blob, &String)| Ok(Layer { blob: *blob, diff_id: diff_id.parse()? });
    let layers = blobs.iter().zip(diff_ids).map(layer).collect::<Result<_, ManifestError>>()?;
    Ok(Platform { architecture: raw.architecture, config: manifest.config, layers })
}
