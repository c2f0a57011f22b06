//! Containers go where their image's layers are, as far as nodes' loads allow.
//!
//! Paper: "LRScheduler: A Layer-aware and Resource-adaptive Container Scheduler in Edge Computing" (2024),
//! sections III (model), IV-B (scores) and Algorithm 1. In: a waiting job, images and what nodes hold. Out: a
//! placement; flows are routed like those of `otfs`. `layer` has the paper's static weight, `lrs` its
//! dynamic one.
//!
//! | symbol | here |
//! |---|---|
//! | `L_c`, `d_l` | `pull::Image::layers`, `Layer::size` |
//! | `L_n(t)` | `pull::Held`, with everything planned so far |
//! | Eq. 1, download cost | `Fetch::layer_bytes` |
//! | Eq. 2, `D` | `Held::local` |
//! | Eq. 3, layer score | `layer_score` |
//! | Eq. 4, 5 | `Layers::rate` |
//! | Eq. 6, storage | `Layers::refusal`; Eq. 7, containers: `Hosting::containers_max`, in every profile |
//! | Eq. 11-13 | `weight` |
//!
//! Departures: `D` follows the node's store, not a set of layers, where that is no set; what is placed but
//! not running counts too, or two quick placements would see the same idle node.

mod weight;

#[cfg(test)]
mod tests;

use crate::one_by_one::{Judge, Rating, Turn};
use crate::score::kube::totals;
use crate::score::load::Shares;
use crate::scoring::Base;
use weight::weight;

/// How much the layer score counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layers {
    /// The same everywhere.
    Fixed,
    /// More where a node has room.
    Adaptive,
}

impl Layers {
    /// The profile's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "layer",
            Self::Adaptive => "lrs",
        }
    }

    fn weight(self, turn: &Turn<'_>, node: usize) -> f64 {
        match self {
            Self::Fixed => turn.case.world.scoring.layers.fixed,
            Self::Adaptive => weight(turn, node, layer_score(turn, node)),
        }
    }
}

/// Hundredths of the image's bytes that are there; 0 for an image that is not known.
#[expect(clippy::cast_precision_loss, reason = "images stay far below 2^52 bytes")]
fn layer_score(turn: &Turn<'_>, node: usize) -> f64 {
    let Some(image) = turn.images.image(turn.vertex, node) else { return 0.0 };
    match image.layer_bytes().0 {
        0 => 0.0,
        total => 100.0 * turn.stores.held(node).local(image).0 as f64 / total as f64,
    }
}

/// The score that layers are added to, for each open node.
#[expect(clippy::cast_precision_loss, reason = "totals are small")]
fn base_scores(turn: &Turn<'_>) -> Vec<f64> {
    let shares = |node: &usize| Shares::of(turn, *node);
    match turn.case.world.scoring.layers.base {
        Base::Kube => totals(turn).into_iter().map(|total| total as f64).collect(),
        Base::MostLoaded => turn.open.iter().map(|node| shares(node).load()).collect(),
        Base::LeastLoaded => turn.open.iter().map(|node| shares(node).room()).collect(),
    }
}

impl Judge for Layers {
    /// Eq. 6: what is held and what would be fetched fit the disk beside what containers ask for.
    fn refusal(&self, turn: &Turn<'_>, node: usize) -> Option<String> {
        let fetch = turn.images.fetch(turn.stores, turn.vertex, node).layer_bytes;
        let held = turn.stores.held(node).stored();
        let free = turn.ledger.free[node].storage - turn.case.graph.vertices[turn.vertex].need.storage;
        let over = free < i64::try_from(fetch.0.saturating_add(held.0)).unwrap_or(i64::MAX);
        (over && fetch.0 > 0).then(|| format!("no disk left for {fetch} of layers beside {held}"))
    }

    /// Eq. 4; of equals the one that fetches least.
    fn rate(&self, turn: &Turn<'_>) -> Vec<Rating> {
        let rating = |(node, base): (&usize, f64)| Rating {
            node: *node,
            score: self.weight(turn, *node) * layer_score(turn, *node) + base,
            tie: turn.images.fetch(turn.stores, turn.vertex, *node).layer_bytes.0,
        };
        turn.open.iter().zip(base_scores(turn)).map(rating).collect()
    }

    fn words(&self, turn: &Turn<'_>, rating: &Rating) -> String {
        let (weight, layers) = (self.weight(turn, rating.node), layer_score(turn, rating.node));
        let fetch = turn.images.fetch(turn.stores, turn.vertex, rating.node).bytes();
        let base = rating.score - weight * layers;
        format!("score {:.1} = {weight} x {layers:.1} for layers + {base:.1}, {fetch} to fetch", rating.score)
    }
}
