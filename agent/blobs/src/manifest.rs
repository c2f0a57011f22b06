//! What manifests and indexes name, Docker's and the OCI's (image specification 1.1).

use edgeloom_common::digest::Digest;
use serde::Deserialize;

/// A manifest, or an index.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: Option<Named>,
    #[serde(default)]
    pub(crate) layers: Vec<Named>,
    #[serde(default)]
    pub(crate) manifests: Vec<Named>,
}

/// A blob, or the manifest of a platform.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    digest: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    urls: Vec<String>,
    platform: Option<Platform>,
}

#[derive(Debug, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

impl Manifest {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// How many bytes it says that each thing has which it names.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (Digest, u64)> {
        let named = self.config.iter().chain(&self.layers).chain(&self.manifests);
        named.filter_map(|it| Some((it.digest()?, it.size?)))
    }
}

impl Named {
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.digest.parse().ok()
    }

    /// By its description; registries mislabel layers.
    pub(crate) fn is_zstd(&self) -> bool {
        self.media_type.ends_with("zstd")
    }

    /// Where its registry need not have it: the first address that is told.
    pub(crate) fn elsewhere(&self) -> Option<&str> {
        let told = ["foreign", "nondistributable"].iter().any(|word| self.media_type.contains(word));
        self.urls.first().filter(|_| told).map(String::as_str)
    }

    pub(crate) fn runs_on(&self, architecture: &str) -> bool {
        let runs = |it: &Platform| it.os == "linux" && it.architecture == architecture;
        self.platform.as_ref().is_some_and(runs)
    }
}
