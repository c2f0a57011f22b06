//! NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation.

use super::BEST;
use crate::filter::Amount;

/// What a container counts for that asks for none: thousandths of a core, and bytes.
const UNASKED_CPU: i64 = 100;
const UNASKED_MEMORY: i64 = 200 << 20;

/// What LeastAllocated counts on top of a request.
pub(crate) fn unasked(need: &Amount) -> Amount {
    let cpu = if need.cpu == 0 { UNASKED_CPU } else { 0 };
    let memory = if need.memory == 0 { UNASKED_MEMORY } else { 0 };
    Amount { cpu, memory, storage: 0 }
}

/// One resource of a node, the task's request included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) requested: i64,
    pub(super) allocatable: i64,
    pub(super) weight: i64,
}

/// The weighted mean of the free shares; a resource that the node does not have is left out.
pub(super) fn least_allocated(uses: &[Use]) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for used in uses.iter().filter(|used| used.allocatable > 0) {
        let free = (used.allocatable - used.requested).max(0);
        sum += used.weight * share(free, used.allocatable);
        weights += used.weight;
    }
    if weights == 0 { 0 } else { sum / weights }
}

/// `part * 100 / whole` for sizes whose product may not fit.
fn share(part: i64, whole: i64) -> i64 {
    let share = i128::from(part) * i128::from(BEST) / i128::from(whole);
    i64::try_from(share).unwrap_or(BEST)
}

/// 100 less the standard deviation of the used shares, each at most 1.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "shares need no 53 bits")]
pub(super) fn balanced_allocation(uses: &[Use]) -> i64 {
    let shares: Vec<f64> = uses
        .iter()
        .filter(|used| used.allocatable > 0)
        .map(|used| (used.requested as f64 / used.allocatable as f64).min(1.0))
        .collect();
    let deviation = match shares[..] {
        [x, y] => ((x - y) / 2.0).abs(),
        [] | [_] => 0.0,
        _ => {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            (shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len() as f64).sqrt()
        }
    };
    ((1.0 - deviation) * BEST as f64) as i64
}
