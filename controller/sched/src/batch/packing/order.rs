//! Who goes first, and placing in that order.

use super::{Fit, Objective};
use crate::batch::Packing;
use crate::batch::floor::Floor;

/// Bundles that wait and would fit if they were alone, the most urgent first: a gang is one, every other unit is alone.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) bundles: Vec<Vec<usize>>,
    /// Of each unit, as [`Fit::size`] has it.
    size: Vec<f64>,
    /// Of each unit: its size as it counts in the order.
    key: Vec<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "a size needs no 53 bits")]
impl Order {
    pub(super) fn of(floor: &Floor<'_>, fit: &Fit, packing: Packing) -> Self {
        let size: Vec<f64> = floor.units.units.iter().map(|unit| fit.size(&unit.demand)).collect();
        let waits = floor.units.units.iter().map(|unit| unit.waited_s);
        let key = size.iter().zip(waits).map(|(size, waited_s)| match packing.objective {
            Objective::Count => *size,
            Objective::Utilisation => -*size,
            Objective::Completion => *size / weight(packing, waited_s),
        });
        let key: Vec<f64> = key.collect();
        let mut bundles = floor.units.bundles();
        // What fits nowhere now fits nowhere later either: a decision only takes room.
        bundles.retain(|bundle| {
            bundle.iter().all(|unit| floor.places[*unit].is_none() && floor.has_room(*unit))
        });
        // What a request takes: several that go together are worth as many as they are.
        let each = |bundle: &[usize]| {
            let requests: usize = bundle.iter().map(|unit| floor.unit(*unit).members.len()).sum();
            bundle.iter().map(|unit| key[*unit]).sum::<f64>() / requests.max(1) as f64
        };
        bundles.sort_by(|x, y| each(x).total_cmp(&each(y)));
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

/// How many times smaller a wait makes a unit: it grows slowly at first, as the cube root, and steeply once the patience
/// is half over.
fn weight(packing: Packing, waited_s: f64) -> f64 {
    let age = (1.0 + waited_s / packing.ageing_s.max(1e-3)).cbrt();
    age * (1.0 + (2.0 * waited_s / packing.patience_s.max(1e-3)).powi(4))
}
