//! Room for those that wait: a unit that runs nowhere yet is moved to another machine where that makes the difference.
//!
//! Only units of this batch move, and they have not started, so a move costs nothing.

use super::Fit;
use super::order::Order;
use crate::batch::floor::Floor;
use crate::batch::params::{IMPROVED, LOOKS, LOOKS_EACH};

/// Tries for each that waits alone, the most urgent first.
pub(super) fn improve(floor: &mut Floor<'_>, order: &Order, fit: &Fit) {
    let mut search = Search { on: vec![Vec::new(); floor.free.len()], floor, fit, looks: LOOKS };
    for unit in 0..search.floor.places.len() {
        if let Some(machine) = search.floor.places[unit] {
            search.on[machine].push(unit);
        }
    }
    let waits =
        |floor: &Floor<'_>, unit: usize| floor.places[unit].is_none() && floor.unit(unit).gang.is_none();
    let waiting: Vec<usize> =
        order.bundles.iter().flatten().copied().filter(|unit| waits(search.floor, *unit)).collect();
    for unit in waiting.into_iter().take(IMPROVED) {
        if search.looks == 0 {
            return;
        }
        search.make_room(unit);
    }
}

struct Search<'f, 'a> {
    floor: &'f mut Floor<'a>,
    fit: &'f Fit,
    /// Units on each machine.
    on: Vec<Vec<usize>>,
    /// Pairs that may still be looked at.
    looks: usize,
}

impl Search<'_, '_> {
    fn make_room(&mut self, unit: usize) -> bool {
        let mut looks = LOOKS_EACH.min(self.looks);
        let spent = looks;
        let done = self.way(unit, &mut looks);
        self.looks -= spent - looks;
        let Some((machine, aside)) = done else { return false };
        if let Some((other, to)) = aside {
            self.floor.take_back(other);
            self.floor.place(other, to);
            self.on[machine].retain(|on| *on != other);
            self.on[to].push(other);
        }
        self.floor.place(unit, machine);
        self.on[machine].push(unit);
        true
    }

    /// A machine for it, and who goes where instead.
    fn way(&self, unit: usize, looks: &mut usize) -> Option<(usize, Option<(usize, usize)>)> {
        if let Some(machine) = self.fit.best(self.floor, unit) {
            return Some((machine, None));
        }
        let demand = self.floor.unit(unit).demand;
        for machine in self.floor.machines(unit) {
            if !self.floor.meets_nobody(*machine, unit) {
                continue;
            }
            for other in &self.on[*machine] {
                let held = self.floor.unit(*other).demand;
                let free = self.floor.free[*machine];
                let enough =
                    (0..free.len()).all(|resource| free[resource] + held[resource] >= demand[resource]);
                *looks = looks.checked_sub(1)?;
                if !enough {
                    continue;
                }
                let all = self.floor.machines(*other);
                *looks = looks.checked_sub(all.len())?;
                if let Some(to) = all.iter().find(|to| *to != machine && self.floor.takes(**to, *other)) {
                    return Some((*machine, Some((*other, *to))));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::units::Units;
    use crate::batch::{Batch, Machine, Packing, Request};

    #[test]
    fn a_unit_is_moved_aside_for_one_that_waits() {
        let machine = |size| Machine { capacity: [size, size, 0], free: [size, size, 0] };
        let request = |size| Request { demand: [size, size, 0], ..Request::default() };
        let batch = Batch {
            machines: vec![machine(4), machine(3)],
            requests: vec![request(2), request(2), request(3)],
        };
        let units = Units::of(&batch);
        let mut floor = Floor::new(&batch, &units);
        let fit = Fit::of(&batch, &floor);
        let order = Order::of(&floor, &fit, Packing::default());
        floor.place(0, 1);
        floor.place(1, 0);
        improve(&mut floor, &order, &fit);
        assert_eq!(floor.places, [Some(0), Some(0), Some(1)]);
    }
}
