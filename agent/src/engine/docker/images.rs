//! What Docker says of its images, where its store cannot be read.
//!
//! The API names no blobs, only the digests by which images were pulled; layers that are held without an image
//! are not seen. An image that was loaded or built here has no such digest: Docker would fetch its layers anew.

use super::{Docker, EngineError, Request, has_status};
use bollard::models::ImageSummary;
use bollard::query_parameters::ListImagesOptionsBuilder;
use edgeloom_common::digest::chain_id;
use edgeloom_common::report::{ImageStore, LayerInventory};
use edgeloom_common::units::Bytes;
use edgeloom_observe::layers::{ENTRIES_MAX, Stored};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The root of a containerd that is not Docker's own.
const CONTAINERD: &str = "/var/lib/containerd";

/// Where the containerd at `address` keeps content: Docker's own below Docker's root.
pub(super) fn content_dir(docker_root: &Path, address: Option<&str>) -> PathBuf {
    let own = docker_root.join("containerd/daemon");
    match address {
        Some(address) if address.contains("/docker/") => own,
        Some(_) => CONTAINERD.into(),
        None if own.exists() => own,
        None => CONTAINERD.into(),
    }
}

impl Docker {
    /// What can be known of layers by asking.
    pub(crate) async fn layers(&self, store: ImageStore) -> Result<Stored, EngineError> {
        let mut found = Gathered::default();
        for image in self.images().await? {
            if found.entries >= ENTRIES_MAX {
                break;
            }
            // containerd names an image by its manifest: that it is here says nothing of a configuration.
            let diff_ids = match store {
                ImageStore::Graphdriver => self.diff_ids(&image.id).await?,
                ImageStore::Containerd => Vec::new(),
            };
            found.add(&image, &diff_ids, store);
        }
        Ok(found.stored())
    }

    pub(super) async fn images(&self) -> Result<Vec<ImageSummary>, EngineError> {
        let options = ListImagesOptionsBuilder::new().all(true).build();
        let listed = self.client().await?.list_images(Some(options)).await;
        listed.map_err(|error| self.refusal(Request { verb: "list", object: "images" }, &error))
    }

    /// None of an image that has just been removed.
    async fn diff_ids(&self, id: &str) -> Result<Vec<String>, EngineError> {
        match self.client().await?.inspect_image(id).await {
            Ok(image) => Ok(image.root_fs.and_then(|root| root.layers).unwrap_or_default()),
            Err(error) if has_status(&error, 404) => Ok(Vec::new()),
            Err(error) => Err(self.refusal(Request { verb: "inspect image", object: id }, &error)),
        }
    }
}

#[derive(Default)]
struct Gathered {
    images: BTreeSet<String>,
    chains: BTreeSet<String>,
    manifests: BTreeSet<String>,
    bytes: u64,
    entries: usize,
}

impl Gathered {
    fn add(&mut self, image: &ImageSummary, diff_ids: &[String], store: ImageStore) {
        if store == ImageStore::Graphdriver {
            self.images.insert(image.id.clone());
        }
        let mut chain = None;
        for diff in diff_ids {
            let this = chain_id(chain.as_deref(), diff);
            self.chains.insert(this.clone());
            chain = Some(this);
        }
        let digests = image.repo_digests.iter().filter_map(|name| name.split_once('@'));
        self.manifests.extend(digests.map(|(_, digest)| digest.to_owned()));
        // Shared layers count with each image: an upper bound, and only that is known.
        self.bytes = self.bytes.saturating_add(u64::try_from(image.size).unwrap_or(0));
        self.entries = self.images.len() + self.chains.len() + self.manifests.len();
    }

    fn stored(self) -> Stored {
        let layers = LayerInventory {
            image_ids: self.images.into_iter().collect(),
            chain_ids: self.chains.into_iter().collect(),
            manifests: self.manifests.into_iter().collect(),
            known_digests: Vec::new(),
        };
        Stored { layers, bytes: Bytes(self.bytes) }
    }
}

#[cfg(test)]
mod tests;
