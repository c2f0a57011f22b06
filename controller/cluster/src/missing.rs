//! An image's layers as registries list them, and the chain ids by which graph drivers know them.
//!
//! What a pull fetches of them is foretold by `edgeloom_sched::pull`.

use edgeloom_common::digest::{Digest, chain_id};
use edgeloom_common::units::Bytes;
use edgeloom_sched::pull::{Image, Layer};
use serde::{Deserialize, Serialize};

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

impl Layers {
    /// As the scheduler's predictor takes it.
    #[must_use]
    pub(crate) fn image(&self) -> Image {
        let layers = self.layers.iter().zip(chain_ids(&self.diff_ids));
        let layer =
            |(blob, chain): (&Blob, String)| Layer { digest: blob.digest.clone(), chain, size: blob.size };
        Image {
            config: self.config.digest.clone(),
            config_size: self.config.size,
            layers: layers.map(layer).collect(),
        }
    }
}

/// Of each layer, bottom first.
#[must_use]
pub(crate) fn chain_ids(diff_ids: &[String]) -> Vec<String> {
    let mut chains: Vec<String> = Vec::with_capacity(diff_ids.len());
    for diff in diff_ids {
        chains.push(chain_id(chains.last().map(String::as_str), diff));
    }
    chains
}

/// `sha256:<hex>` of some bytes.
#[must_use]
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_the_hash_of_two_texts() {
        let chains = chain_ids(&["sha256:a".to_owned(), "sha256:b".to_owned()]);
        assert_eq!(chains, ["sha256:a".to_owned(), sha256(b"sha256:a sha256:b")]);
    }
}
