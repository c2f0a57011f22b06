//! The baselines: one request at a time, in the order of arrival.

use super::floor::Floor;
use super::{Batch, Blocked};

/// Which machine of those with room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    LeastUsed,
    MostUsed,
}

/// Places what it can; a gang as a whole, when its first member's turn comes.
pub(super) fn place(batch: &Batch, floor: &mut Floor<'_>, rank: Rank, blocked: Blocked) {
    let mut bundles = floor.units.bundles();
    let waited = |bundle: &[usize]| floor.unit(bundle[0]).waited_s;
    bundles.sort_by(|x, y| waited(y).total_cmp(&waited(x)));
    for bundle in bundles {
        let placed = floor.all_or_none(&bundle, |floor, unit| best(batch, floor, unit, rank));
        if !placed && blocked == Blocked::Queue {
            return;
        }
    }
}

fn best(batch: &Batch, floor: &Floor<'_>, unit: usize, rank: Rank) -> Option<usize> {
    let open = floor.machines(unit).iter().copied().filter(|machine| floor.takes(*machine, unit));
    let ranked = open.map(|machine| (used(batch, floor, machine), machine));
    let ranked = ranked.map(|(used, machine)| (if rank == Rank::MostUsed { -used } else { used }, machine));
    ranked.min_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1))).map(|(_, machine)| machine)
}

/// Sum of used shares of CPU and memory.
#[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
fn used(batch: &Batch, floor: &Floor<'_>, machine: usize) -> f64 {
    let (capacity, free) = (&batch.machines[machine].capacity, &floor.free[machine]);
    let share = |resource: usize| 1.0 - free[resource] as f64 / capacity[resource].max(1) as f64;
    share(0) + share(1)
}
