//! The catalogue as the API shows it.

use crate::catalogue::{Catalogue, Host, Place, Standing, Tag};
use crate::manifest::{Blob, Platform};
use crate::watch::HOSTS_MAX;
use edgeloom_common::images::{ImageState, ImageView, LayerView, PlatformView, WatchView};
use edgeloom_common::registry::RegistryHost;
use std::collections::{BTreeMap, BTreeSet};

/// A registry in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub registry: RegistryHost,
    pub away: bool,
    /// Tags by what is known of them, in the order of [`ImageState::ALL`].
    pub images: [usize; ImageState::ALL.len()],
}

impl Catalogue {
    /// Tags whose name has this in it; which nodes have them is for others to say.
    pub(crate) fn views(&self, part: &str) -> Vec<ImageView> {
        let mut views = Vec::new();
        for (host, known) in &self.hosts {
            for (repository, tags) in &known.repositories {
                for (tag, entry) in tags {
                    let name = format!("{host}/{repository}:{tag}");
                    if name.contains(part) {
                        let place =
                            Place { host: host.clone(), repository: repository.clone(), tag: tag.clone() };
                        views.push(self.view(name, place, (entry, &known.standing)));
                    }
                }
            }
        }
        views
    }

    fn view(&self, name: String, place: Place, (tag, standing): (&Tag, &Standing)) -> ImageView {
        let (state, reason) = state(tag, standing);
        let platforms = tag.digest.and_then(|digest| self.table.platforms(&digest)).unwrap_or_default();
        ImageView {
            name,
            registry: place.host,
            repository: place.repository.to_string(),
            tag: place.tag.to_string(),
            state,
            reason,
            digest: tag.digest.map(|digest| digest.to_string()),
            platforms: platforms.iter().map(platform).collect(),
            seen_ms: tag.seen_ms,
            nodes: Vec::new(),
        }
    }

    /// Every registry.
    pub(crate) fn watch_views(&self) -> Vec<WatchView> {
        let view = |(host, known): (&RegistryHost, &Host)| {
            let Standing { away, limit, notifies } = &known.standing;
            let reason = away.as_ref().map(|(_, reason)| reason).or(limit.as_ref());
            WatchView {
                registry: host.clone(),
                images: known.repositories.values().map(BTreeMap::len).sum(),
                away_since_ms: away.as_ref().map(|(since_ms, _)| *since_ms),
                notifies: *notifies,
                reason: reason.cloned().unwrap_or_default(),
            }
        };
        self.hosts.iter().map(view).collect()
    }

    /// Registries in numbers, as many as are watched at once.
    pub(crate) fn tallies(&self) -> Vec<Tally> {
        let tally = |(host, known): (&RegistryHost, &Host)| {
            let states = known.repositories.values().flat_map(BTreeMap::values);
            let mut images = [0; ImageState::ALL.len()];
            for (found, _) in states.map(|tag| state(tag, &known.standing)) {
                let place = ImageState::ALL.iter().position(|state| *state == found);
                images[place.expect("all states are listed")] += 1;
            }
            Tally { registry: host.clone(), away: known.standing.away.is_some(), images }
        };
        self.hosts.iter().take(HOSTS_MAX).map(tally).collect()
    }
}

fn state(tag: &Tag, standing: &Standing) -> (ImageState, String) {
    match (&tag.problem, &standing.away, tag.digest) {
        (Some(problem), ..) => (ImageState::Broken, problem.to_string()),
        (None, Some((_, reason)), Some(_)) => (ImageState::Stale, reason.clone()),
        (None, Some((_, reason)), None) => (ImageState::Unknown, reason.clone()),
        (None, None, Some(_)) => (ImageState::Current, String::new()),
        (None, None, None) => (ImageState::Unknown, String::new()),
    }
}

fn platform(platform: &Platform) -> PlatformView {
    let layers = platform.layers.iter().map(|layer| layer.blob);
    let blobs: BTreeSet<Blob> = layers.clone().chain([platform.config]).collect();
    let layer = |blob: Blob| LayerView { digest: blob.digest.to_string(), compressed_bytes: blob.size_bytes };
    PlatformView {
        architecture: platform.architecture.clone(),
        image_id: platform.config.digest.to_string(),
        compressed_bytes: blobs.iter().fold(0, |sum: u64, blob| sum.saturating_add(blob.size_bytes)),
        layers: layers.map(layer).collect(),
    }
}
