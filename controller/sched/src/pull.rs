//! What a pull fetches on a node, and how long that takes: the one predictor of all profiles.
//!
//! In: an image's layers and what a node holds. Out: layers and bytes to fetch. Two stores, two laws. A
//! graph driver walks the layers from the bottom: a layer is skipped if the daemon knows its blob digest
//! *and* has the layer of that chain (OCI image specification, "Layer ChainID"); the first miss makes every
//! layer above it download. containerd keeps blobs by digest: exactly the absent ones are fetched, which is
//! also Eq. 1 of LRScheduler. In both a blob is fetched once, the configuration counts, and an image whose
//! configuration is present fetches nothing.

mod course;
mod learnt;

use course::Course;
pub use learnt::Learnt;

use edgeloom_common::report::{ImageStore, LayerInventory};
use edgeloom_common::units::{BitRate, Bytes, PULL_PART};
use std::collections::BTreeSet;

/// Part of a line that pulls have whatever flows have: these may not reserve it.
const LEAST: f64 = 0.05;

/// One layer of one platform's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Of the blob, as the registry serves it.
    pub digest: String,
    /// Of the layer and all below it: the chain id.
    pub chain: String,
    pub size: Bytes,
}

/// One platform's image: configuration and layers, bottom first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Digest of the configuration, which is the image's id.
    pub config: String,
    pub config_size: Bytes,
    pub layers: Vec<Layer>,
}

impl Image {
    /// Bytes of all layers, each once.
    #[must_use]
    pub fn layer_bytes(&self) -> Bytes {
        Bytes(once(&self.layers).map(|layer| layer.size.0).sum())
    }

    /// The topmost layers that come to so many bytes, without the configuration: what a graph driver fetches of it
    /// where that is so much. None where there are none.
    #[must_use]
    pub fn topmost(&self, bytes: Bytes) -> Option<Fetch> {
        let from = |height: usize| Fetch::of(once(&self.layers[height..]), Bytes(0));
        (0..=self.layers.len()).rev().map(from).find(|fetch| fetch.layer_bytes == bytes)
    }
}

/// Each blob where it comes first.
fn once(layers: &[Layer]) -> impl Iterator<Item = &Layer> {
    let mut seen = BTreeSet::new();
    layers.iter().filter(move |layer| seen.insert(layer.digest.as_str()))
}

/// What a pull fetches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetch {
    pub layers: u32,
    pub layer_bytes: Bytes,
    pub config_bytes: Bytes,
    course: Course,
}

impl Fetch {
    /// Of these layers, bottom first.
    fn of<'l>(layers: impl Iterator<Item = &'l Layer>, config_bytes: Bytes) -> Self {
        let sizes: Vec<Bytes> = layers.map(|layer| layer.size).collect();
        Self {
            layers: u32::try_from(sizes.len()).unwrap_or(u32::MAX),
            layer_bytes: Bytes(sizes.iter().map(|size| size.0).sum()),
            config_bytes,
            course: Course::of(&sizes),
        }
    }

    /// Of layers of which only that much is known.
    #[must_use]
    pub fn even(layers: u32, layer_bytes: Bytes) -> Self {
        Self { layers, layer_bytes, config_bytes: Bytes(0), course: Course::even(layers, layer_bytes) }
    }

    /// Everything.
    #[must_use]
    pub fn bytes(self) -> Bytes {
        Bytes(self.layer_bytes.0 + self.config_bytes.0)
    }

    /// How long it takes behind `queued` bytes that others fetch over the same line. Nothing takes no time.
    #[must_use]
    pub fn seconds(self, goodput: Goodput, queued: Bytes) -> f64 {
        if self.bytes().0 == 0 {
            return 0.0;
        }
        self.course.seconds(goodput, Bytes(self.config_bytes.0 + queued.0))
    }
}

/// What pulls get: payload bits a second over a line, and how its node unpacks what comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    bits_per_s: f64,
    /// Times that it takes as long as the machine did that was measured.
    unpacking: f64,
}

impl Goodput {
    /// At least one bit.
    fn new(bits_per_s: f64) -> Self {
        Self { bits_per_s: bits_per_s.max(1.0), unpacking: 1.0 }
    }

    /// Of a line from which nothing was pulled yet, by its wire rate.
    #[must_use]
    pub fn declared(wire: BitRate) -> Self {
        Self::new(wire.as_f64() * edgeloom_common::units::TCP_GOODPUT)
    }

