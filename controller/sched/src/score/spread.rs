//! PodTopologySpread: places with fewer of the same tasks score higher.

use super::BEST;

/// One constraint at one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    /// Matching tasks in the node's place.
    pub(super) count: u32,
    /// Places that there are.
    pub(super) places: usize,
    pub(super) max_skew: u32,
}

/// The sum over a node's constraints; less is better. Constraints with few places count less, since tasks
/// are bound to meet there.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "counts are small")]
pub(super) fn crowding(crowds: &[Crowd]) -> i64 {
    let one = |crowd: &Crowd| {
        f64::from(crowd.count) * (crowd.places as f64 + 2.0).ln() + (f64::from(crowd.max_skew) - 1.0)
    };
    crowds.iter().map(one).sum::<f64>().round() as i64
}

/// Scores of all nodes; none is a node that lacks a constraint's key.
pub(super) fn normalise(raw: &[Option<i64>]) -> Vec<i64> {
    let known = || raw.iter().flatten().copied();
    let (least, most) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
    let score = |raw: &Option<i64>| match raw {
        None => 0,
        Some(_) if most == 0 => BEST,
        Some(raw) => BEST * (most + least - raw) / most,
    };
    raw.iter().map(score).collect()
}
