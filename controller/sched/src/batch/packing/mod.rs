//! The default's stage: whole batches as vectors, with all of a machine's room.
//!
//! Who goes first says the objective; the largest part of that order that fits when its large ones are placed first is
//! placed, the rest in order where there is room; then units are moved aside for those that wait. Several orders are
//! tried and the best result is kept.

mod claims;
mod improve;
mod order;

use super::costs::Formula;
use super::floor::Floor;
use super::params::{IMBALANCE, Rounds};
use super::{Batch, Packing, Vector, rounds};
use order::Order;

/// What a batch is to achieve; the three are at odds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// As many containers as can be: small ones first.
    Count,
    /// As much of the machines in use as can be: large ones first.
    Utilisation,
    /// Short mean completion: small ones first, but a request's size counts for the less the longer it waits, and one that has waited
    /// too long claims a machine.
    Completion,
}

impl Objective {
    pub const ALL: [Self; 3] = [Self::Completion, Self::Count, Self::Utilisation];

    /// As in settings and reasons.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Utilisation => "utilisation",
            Self::Completion => "completion",
        }
    }
}

/// The best floor found.
pub(super) fn place<'a>(batch: &Batch, mut empty: Floor<'a>, packing: Packing) -> Floor<'a> {
    let fit = Fit::of(batch, &empty);
    if packing.objective == Objective::Completion {
        let capacity: Vec<Vector> = batch.machines.iter().map(|machine| machine.capacity).collect();
        claims::claim(&mut empty, &fit, packing, &capacity);
    }
    let order = Order::of(&empty, &fit, packing);
    let mut floors = vec![order.greedy(empty.clone(), &fit)];
    if packing.objective == Objective::Utilisation {
        let mut flow = empty;
        rounds::place(batch, &mut flow, Formula::DotProduct, Rounds::All);
        floors.push(flow);
    } else if floors[0].places.contains(&None) {
        floors.push(order.largest_prefix(empty, &fit));
    }
    for floor in &mut floors {
        improve::improve(floor, &order, &fit);
    }
    let worth = |floor: &Floor<'_>| match packing.objective {
        Objective::Utilisation => order.volume(floor),
        Objective::Count | Objective::Completion => order.urgency(floor),
    };
    // Of equals the first.
    let best = floors.into_iter().rev().max_by(|x, y| worth(x).total_cmp(&worth(y)));
    best.expect("one order at least was tried")
}

/// How well a unit fits a machine.
#[derive(Debug)]
pub(super) struct Fit {
    /// One over the largest capacity, of CPU and memory.
    part: [f64; 2],
    /// What a part of each resource is worth; together 1.
    price: [f64; 2],
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no 53 bits")]
impl Fit {
    /// Prices are the squares of how many times over a resource is asked for: what is plenty costs next to nothing,
    /// as the dual of a linear program would have it, and equal scarcity costs the same.
    fn of(batch: &Batch, floor: &Floor<'_>) -> Self {
        let most = |resource: usize| {
            batch.machines.iter().map(|machine| machine.capacity[resource]).fold(1, i64::max)
        };
        let price = [0, 1].map(|resource| {
            let wanted: f64 = floor.units.units.iter().map(|unit| unit.demand[resource] as f64).sum();
            let free: f64 = floor.free.iter().map(|free| free[resource].max(0) as f64).sum();
            (wanted / free.max(1.0)).clamp(1e-3, 1e6).powi(2)
        });
        let total = price[0] + price[1];
        Self { part: [1.0 / most(0) as f64, 1.0 / most(1) as f64], price: price.map(|one| one / total) }
    }

    /// Of CPU and memory, as parts of the largest machine's.
    fn parts(&self, amounts: &Vector) -> [f64; 2] {
        [amounts[0] as f64 * self.part[0], amounts[1] as f64 * self.part[1]]
    }

    /// What it takes, at the resources' prices; above nothing.
    fn size(&self, demand: &Vector) -> f64 {
        let [cpu, memory] = self.parts(demand);
        (self.price[0] * cpu + self.price[1] * memory).max(1e-9)
    }

    /// The less of what is dear it leaves, and the more evenly where both are, the better: the least is best.
    fn score(&self, free: &Vector, demand: &Vector) -> f64 {
        let ([f0, f1], [d0, d1]) = (self.parts(free), self.parts(demand));
        let (cpu, memory) = (f0 - d0, f1 - d1);
        let [p0, p1] = self.price;
        p0 * cpu + p1 * memory + IMBALANCE * p0.min(p1) * (cpu - memory).abs()
    }

    /// The machine that it fits best; of equals the first.
    fn best(&self, floor: &Floor<'_>, unit: usize) -> Option<usize> {
        let demand = &floor.unit(unit).demand;
        let mut best = (f64::INFINITY, None);
        for machine in floor.machines(unit) {
            let score = self.score(&floor.free[*machine], demand);
            if score < best.0 && floor.takes(*machine, unit) {
                best = (score, Some(*machine));
            }
        }
        best.1
    }
}
