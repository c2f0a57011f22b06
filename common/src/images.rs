//! Images of the registries, as the API shows them.

use crate::ids::NodeId;
use crate::registry::RegistryHost;
use serde::{Deserialize, Serialize};

/// `GET /v1/images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageList {
    pub images: Vec<ImageView>,
    pub registries: Vec<WatchView>,
}

/// One tag of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageView {
    /// As a job document writes it: `registry:port/repository:tag`.
    pub name: String,
    pub registry: RegistryHost,
    pub repository: String,
    pub tag: String,
    pub state: ImageState,
    /// Why it is not current.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Of the manifest or index that the tag names; none until the registry has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub platforms: Vec<PlatformView>,
    /// When the registry was asked last with success, in milliseconds since 1970; 0: never.
    pub seen_ms: u64,
    /// Nodes whose Docker has it.
    #[serde(default)]
    pub nodes: Vec<NodeId>,
}

/// What is known of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageState {
    /// As the registry has it.
    Current,
    /// As the registry had it; it is out of reach.
    Stale,
    /// The registry does not have it, or not whole.
    Broken,
    /// Not asked for yet.
    Unknown,
}

impl ImageState {
    pub const ALL: [Self; 4] = [Self::Current, Self::Stale, Self::Broken, Self::Unknown];

    /// As documents and tables have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stale => "stale",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

/// What nodes of one architecture pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformView {
    /// As image configurations name it: `amd64`, `arm64`.
    pub architecture: String,
    /// Digest of the configuration, which is Docker's id of the image.
    pub image_id: String,
    /// Of all layers, each counted once, and the configuration.
    pub compressed_bytes: u64,
    /// Bottom first.
    pub layers: Vec<LayerView>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerView {
    pub digest: String,
    pub compressed_bytes: u64,
}

/// How a registry is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchView {
    pub registry: RegistryHost,
    pub images: usize,
    /// Since when it is out of reach, in milliseconds since 1970; none while it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_since_ms: Option<u64>,
    /// It notifies of changes, so that it is seldom asked.
    #[serde(default)]
    pub notifies: bool,
    /// Why it is out of reach, or why only the images of jobs are watched.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