    /// Of a line, with this wire rate, of which flows use so much.
    #[must_use]
    pub fn beside_flows(wire: BitRate, used: BitRate) -> Self {
        let (wire, left) = (wire.as_f64(), BitRate(wire.0.saturating_sub(used.0)).as_f64());
        Self::new((PULL_PART * left).max(LEAST * wire) * edgeloom_common::units::TCP_GOODPUT)
    }

    /// With no more of the line than the other has; the node is this one's.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self { bits_per_s: self.bits_per_s.min(other.bits_per_s), ..self }
    }

    /// That of a line which takes the mean time of these for a byte; none of none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nodes are few")]
    pub(crate) fn mean(lines: &[Self]) -> Option<Self> {
        let count = lines.len() as f64;
        let bit_s: f64 = lines.iter().map(|line| 1.0 / line.bits_per_s).sum();
        let unpacking = lines.iter().map(|line| line.unpacking).sum::<f64>() / count;
        (!lines.is_empty()).then(|| Self { bits_per_s: count / bit_s, unpacking })
    }

    /// In whole bits a second.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts from float saturate")]
    pub fn rate(self) -> BitRate {
        BitRate(self.bits_per_s as u64)
    }

    /// Of the line alone.
    pub(crate) fn seconds(self, bytes: Bytes) -> f64 {
        bits(bytes) / self.bits_per_s
    }
}

#[expect(clippy::cast_precision_loss, reason = "images stay far below 2^52 bytes")]
fn bits(bytes: Bytes) -> f64 {
    bytes.0 as f64 * 8.0
}

/// What a node holds, to which planned pulls are added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    store: ImageStore,
    images: BTreeSet<String>,
    chains: BTreeSet<String>,
    blobs: BTreeSet<String>,
    stored: Bytes,
}

impl Held {
    /// As the node reported it.
    #[must_use]
    pub fn new(store: ImageStore, inventory: &LayerInventory) -> Self {
        Self {
            store,
            images: inventory.image_ids.iter().cloned().collect(),
            chains: inventory.chain_ids.iter().cloned().collect(),
            blobs: inventory.known_digests.iter().cloned().collect(),
            stored: Bytes(0),
        }
    }

    /// What a pull of `image` would fetch now.
    #[must_use]
    pub fn fetch(&self, image: &Image) -> Fetch {
        if self.has(image) {
            return Fetch::default();
        }
        // containerd keeps the configuration as it came, also when the image's record is gone.
        let kept = self.store == ImageStore::Containerd && self.blobs.contains(&image.config);
        let config_bytes = if kept { Bytes(0) } else { image.config_size };
        Fetch::of(self.absent(image), config_bytes)
    }

    /// Bytes of the image's layers that a pull would not fetch: `D` of LRScheduler, Eq. 2.
    #[must_use]
    pub fn local(&self, image: &Image) -> Bytes {
        Bytes(image.layer_bytes().0 - self.fetch(image).layer_bytes.0)
    }

    /// Whether the image needs no pull at all.
    #[must_use]
    pub fn has(&self, image: &Image) -> bool {
        self.images.contains(&image.config)
    }

    /// Bytes of layers that were added; what the node held before has no sizes.
    #[must_use]
    pub fn stored(&self) -> Bytes {
        self.stored
    }

    /// Counts `image` as pulled.
    pub fn add(&mut self, image: &Image) {
        self.stored.0 += self.fetch(image).layer_bytes.0;
        self.images.insert(image.config.clone());
        self.chains.extend(image.layers.iter().map(|layer| layer.chain.clone()));
        self.blobs.extend(image.layers.iter().map(|layer| layer.digest.clone()));
    }

    /// Layers to fetch, each blob once.
    fn absent<'i>(&'i self, image: &'i Image) -> impl Iterator<Item = &'i Layer> {
        let present = match self.store {
            ImageStore::Containerd => 0,
            ImageStore::Graphdriver => image.layers.iter().take_while(|layer| self.present(layer)).count(),
        };
        let held = |layer: &Layer| self.store == ImageStore::Containerd && self.blobs.contains(&layer.digest);
        once(&image.layers[present..]).filter(move |layer| !held(layer))
    }

    /// Whether a graph driver skips a layer, if it skipped all below.
    fn present(&self, layer: &Layer) -> bool {
        self.blobs.contains(&layer.digest) && self.chains.contains(&layer.chain)
    }
}

#[cfg(test)]
mod tests;
