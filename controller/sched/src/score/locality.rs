//! ImageLocality: nodes that have the task's images score higher, the more so the more nodes have them.

use super::BEST;
use crate::scoring::Locality;

/// An image that the node has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    pub(super) bytes: u64,
    /// Nodes that have it.
    pub(super) nodes: u64,
}

/// For one node. Images count in proportion to how many of `total` nodes have them, so that not every
/// container goes where one image happens to be.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "images stay far below 2^52 bytes"
)]
pub(super) fn image_locality(present: &[Present], total: u64, containers: u64, bounds: Locality) -> i64 {
    let spread = |image: &Present| (image.bytes as f64 * (image.nodes as f64 / total.max(1) as f64)) as u64;
    let sum: u64 = present.iter().map(spread).sum();
    let (least, most) = (bounds.least.0, bounds.most.0.saturating_mul(containers));
    if most <= least {
        return 0;
    }
    let over = u128::from(sum.clamp(least, most) - least);
    i64::try_from(over * u128::from(BEST.unsigned_abs()) / u128::from(most - least)).unwrap_or(BEST)
}
