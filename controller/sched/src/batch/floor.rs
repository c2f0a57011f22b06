//! What machines have left while units are placed and taken back.

use std::collections::BTreeSet;

use super::units::{Unit, Units};
use super::{Batch, Vector, fits};

/// Free amounts, and who is where. Nothing is ever overbooked.
#[derive(Debug, Clone)]
pub(super) struct Floor<'a> {
    pub(super) units: &'a Units,
    pub(super) free: Vec<Vector>,
    /// Of each unit.
    pub(super) places: Vec<Option<usize>>,
    /// Group and machine of every placed unit that keeps apart.
    apart: BTreeSet<(usize, usize)>,
    /// Machines that take nobody.
    closed: BTreeSet<usize>,
}

impl<'a> Floor<'a> {
    pub(super) fn new(batch: &Batch, units: &'a Units) -> Self {
        let free = batch.machines.iter().map(|machine| machine.free).collect();
        Self {
            units,
            free,
            places: vec![None; units.units.len()],
            apart: BTreeSet::new(),
            closed: BTreeSet::new(),
        }
    }

    pub(super) fn unit(&self, unit: usize) -> &'a Unit {
        &self.units.units[unit]
    }

    /// Machines that it may run on, whether there is room or not.
    pub(super) fn machines(&self, unit: usize) -> &'a [usize] {
        &self.units.classes[self.unit(unit).class]
    }

    /// Room is there, and nobody it keeps apart from.
    pub(super) fn takes(&self, machine: usize, unit: usize) -> bool {
        fits(&self.free[machine], &self.unit(unit).demand)
            && self.is_open(machine)
            && self.meets_nobody(machine, unit)
    }

    /// Some machine takes it.
    pub(super) fn has_room(&self, unit: usize) -> bool {
        self.machines(unit).iter().any(|machine| self.takes(*machine, unit))
    }

    pub(super) fn is_open(&self, machine: usize) -> bool {
        !self.closed.contains(&machine)
    }

    /// Nobody is placed there any more.
    pub(super) fn close(&mut self, machine: usize) {
        self.closed.insert(machine);
    }

    pub(super) fn meets_nobody(&self, machine: usize, unit: usize) -> bool {
        self.unit(unit).apart.iter().all(|group| !self.apart.contains(&(*group, machine)))
    }

    pub(super) fn place(&mut self, unit: usize, machine: usize) {
        let wanted = self.unit(unit);
        subtract(&mut self.free[machine], &wanted.demand);
        self.apart.extend(wanted.apart.iter().map(|group| (*group, machine)));
        self.places[unit] = Some(machine);
    }

    pub(super) fn take_back(&mut self, unit: usize) {
        let Some(machine) = self.places[unit].take() else { return };
        let held = self.unit(unit);
        for (free, demand) in self.free[machine].iter_mut().zip(held.demand) {
            *free += demand;
        }
        for group in &held.apart {
            self.apart.remove(&(*group, machine));
        }
    }

    /// Places each where `choose` says; as soon as it says nowhere, none of them is placed.
    pub(super) fn all_or_none(
        &mut self,
        units: &[usize],
        choose: impl Fn(&Self, usize) -> Option<usize>,
    ) -> bool {
        for unit in units {
            let Some(machine) = choose(self, *unit) else {
                units.iter().for_each(|unit| self.take_back(*unit));
                return false;
            };
            self.place(*unit, machine);
        }
        true
    }
}

fn subtract(free: &mut Vector, demand: &Vector) {
    for (free, demand) in free.iter_mut().zip(demand) {
        *free -= demand;
    }
}
