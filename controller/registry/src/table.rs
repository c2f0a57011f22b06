//! Images by manifest digest, with the layers that they share kept once.
//!
//! In: platforms as manifests list them. Out: the same again, put together from numbers of four bytes a layer.
//! Invariant: a layer is in the table as long as an image names it; images without a tag go when there are
//! too many of them, the others never.

use crate::manifest::{Blob, Layer, Platform};
use edgeloom_common::digest::Digest;
use std::collections::{BTreeMap, HashMap};

/// Layers that are kept, and uses of them: some 60 MB of memory.
const LAYERS_MAX: usize = 200_000;
const USES_MAX: usize = 4_000_000;
/// Images without a tag that are kept: those that jobs name by digest, or ran before a tag was moved.
const UNTAGGED_MAX: usize = 1024;

/// A layer's place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LayerId(pub(crate) u32);

/// Layers, each once, counted by use.
#[derive(Debug, Default)]
struct Layers {
    slots: Vec<(Layer, u32)>,
    free: Vec<u32>,
    known: HashMap<Layer, u32>,
}

impl Layers {
    fn take(&mut self, layer: Layer) -> LayerId {
        if let Some(&known) = self.known.get(&layer) {
            self.slots[known as usize].1 += 1;
            return LayerId(known);
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = (layer, 1);
                id
            }
            None => {
                self.slots.push((layer, 1));
                u32::try_from(self.slots.len() - 1).expect("images and their layers are bounded far below")
            }
        };
        self.known.insert(layer, id);
        LayerId(id)
    }

    fn give_back(&mut self, LayerId(id): LayerId) {
        let (layer, uses) = &mut self.slots[id as usize];
        *uses -= 1;
        if *uses == 0 {
            self.known.remove(layer);
            self.free.push(id);
        }
    }
}

#[derive(Debug)]
struct Kept {
    architecture: Box<str>,
    config: Blob,
    layers: Box<[LayerId]>,
}

/// How much of an image is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The platforms that were sound.
    Part,
}

#[derive(Debug)]
struct Image {
    platforms: Box<[Kept]>,
    extent: Extent,
    tags: u32,
}

impl Image {
    fn layers(&self) -> impl Iterator<Item = &LayerId> {
        self.platforms.iter().flat_map(|platform| &platform.layers)
    }
}

/// All images.
#[derive(Debug, Default)]
pub(crate) struct Table {
    layers: Layers,
    images: HashMap<Digest, Image>,
    untagged: usize,
    uses: usize,
}

