//! What a node holds, where its report names manifests instead of blobs.
//!
//! An engine whose store cannot be read tells by which digests its images were pulled. The blobs of those are known
//! there: the controller knows the manifests of the images that jobs use.

use crate::missing::Layers;
use crate::model::{Image, Model};
use edgeloom_common::report::{ImageStore, Inventory, LayerInventory};
use std::borrow::Cow;

/// As reported, with the blobs of reported manifests.
pub(crate) fn layers<'a>(model: &Model, inventory: &'a Inventory) -> Cow<'a, LayerInventory> {
    let reported = &inventory.layers;
    if reported.manifests.is_empty() {
        return Cow::Borrowed(reported);
    }
    let mut known = reported.clone();
    let images = model.jobs.values().flat_map(|record| record.images.values());
    for image in images.filter(|image| reported.manifests.contains(&image.reference.digest)) {
        known.known_digests.extend(blobs(image, &inventory.architecture));
    }
    Cow::Owned(known)
}

/// The image is there whole. containerd names images by their manifests, so its blobs tell.
pub(crate) fn has_image(inventory: &Inventory, image: &Layers) -> bool {
    let LayerInventory { image_ids, known_digests, .. } = &inventory.layers;
    let mut blobs = image.layers.iter().chain([&image.config]);
    let mut has_blobs = || blobs.all(|blob| known_digests.contains(&blob.digest));
    image_ids.contains(&image.config.digest) || (inventory.store == ImageStore::Containerd && has_blobs())
}

fn blobs<'a>(image: &'a Image, architecture: &str) -> impl Iterator<Item = String> + 'a {
    let layers = image.layers(architecture).into_iter();
    layers.flat_map(|it| it.layers.iter().chain([&it.config])).map(|blob| blob.digest.clone())
}
