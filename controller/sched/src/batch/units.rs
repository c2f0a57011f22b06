//! What is placed as one: requests that have to share a machine become one unit with the sum of their demands.
//!
//! The paper's aggregator node carries a group's flow as well, but two units of flow through it may part; a sum
//! cannot. Requests that may run on the same machines share a class, so that machines are looked through once
//! a class. What contradicts itself is refused here, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{Batch, Refusal, Vector, fits};

/// Requests that go to one machine together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    pub(super) demand: Vector,
    /// Which of `Units::classes` says where it may run.
    pub(super) class: usize,
    /// Groups of which no two share a machine.
    pub(super) apart: Vec<usize>,
    pub(super) gang: Option<usize>,
    pub(super) waited_s: f64,
    /// Requests by index.
    pub(super) members: Vec<usize>,
}

/// All of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Units {
    pub(super) units: Vec<Unit>,
    /// Machines by index, ascending.
    pub(super) classes: Vec<Vec<usize>>,
    /// Requests that no machine could take even if it were empty.
    pub(super) refused: Vec<(usize, Refusal)>,
}

impl Units {
    /// Merges groups; a gang with a member that fits nowhere is refused whole.
    pub(super) fn of(batch: &Batch) -> Self {
        let mut all = Self { units: Vec::new(), classes: Vec::new(), refused: Vec::new() };
        let mut classes: BTreeMap<Option<BTreeSet<usize>>, usize> = BTreeMap::new();
        let mut lost = BTreeSet::new();
        let mut refused = Vec::new();
        for members in grouped(batch.requests.iter().map(|request| request.together)) {
            match merged(batch, members, &mut classes) {
                Ok(unit) => all.units.push(unit),
                Err((members, refusal)) => {
                    lost.extend(members.iter().filter_map(|member| batch.requests[*member].gang));
                    refused.extend(members.into_iter().map(|member| (member, refusal)));
                }
            }
        }
        let every = || (0..batch.machines.len()).collect();
        all.classes = vec![Vec::new(); classes.len()];
        for (machines, class) in classes {
            all.classes[class] = machines.map_or_else(every, |some| some.into_iter().collect());
        }
        all.refuse_unfit(batch, &mut refused, &mut lost);
        let whole = |unit: &Unit| unit.gang.is_none_or(|gang| !lost.contains(&gang));
        let (kept, without): (Vec<Unit>, Vec<Unit>) =
            std::mem::take(&mut all.units).into_iter().partition(whole);
        let members = without.into_iter().flat_map(|unit| unit.members);
        refused.extend(members.map(|member| (member, Refusal::Gang)));
        refused.sort_unstable_by_key(|(member, _)| *member);
        (all.units, all.refused) = (kept, refused);
        all
    }

    /// What is placed whole or not at all: a gang's units, any other alone; in the order of their first units.
    pub(super) fn bundles(&self) -> Vec<Vec<usize>> {
        let gangs = self.units.iter().map(|unit| unit.gang);
        grouped(gangs)
    }

    /// Takes out what fits on none of its machines, even an empty one.
    fn refuse_unfit(
        &mut self,
        batch: &Batch,
        refused: &mut Vec<(usize, Refusal)>,
        lost: &mut BTreeSet<usize>,
    ) {
        let classes = &self.classes;
        self.units.retain(|unit| {
            let machines = &classes[unit.class];
            if machines.iter().any(|machine| fits(&batch.machines[*machine].capacity, &unit.demand)) {
                return true;
            }
            lost.extend(unit.gang);
            refused.extend(unit.members.iter().map(|member| (*member, Refusal::TooLarge)));
            false
        });
    }
}

/// Indices of the same number together, those without a number alone; in the order of their first ones.
fn grouped(numbers: impl Iterator<Item = Option<usize>>) -> Vec<Vec<usize>> {
    let mut known: BTreeMap<usize, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, number) in numbers.enumerate() {
        match number {
            Some(number) if known.contains_key(&number) => groups[known[&number]].push(at),
            number => {
                known.extend(number.map(|number| (number, groups.len())));
                groups.push(vec![at]);
            }
        }
    }
    groups
}

type Classes = BTreeMap<Option<BTreeSet<usize>>, usize>;

fn merged(batch: &Batch, members: Vec<usize>, classes: &mut Classes) -> Result<Unit, (Vec<usize>, Refusal)> {
    let requests = || members.iter().map(|member| &batch.requests[*member]);
    let mut apart: Vec<usize> = requests().filter_map(|request| request.apart).collect();
    apart.sort_unstable();
    let gang = requests().find_map(|request| request.gang);
    let one_gang = requests().all(|request| request.gang == gang);
    if apart.windows(2).any(|pair| pair[0] == pair[1]) || !one_gang {
        return Err((members, Refusal::Contradiction));
    }
    let mut demand = Vector::default();
    let mut machines: Option<BTreeSet<usize>> = None;
    for request in requests() {
        for (sum, one) in demand.iter_mut().zip(request.demand) {
            *sum = sum.saturating_add(one.max(0));
        }
        if let Some(own) = &request.machines {
            let both = own.iter().filter(|machine| machines.as_ref().is_none_or(|all| all.contains(machine)));
            machines = Some(both.copied().filter(|machine| *machine < batch.machines.len()).collect());
        }
    }
    if machines.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err((members, Refusal::NoMachine));
    }
    let waited_s = requests().map(|request| request.waited_s).fold(0.0, f64::max);
    let next = classes.len();
    let class = *classes.entry(machines).or_insert(next);
    Ok(Unit { demand, class, apart, gang, waited_s, members })
}
