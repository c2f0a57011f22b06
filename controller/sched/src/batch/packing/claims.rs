//! Machines kept for those who have waited too long.
//!
//! Where there is always more to do than room, a large container never finds its room: what becomes free goes to small ones
//! at once. So one that has waited for longer than the patience goes first, and if it fits nowhere it claims the machine where
//! the least is missing, which takes nobody else until it runs. What is free there only grows meanwhile, so the claim
//! is the same at the next decision, though nothing is remembered.

use super::Fit;
use crate::batch::floor::Floor;
use crate::batch::params::CLAIMED_PART;
use crate::batch::{Packing, Vector};

/// Places those whose patience is over, or closes machines for them.
pub(super) fn claim(floor: &mut Floor<'_>, fit: &Fit, packing: Packing, capacity: &[Vector]) {
    let mut left = claims(capacity.len());
    for unit in impatient(floor, packing.patience_s) {
        if let Some(machine) = fit.best(floor, unit) {
            floor.place(unit, machine);
        } else if left > 0
            && let Some(machine) = soonest(floor, unit, capacity)
        {
            floor.close(machine);
            left -= 1;
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of the machines is no more than all"
)]
fn claims(machines: usize) -> usize {
    (machines as f64 * CLAIMED_PART).ceil() as usize
}

/// Units that are no part of a gang, the longest wait first.
fn impatient(floor: &Floor<'_>, patience_s: f64) -> Vec<usize> {
    let waits = |unit: &usize| floor.unit(*unit).gang.is_none() && floor.unit(*unit).waited_s >= patience_s;
    let mut all: Vec<usize> = (0..floor.places.len()).filter(waits).collect();
    all.sort_by(|x, y| floor.unit(*y).waited_s.total_cmp(&floor.unit(*x).waited_s).then(x.cmp(y)));
    all
}

/// The machine that is large enough and of which the least part has to become free.
fn soonest(floor: &Floor<'_>, unit: usize, capacity: &[Vector]) -> Option<usize> {
    let demand = &floor.unit(unit).demand;
    let open = floor.machines(unit).iter().copied().filter(|machine| {
        floor.is_open(*machine)
            && floor.meets_nobody(*machine, unit)
            && crate::batch::fits(&capacity[*machine], demand)
    });
    let ranked = open.map(|machine| (missing(&floor.free[machine], demand, &capacity[machine]), machine));
    ranked.min_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1))).map(|(_, machine)| machine)
}

#[expect(clippy::cast_precision_loss, reason = "a part needs no 53 bits")]
fn missing(free: &Vector, demand: &Vector, capacity: &Vector) -> f64 {
    let part = |at: usize| (demand[at] - free[at]).max(0) as f64 / capacity[at].max(1) as f64;
    (0..demand.len()).map(part).fold(0.0, f64::max)
}
