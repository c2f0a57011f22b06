//! ECSched: rounds of minimum-cost flows, each of which gives a machine at most one unit.
//!
//! A round takes what waits, prices it against what is free, solves, places, and the next one follows until one places
//! nothing. Constraint (1) holds in every round on the real amounts: an arc exists only where the unit fits,
//! and one unit a machine cannot overbook it.

use std::collections::{BTreeMap, BTreeSet};

use super::costs::{Arcs, Column, Formula, Row};
use super::floor::Floor;
use super::params::{HEARTBEAT_MOST, Rounds};
use super::start::start;
use super::vectors::{Scale, that_matter};
use super::{Batch, Vector};
use crate::opt::mincost::{Optimum, Units as Bounds, least_cost};

/// Places what it can.
pub(super) fn place(batch: &Batch, floor: &mut Floor<'_>, formula: Formula, rounds: Rounds) {
    let mut pending = longest_waiting(floor);
    let limit = if rounds == Rounds::One { 1 } else { usize::MAX };
    for _ in 0..limit {
        // What has no arc has no row; it may have one again when a gang gives way.
        let fitting: Vec<usize> = pending.iter().copied().filter(|unit| floor.has_room(*unit)).collect();
        let placed = round(batch, floor, formula, &fitting);
        pending.retain(|unit| floor.places[*unit].is_none());
        if placed == 0 && !drop_broken_gangs(floor, &mut pending) {
            return;
        }
    }
    drop_broken_gangs(floor, &mut pending);
}

/// A heartbeat takes so many at most.
fn longest_waiting(floor: &Floor<'_>) -> Vec<usize> {
    let mut all: Vec<usize> = (0..floor.places.len()).collect();
    all.sort_by(|x, y| floor.unit(*y).waited_s.total_cmp(&floor.unit(*x).waited_s).then(x.cmp(y)));
    all.truncate(HEARTBEAT_MOST);
    all.sort_unstable();
    all
}

/// Takes back gangs of which a unit waits. Whether any room came of it.
fn drop_broken_gangs(floor: &mut Floor<'_>, pending: &mut Vec<usize>) -> bool {
    let waits = |unit: &usize| floor.places[*unit].is_none();
    let broken: BTreeSet<usize> =
        (0..floor.places.len()).filter(waits).filter_map(|unit| floor.unit(unit).gang).collect();
    let of_broken =
        |floor: &Floor<'_>, unit: usize| floor.unit(unit).gang.is_some_and(|gang| broken.contains(&gang));
    let back: Vec<usize> = (0..floor.places.len())
        .filter(|unit| floor.places[*unit].is_some() && of_broken(floor, *unit))
        .collect();
    back.iter().for_each(|unit| floor.take_back(*unit));
    pending.retain(|unit| !of_broken(floor, *unit));
    !back.is_empty()
}

/// One flow. How many units it placed.
fn round(batch: &Batch, floor: &mut Floor<'_>, formula: Formula, pending: &[usize]) -> usize {
    let problem = Problem::of(batch, floor, formula, pending);
    let flows = problem.optimum().flows;
    let mut members = problem.members;
    for flow in &flows {
        if let Some(unit) = members[flow.row].pop() {
            floor.place(unit, problem.machines[flow.column]);
        }
    }
    flows.len()
}

/// A round in numbers.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) arcs: Arcs,
    /// Units of each row, last first.
    pub(super) members: Vec<Vec<usize>>,
    /// Of each column.
    pub(super) machines: Vec<usize>,
}

/// Units that see the same machines: those of one class that keep apart from the same groups.
fn sights(floor: &Floor<'_>, pending: &[usize]) -> Vec<Vec<usize>> {
    let mut sights: BTreeMap<(usize, &[usize]), Vec<usize>> = BTreeMap::new();
    for unit in pending {
        let wanted = floor.unit(*unit);
        sights.entry((wanted.class, &wanted.apart)).or_default().push(*unit);
    }
    sights.into_values().collect()
}

/// Units of equal demand are one row; the last of each comes first.
fn by_demand(floor: &Floor<'_>, units: &[usize]) -> BTreeMap<Vector, Vec<usize>> {
    let mut equal: BTreeMap<Vector, Vec<usize>> = BTreeMap::new();
    for unit in units.iter().rev() {
        equal.entry(floor.unit(*unit).demand).or_default().push(*unit);
    }
    equal
}

impl Problem {
    /// Only the machines that matter become columns.
    pub(super) fn of(batch: &Batch, floor: &Floor<'_>, formula: Formula, pending: &[usize]) -> Self {
        let sights = sights(floor, pending);
        let seen = |units: &Vec<usize>| {
            let machines = floor.machines(units[0]).iter().copied();
            let open: Vec<usize> =
                machines.filter(|machine| floor.meets_nobody(*machine, units[0])).collect();
            matter(batch, floor, formula, &open, pending.len())
        };
        let seen: Vec<Vec<usize>> = sights.iter().map(seen).collect();
        let all: BTreeSet<usize> = seen.iter().flatten().copied().collect();
        let machines: Vec<usize> = all.into_iter().collect();
        let column = |machine: &usize| column_of(&machines, *machine);
        let candidates = seen.iter().map(|class| class.iter().map(column).collect()).collect();
        let scale = Scale::of(batch);
        let columns = machines.iter().map(|machine| numbers(batch, floor, &scale, *machine)).collect();
        let (mut rows, mut members) = (Vec::new(), Vec::new());
        for (class, units) in sights.iter().enumerate() {
            for (demand, units) in by_demand(floor, units) {
                rows.push(Row { demand, parts: scale.parts(&demand), class });
                members.push(units);
            }
        }
        Self { arcs: Arcs::new(formula, rows, columns, candidates), members, machines }
    }

    pub(super) fn optimum(&self) -> Optimum {
        let rows: Vec<i64> = self.members.iter().map(|units| whole(units.len())).collect();
        let columns = vec![1; self.machines.len()];
        least_cost(Bounds { rows: &rows, columns: &columns }, &self.arcs, &start(self))
    }
}

fn matter(batch: &Batch, floor: &Floor<'_>, formula: Formula, open: &[usize], rows: usize) -> Vec<usize> {
    let free = |machine: usize| floor.free[machine];
    match formula {
        Formula::DotProduct => that_matter(open, free, rows),
        Formula::MostLoaded => {
            let scale = Scale::of(batch);
            let load = |machine| numbers(batch, floor, &scale, machine).load;
            that_matter(
                open,
                |machine| [free(machine)[0], free(machine)[1], free(machine)[2], load(machine)],
                rows,
            )
        }
    }
}

/// A machine as it is now.
pub(super) fn numbers(batch: &Batch, floor: &Floor<'_>, scale: &Scale, machine: usize) -> Column {
    let free = floor.free[machine];
    let capacity = batch.machines[machine].capacity;
    let used: Vector = std::array::from_fn(|resource| capacity[resource] - free[resource]);
    Column { free, parts: scale.parts(&free), load: scale.parts(&used).iter().sum() }
}

fn column_of(machines: &[usize], machine: usize) -> u32 {
    short(machines.binary_search(&machine).unwrap_or_default())
}

#[expect(clippy::cast_possible_truncation, reason = "machines are far fewer than 2^32")]
fn short(column: usize) -> u32 {
    column as u32
}

#[expect(clippy::cast_possible_wrap, reason = "units are far fewer than 2^63")]
fn whole(count: usize) -> i64 {
    count as i64
}
