//! What a pull fetches on a node, and how long that takes: the one predictor of all profiles.
//!
//! In: an image's layers and what a node holds. Out: layers and bytes to fetch. Two stores, two laws. A
//! graph driver walks the layers from the bottom: a layer is skipped if the daemon knows its blob digest
//! *and* has the layer of that chain (OCI image specification, "Layer ChainID"); the first miss makes every
//! layer above it download. containerd keeps blobs by digest: exactly the absent ones are fetched, which is
//! also Eq. 1 of LRScheduler. In both a blob is fetched once, the configuration counts, and an image whose
//! configuration is present fetches nothing.

mod learnt;

pub use learnt::Learnt;

use edgeloom_common::report::{ImageStore, LayerInventory};
use edgeloom_common::units::{BitRate, Bytes, PULL_PART};
use std::collections::BTreeSet;

/// Seconds that a pull takes whatever it fetches, and that each layer adds for checking and unpacking.
/// Fitted to 14 pulls of 1 to 28 MB by Docker 20.10 over 20 Mbit/s; the largest error was 0.2 s.
const START_S: f64 = 0.134;
const LAYER_S: f64 = 0.03;
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
        let mut seen = BTreeSet::new();
        let once = self.layers.iter().filter(|layer| seen.insert(&layer.digest));
        Bytes(once.map(|layer| layer.size.0).sum())
    }
}

/// What a pull fetches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fetch {
    pub layers: u32,
    pub layer_bytes: Bytes,
    pub config_bytes: Bytes,
}

impl Fetch {
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
        START_S + LAYER_S * f64::from(self.layers) + goodput.seconds(Bytes(self.bytes().0 + queued.0))
    }
}

/// Payload bits a second that pulls get over a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput(f64);

impl Goodput {
    /// Of a line from which nothing was pulled yet, by its wire rate.
    #[must_use]
    pub fn declared(wire: BitRate) -> Self {
        Self((wire.as_f64() * edgeloom_common::units::TCP_GOODPUT).max(1.0))
    }

    /// Of a line, with this wire rate, of which flows use so much.
    #[must_use]
    pub fn beside_flows(wire: BitRate, used: BitRate) -> Self {
        let (wire, left) = (wire.as_f64(), BitRate(wire.0.saturating_sub(used.0)).as_f64());
        Self(((PULL_PART * left).max(LEAST * wire) * edgeloom_common::units::TCP_GOODPUT).max(1.0))
    }

    /// The lower of the two.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// That of a line which takes the mean time of these for a byte; none of none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nodes are few")]
    pub(crate) fn mean(lines: &[Self]) -> Option<Self> {
        let bit_s: f64 = lines.iter().map(|line| 1.0 / line.0).sum();
        (!lines.is_empty()).then(|| Self(lines.len() as f64 / bit_s))
    }

    /// In whole bits a second.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts from float saturate")]
    pub fn rate(self) -> BitRate {
        BitRate(self.0 as u64)
    }

    /// Of the line alone.
    pub(crate) fn seconds(self, bytes: Bytes) -> f64 {
        bits(bytes) / self.0
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
        let mut fetch = Fetch { config_bytes, ..Fetch::default() };
        for layer in self.absent(image) {
            fetch.layers += 1;
            fetch.layer_bytes.0 += layer.size.0;
        }
        fetch
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
    fn absent<'i>(&self, image: &'i Image) -> impl Iterator<Item = &'i Layer> {
        let present = match self.store {
            ImageStore::Containerd => 0,
            ImageStore::Graphdriver => image.layers.iter().take_while(|layer| self.present(layer)).count(),
        };
        let mut fetched = BTreeSet::new();
        image.layers[present..].iter().filter(move |layer| {
            let held = self.store == ImageStore::Containerd && self.blobs.contains(&layer.digest);
            !held && fetched.insert(layer.digest.as_str())
        })
    }

    /// Whether a graph driver skips a layer, if it skipped all below.
    fn present(&self, layer: &Layer) -> bool {
        self.blobs.contains(&layer.digest) && self.chains.contains(&layer.chain)
    }
}

#[cfg(test)]
mod tests;
