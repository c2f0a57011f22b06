//! Manifests and configurations as registries serve them, Docker's and OCI's, as far as they matter here.

use crate::missing::{Blob, Layers};
use edgeloom_common::units::Bytes;
use serde::Deserialize;

/// Every manifest type that a node's Docker accepts.
pub(crate) const ACCEPT: &str = "application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

/// A manifest or an index of manifests: told apart by their fields, as registries mislabel types.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    #[serde(default)]
    pub(crate) manifests: Vec<Entry>,
    pub(crate) config: Option<Descriptor>,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
}

/// A platform's manifest in an index.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) digest: String,
    pub(crate) platform: Option<Platform>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Platform {
    pub(crate) architecture: String,
    pub(crate) os: String,
}

/// A blob.
#[derive(Debug, Deserialize)]
pub(crate) struct Descriptor {
    pub(crate) digest: String,
    pub(crate) size: u64,
}

/// An image's configuration blob.
#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    pub(crate) architecture: String,
    pub(crate) rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RootFs {
    #[serde(default)]
    pub(crate) diff_ids: Vec<String>,
}

/// Joins manifest and configuration; none if their layers do not match one to one.
pub(crate) fn layers(manifest: &Manifest, config: &Config) -> Option<Layers> {
    let blob =
        |descriptor: &Descriptor| Blob { digest: descriptor.digest.clone(), size: Bytes(descriptor.size) };
    let matches = manifest.layers.len() == config.rootfs.diff_ids.len();
    matches.then_some(())?;
    Some(Layers {
        config: blob(manifest.config.as_ref()?),
        layers: manifest.layers.iter().map(blob).collect(),
        diff_ids: config.rootfs.diff_ids.clone(),
    })
}
