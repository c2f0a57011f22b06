//! One flow of ECSched with everything about it, for other solvers to check and for measurements.
//!
//! The arcs are all that are feasible, not only those that the solver looks at; costs are the integers that it works with.

use super::costs::{Column, Formula, cost};
use super::floor::Floor;
use super::rounds::{Problem, numbers};
use super::units::Units;
use super::vectors::Scale;
use super::{Batch, Method, Vector};

/// The flow network of a batch's first round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Parts of 65536 of the largest machine: what is free, and what is asked.
    pub availability: Vec<Vector>,
    pub demand: Vec<Vector>,
    /// How many containers each demand is the sum of, since they have to share a machine.
    pub members: Vec<usize>,
    /// Container, machine, cost.
    pub arcs: Vec<(usize, usize, i64)>,
}

/// What the solver makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Solution {
    pub cost: i64,
    pub scheduled: usize,
}

/// Reduced to one formula; the default and the baselines have none.
const fn formula(method: Method) -> Option<Formula> {
    match method {
        Method::EcschedDp | Method::EcschedDpOnce => Some(Formula::DotProduct),
        Method::EcschedMl => Some(Formula::MostLoaded),
        Method::Spread(_) | Method::MostLoaded(_) | Method::Packing(_) => None,
    }
}

impl Instance {
    /// Every feasible arc of the units of a batch. None: the method is no flow.
    #[must_use]
    pub fn of(batch: &Batch, method: Method) -> Option<Self> {
        let formula = formula(method)?;
        let units = Units::of(batch);
        let floor = Floor::new(batch, &units);
        let scale = Scale::of(batch);
        let columns: Vec<Column> =
            (0..batch.machines.len()).map(|machine| numbers(batch, &floor, &scale, machine)).collect();
        let demand: Vec<Vector> = units.units.iter().map(|unit| scale.parts(&unit.demand)).collect();
        let mut arcs = Vec::new();
        for (unit, demand) in demand.iter().enumerate() {
            let open = floor.machines(unit).iter().filter(|machine| floor.takes(**machine, unit));
            arcs.extend(open.map(|machine| (unit, *machine, cost(formula, demand, &columns[*machine]))));
        }
        Some(Self {
            availability: columns.iter().map(|column| column.parts).collect(),
            demand,
            members: units.units.iter().map(|unit| unit.members.len()).collect(),
            arcs,
        })
    }
}

/// A batch's first round, ready to be solved.
#[derive(Debug)]
pub struct Prepared(Problem);

impl Prepared {
    /// Columns, rows and what their arcs cost. None: the method is no flow.
    #[must_use]
    pub fn of(batch: &Batch, method: Method) -> Option<Self> {
        let formula = formula(method)?;
        let units = Units::of(batch);
        let floor = Floor::new(batch, &units);
        let all: Vec<usize> = (0..units.units.len()).collect();
        Some(Self(Problem::of(batch, &floor, formula, &all)))
    }

    /// The optimum over every feasible arc.
    #[must_use]
    pub fn solve(&self) -> Solution {
        let optimum = self.0.optimum();
        Solution { cost: optimum.cost, scheduled: optimum.flows.len() }
    }
}
