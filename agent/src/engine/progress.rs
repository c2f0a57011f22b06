//! How far a pull is, from the lines that the engine sends about its layers.
//!
//! A layer held already says `Already exists` and never has a total; every other layer's total is the
//! compressed size that crossed the network, so their sum is what the pull fetched (the image's
//! configuration of a few kilobytes apart). Short layers may skip `Downloading`, since only the newest
//! line is kept for a slow reader; their `Extracting` lines carry the same total.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// More layers than any engine allows (Docker: 128): a bound on what a stream can make us keep.
const LAYERS_MAX: usize = 1024;
/// Bytes that count as coming on.
const WORTH: u64 = 64 << 10;

/// Bytes of one pull.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullProgress {
    layers: BTreeMap<String, Layer>,
    /// Lines that say something else than a number of bytes.
    steps: u64,
    /// Bytes that neighbours gave, or that were here.
    pub(crate) elsewhere: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Layer {
    fetched: u64,
    total: u64,
    extracted: u64,
}

/// Whether a pull gets anywhere. One that trickles would hold up all others of the node.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    steps: u64,
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, steps: 0, bytes: 0 }
    }

    /// How long it has been since the pull came on: by a step, or by [`WORTH`] bytes fetched or unpacked.
    pub(crate) fn idle(&mut self, progress: &PullProgress, now: Instant) -> Duration {
        let bytes = progress.layers.values().map(|layer| layer.fetched + layer.extracted).sum();
        if self.steps != progress.steps || self.bytes + WORTH <= bytes {
            *self = Self { since: now, steps: progress.steps, bytes };
        }
        now.saturating_duration_since(self.since)
    }
}

impl PullProgress {
    /// Takes in one line: the layer's short id, its status and the numbers beside it.
    pub fn observe(&mut self, layer: &str, status: &str, current: Option<u64>, total: Option<u64>) {
        let known = self.layers.contains_key(layer);
        if !known && LAYERS_MAX <= self.layers.len() {
            return;
        }
        self.steps += u64::from(!matches!(status, "Downloading" | "Extracting"));
        match status {
            "Downloading" | "Extracting" => {
                let entry = self.layers.entry(layer.to_owned()).or_default();
                entry.total = entry.total.max(total.unwrap_or(0));
                let fetched = if status == "Downloading" { current.unwrap_or(0) } else { entry.total };
                entry.fetched = entry.fetched.max(fetched);
                if status == "Extracting" {
                    entry.extracted = entry.extracted.max(current.unwrap_or(0));
                }
            }
            "Verifying Checksum" | "Download complete" | "Pull complete" if known => {
                let entry = self.layers.entry(layer.to_owned()).or_default();
                entry.fetched = entry.fetched.max(entry.total);
            }
            _ => {}
        }
    }

    /// Compressed layer bytes that arrived.
    #[must_use]
    pub fn bytes_fetched(&self) -> u64 {
        self.layers.values().map(|layer| layer.fetched).sum()
    }

    /// Layers of which bytes arrived.
    #[must_use]
    pub fn layers_fetched(&self) -> u32 {
        u32::try_from(self.layers.values().filter(|layer| layer.fetched > 0).count()).unwrap_or(u32::MAX)
    }

    /// Compressed bytes of the layers that began; later layers add to it.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.layers.values().map(|layer| layer.total).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_held_already_are_not_counted() {
        let mut progress = PullProgress::default();
        progress.observe("a", "Already exists", None, None);
        progress.observe("b", "Downloading", Some(10), Some(100));
        assert_eq!((progress.bytes_fetched(), progress.bytes_total()), (10, 100));
        progress.observe("b", "Download complete", None, None);
        assert_eq!(progress.bytes_fetched(), 100);
    }

    #[test]
    fn a_short_layer_is_counted_when_it_is_first_seen_extracting() {
        let mut progress = PullProgress::default();
        progress.observe("c", "Extracting", Some(5), Some(50));
        progress.observe("c", "Pull complete", None, None);
        assert_eq!(progress.bytes_fetched(), 50);
    }

    #[test]
    fn a_pull_that_trickles_gets_nowhere_and_one_that_unpacks_does() {
        let (begin, mut progress) = (Instant::now(), PullProgress::default());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut pace = Pace::new(begin);
        progress.observe("a", "Pulling fs layer", None, None);
        assert_eq!(pace.idle(&progress, at(1)), Duration::ZERO);
        for second in 2..200 {
            progress.observe("a", "Downloading", Some(second * 100), Some(1 << 30));
            assert_eq!(pace.idle(&progress, at(second)).as_secs(), second - 1, "{second}");
        }
        for second in 200..210 {
            progress.observe("a", "Downloading", Some((second - 199) << 20), Some(1 << 30));
            assert_eq!(pace.idle(&progress, at(second)), Duration::ZERO);
        }
        progress.observe("a", "Extracting", Some(1 << 17), Some(1 << 30));
        assert_eq!(pace.idle(&progress, at(300)), Duration::ZERO);
        assert_eq!(pace.idle(&progress, at(310)).as_secs(), 10);
        progress.observe("a", "Pull complete", None, None);
        assert_eq!(pace.idle(&progress, at(320)), Duration::ZERO);
    }

    #[test]
    fn a_stream_cannot_make_us_keep_endless_layers() {
        let mut progress = PullProgress::default();
        for index in 0..LAYERS_MAX * 2 {
            progress.observe(&index.to_string(), "Downloading", Some(1), Some(1));
        }
        assert_eq!(progress.bytes_total(), LAYERS_MAX as u64);
    }
}
