//! The baselines: a node for each task as the Kubernetes scheduler chooses it, or Docker Swarm.
//!
//! In: a waiting job. Out: a placement, its flows routed like those of `otfs`. Kubernetes takes the node
//! with the largest total and draws among equals; Swarm packs nodes full (`swarm`), spreads
//! (`swarm-spread`) or draws (`swarm-random`), as classic Swarm's strategies of these names. Draws come from
//! the snapshot's seed and the names, so that a decision can be repeated.

mod draw;

use draw::draw;

use crate::one_by_one::{Judge, Rating, Turn};
use crate::score::kube::{totals, words};
use crate::score::load::Shares;

/// Whose rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    Kube,
    Swarm,
    SwarmSpread,
    SwarmRandom,
}

impl Baseline {
    /// The profile's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Kube => "kube",
            Self::Swarm => "swarm",
            Self::SwarmSpread => "swarm-spread",
            Self::SwarmRandom => "swarm-random",
        }
    }
}

impl Judge for Baseline {
    fn rate(&self, turn: &Turn<'_>) -> Vec<Rating> {
        let kube = if *self == Self::Kube { totals(turn) } else { Vec::new() };
        let rating = |(at, node): (usize, &usize)| {
            let (node, shares) = (*node, Shares::of(turn, *node));
            #[expect(clippy::cast_precision_loss, reason = "totals are small")]
            let (score, tie) = match self {
                Self::Kube => (kube[at] as f64, draw(turn, node)),
                Self::Swarm => (shares.load(), 0),
                Self::SwarmSpread => (shares.room(), u64::from(turn.ledger.slots[node])),
                Self::SwarmRandom => (0.0, draw(turn, node)),
            };
            Rating { node, score, tie }
        };
        turn.open.iter().enumerate().map(rating).collect()
    }

    fn words(&self, turn: &Turn<'_>, rating: &Rating) -> String {
        let shares = Shares::of(turn, rating.node);
        match self {
            Self::Kube => format!("total {} ({})", rating.score, words(turn, rating.node)),
            Self::Swarm | Self::SwarmSpread => format!("{:.1}% loaded with it", shares.load()),
            Self::SwarmRandom => "drawn".to_owned(),
        }
    }
}
