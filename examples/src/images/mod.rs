//! Images without Docker: layers, configuration and manifest built here and pushed to a registry's HTTP API.
//!
//! The same input gives the same bytes, and so the same digests, on every machine: times, owners and the
//! order of files are fixed. The format is Docker's image manifest version 2, schema 2, which
//! every registry and engine of the last ten years reads.

mod application;
mod archive;
mod family;
mod layer;
mod registry;

pub use application::application_images;
pub use archive::archive;
pub use family::family;
pub use layer::{File, Layer};
pub use registry::{PushError, Pushed, push};

use edgeloom_common::digest::Digest;
use serde_json::json;

/// Media type of the manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG_TYPE: &str = "application/vnd.docker.container.image.v1+json";
const LAYER_TYPE: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// An image to build.
#[derive(Debug, Clone)]
pub struct ImageSpec {
    /// For instance `vision/detect`, without registry.
    pub repository: String,
    pub tag: String,
    /// Lowest first.
    pub layers: Vec<Layer>,
    pub entrypoint: Vec<String>,
}

impl ImageSpec {
    /// The configuration for Linux on this machine's architecture.
    #[must_use]
    pub fn config(&self) -> Vec<u8> {
        let diff_ids: Vec<&str> = self.layers.iter().map(|layer| layer.diff_id.as_str()).collect();
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": { "Entrypoint": self.entrypoint, "WorkingDir": "/" },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        config.to_string().into_bytes()
    }

    /// The manifest that names the configuration and the layers.
    #[must_use]
    pub fn manifest(&self) -> Vec<u8> {
        let config = self.config();
        let layers: Vec<_> = self
            .layers
            .iter()
            .map(|layer| json!({ "mediaType": LAYER_TYPE, "size": layer.blob.len(), "digest": layer.digest }))
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": { "mediaType": CONFIG_TYPE, "size": config.len(), "digest": digest(&config) },
            "layers": layers,
        });
        manifest.to_string().into_bytes()
    }
}

/// `sha256:` and the hash in hexadecimal.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// The machine's architecture as images call it (GOARCH).
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
