//! Who goes first, and placing in that order.

use super::{Fit, Objective};
use crate::batch::Packing;
use crate::batch::floor::Floor;

/// Bundles that wait and would fit if they were alone, the most urgent first: a gang is one, every other unit is alone.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) bundles: Vec<Vec<usize>>,
    /// Of each unit: what it takes of what is free in all, the scarcer resource the more.
    size: Vec<f64>,
    /// Of each unit: its size as it counts in the order.
    key: Vec<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "a size needs no 53 bits")]
impl Order {
    pub(super) fn of(floor: &Floor<'_>, fit: &Fit, packing: Packing) -> Self {
        let free: [f64; 2] = std::array::from_fn(|resource| {
            floor.free.iter().map(|free| free[resource].max(0) as f64).sum::<f64>().max(1.0)
        });
        let wanted: [f64; 2] = std::array::from_fn(|resource| {
            floor.units.units.iter().map(|unit| unit.demand[resource] as f64).sum()
        });
        // How many times over a resource is asked for: what is plenty counts for little.
        let scarce = [wanted[0] / free[0], wanted[1] / free[1]].map(|times| times.max(1e-3));
        let total = scarce[0] + scarce[1];
        let size: Vec<f64> = floor
            .units
            .units
            .iter()
            .map(|unit| {
                let [cpu, memory] = fit.parts(&unit.demand);
                ((scarce[0] * cpu + scarce[1] * memory) / total).max(1e-9)
            })
            .collect();
        let ages = floor.units.units.iter().map(|unit| unit.waited_s / packing.ageing_s.max(1e-3));
        let key = size.iter().zip(ages).map(|(size, age)| match packing.objective {
            Objective::Count => *size,
            Objective::Utilisation => -*size,
            Objective::Completion => *size / (1.0 + age).sqrt(),
        });
        let key: Vec<f64> = key.collect();
        let mut bundles = floor.units.bundles();
        // What fits nowhere now fits nowhere later either: a decision only takes room.
        bundles.retain(|bundle| {
            bundle.iter().all(|unit| floor.places[*unit].is_none() && floor.has_room(*unit))
        });
        let sum = |bundle: &[usize]| bundle.iter().map(|unit| key[*unit]).sum::<f64>();
        bundles.sort_by(|x, y| sum(x).total_cmp(&sum(y)));
        Self { bundles, size, key }
    }

    /// In order, each where it fits best, if anywhere.
    pub(super) fn greedy<'a>(&self, mut floor: Floor<'a>, fit: &Fit) -> Floor<'a> {
        self.fill(&mut floor, fit, 0);
        floor
    }

    fn fill(&self, floor: &mut Floor<'_>, fit: &Fit, from: usize) {
        for bundle in &self.bundles[from..] {
            floor.all_or_none(bundle, |floor, unit| fit.best(floor, unit));
        }
    }

    /// As many of the first as find room when the large ones of them are placed before the small ones; then the
    /// rest in order.
    pub(super) fn largest_prefix<'a>(&self, empty: Floor<'a>, fit: &Fit) -> Floor<'a> {
        let (mut some, mut all) = (0, self.bundles.len());
        let mut best = empty.clone();
        while some < all {
            let count = (some + all).div_ceil(2);
            match self.large_first(empty.clone(), fit, count) {
                Some(floor) => (best, some) = (floor, count),
                None => all = count - 1,
            }
        }
        self.fill(&mut best, fit, some);
        best
    }

    fn large_first<'a>(&self, mut floor: Floor<'a>, fit: &Fit, count: usize) -> Option<Floor<'a>> {
        let mut units: Vec<usize> = self.bundles[..count].iter().flatten().copied().collect();
        units.sort_by(|x, y| self.size[*y].total_cmp(&self.size[*x]).then(x.cmp(y)));
        floor.all_or_none(&units, |floor, unit| fit.best(floor, unit)).then_some(floor)
    }

    /// Size of all that is placed.
    pub(super) fn volume(&self, floor: &Floor<'_>) -> f64 {
        floor.places.iter().zip(&self.size).filter(|(place, _)| place.is_some()).map(|(_, size)| size).sum()
    }

    /// Requests placed, each the more the longer its unit waits.
    pub(super) fn urgency(&self, floor: &Floor<'_>) -> f64 {
        let placed = (0..floor.places.len()).filter(|unit| floor.places[*unit].is_some());
        placed
            .map(|unit| floor.unit(unit).members.len() as f64 * self.size[unit] / self.key[unit].abs())
            .sum()
    }
}