impl Table {
    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.images.contains_key(digest)
    }

    /// Whether all of an image is known.
    pub(crate) fn is_whole(&self, digest: &Digest) -> bool {
        self.images.get(digest).is_some_and(|image| image.extent == Extent::Whole)
    }

    /// Whether an image is kept when it comes.
    pub(crate) fn has_room(&self) -> bool {
        self.layers.known.len() < LAYERS_MAX && self.uses < USES_MAX
    }

    /// Whether some image has a layer of this blob and content.
    pub(crate) fn has_layer(&self, layer: &Layer) -> bool {
        self.layers.known.contains_key(layer)
    }

    /// Keeps an image, if there is room; the layers that were not there before, in the order of the image. One that is kept already
    /// stays as it is, since a digest has one content, unless only a part of it was sound.
    pub(crate) fn keep(
        &mut self,
        digest: Digest,
        (platforms, extent): (&[Platform], Extent),
    ) -> Vec<(LayerId, Layer)> {
        let mut new = Vec::new();
        if !self.has_room() || self.is_whole(&digest) {
            return new;
        }
        let kept = |platform: &Platform| {
            let take = |layer: &Layer| {
                let fresh = !self.layers.known.contains_key(layer);
                let id = self.layers.take(*layer);
                if fresh {
                    new.push((id, *layer));
                }
                id
            };
            Kept {
                layers: platform.layers.iter().map(take).collect(),
                architecture: platform.architecture.as_str().into(),
                config: platform.config,
            }
        };
        let platforms = platforms.iter().map(kept).collect();
        let before = self.images.remove(&digest);
        let tags = before.as_ref().map_or(0, |image| image.tags);
        self.untagged += usize::from(before.is_none());
        let image = Image { platforms, extent, tags };
        self.uses += image.layers().count();
        if let Some(before) = before {
            self.give_back(&before);
        }
        self.images.insert(digest, image);
        new
    }

    /// A tag names the image from now on.
    pub(crate) fn tagged(&mut self, digest: &Digest) {
        if let Some(image) = self.images.get_mut(digest) {
            self.untagged -= usize::from(image.tags == 0);
            image.tags += 1;
        }
    }

    /// A tag does not name the image any more.
    pub(crate) fn untagged(&mut self, digest: &Digest) {
        if let Some(image) = self.images.get_mut(digest) {
            image.tags = image.tags.saturating_sub(1);
            self.untagged += usize::from(image.tags == 0);
        }
    }

    /// Lets go of images that nothing names, if there are too many.
    pub(crate) fn sweep(&mut self) {
        if self.untagged <= UNTAGGED_MAX {
            return;
        }
        let gone: Vec<_> = self.images.extract_if(|_, image| image.tags == 0).collect();
        for (_, image) in &gone {
            self.give_back(image);
        }
        self.untagged = 0;
    }

    fn give_back(&mut self, image: &Image) {
        for layer in image.layers() {
            self.layers.give_back(*layer);
            self.uses -= 1;
        }
    }

    /// The platforms of an image.
    pub(crate) fn platforms(&self, digest: &Digest) -> Option<Vec<Platform>> {
        let one = |kept: &Kept| Platform {
            architecture: kept.architecture.to_string(),
            config: kept.config,
            layers: kept.layers.iter().map(|&id| self.layer(id)).collect(),
        };
        Some(self.images.get(digest)?.platforms.iter().map(one).collect())
    }

    /// The places of an image's layers, a platform's architecture and configuration with each.
    pub(crate) fn places(&self, digest: &Digest) -> Vec<(&str, Blob, &[LayerId])> {
        let platforms = self.images.get(digest).map(|image| image.platforms.iter());
        platforms.into_iter().flatten().map(|it| (&*it.architecture, it.config, &*it.layers)).collect()
    }

    /// The digest of every image that is known whole, in order.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        let mut digests: Vec<_> =
            self.images.keys().filter(|digest| self.is_whole(digest)).copied().collect();
        digests.sort_unstable();
        digests
    }

    pub(crate) fn layer(&self, LayerId(id): LayerId) -> Layer {
        self.layers.slots[id as usize].0
    }

    /// Every layer in use, by its place.
    pub(crate) fn layers(&self) -> BTreeMap<LayerId, Layer> {
        self.layers.known.iter().map(|(layer, &id)| (LayerId(id), *layer)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str) -> Layer {
        let digest = |kind: &str| Digest::of(format!("{kind} {name}").as_bytes());
        Layer { blob: Blob { digest: digest("blob"), size_bytes: 7 }, diff_id: digest("diff") }
    }

    fn image(name: &str, layers: &[&str]) -> (Digest, Vec<Platform>) {
        let config = Blob { digest: Digest::of(name.as_bytes()), size_bytes: 1 };
        let layers = layers.iter().map(|name| layer(name)).collect();
        (config.digest, vec![Platform { architecture: "arm64".to_owned(), config, layers }])
    }

    #[test]
    fn shared_layers_are_kept_once_and_come_out_as_they_went_in() {
        let mut table = Table::default();
        let (a, in_a) = image("a", &["base", "x", "x"]);
        let (b, in_b) = image("b", &["base", "y"]);
        assert_eq!(table.keep(a, (&in_a, Extent::Whole)).len(), 2);
        assert_eq!(table.keep(b, (&in_b, Extent::Whole)).len(), 1);
        assert_eq!(table.keep(b, (&in_b, Extent::Whole)).len(), 0);
        assert_eq!((table.layers().len(), table.digests().len(), table.uses), (3, 2, 5));
        assert_eq!((table.platforms(&a), table.platforms(&b)), (Some(in_a), Some(in_b)));
    }

    #[test]
    fn images_go_only_without_a_tag_and_their_places_are_used_again() {
        let mut table = Table::default();
        let (tagged, platforms) = image("tagged", &["base"]);
        table.keep(tagged, (&platforms, Extent::Whole));
        table.tagged(&tagged);
        for round in 0..2 {
            for number in 0..=UNTAGGED_MAX {
                let (digest, platforms) = image(&format!("{round} {number}"), &["base", &number.to_string()]);
                table.keep(digest, (&platforms, Extent::Whole));
            }
            table.sweep();
            assert_eq!((table.digests().len(), table.layers().len(), table.uses), (1, 1, 1));
        }
        assert_eq!(table.layers.slots.len(), UNTAGGED_MAX + 2);
        assert_eq!(table.platforms(&tagged), Some(platforms));
    }
}
