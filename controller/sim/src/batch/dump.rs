//! One flow network as plain numbers, so that any other solver can be held against ours.

use edgeloom_sched::batch::{Instance, Prepared, Vector};
use serde::Serialize;

use super::contender::contenders;
use super::{Flow, Settings, batch, first_flow, workload};
use crate::SimError;
use crate::statistics::quantile;

/// As many as the paper.
const REPEATS: usize = 10;

/// The network of the first round: the vectors, and every arc of which the container fits the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dump {
    pub machines: usize,
    pub containers: usize,
    /// Thousandths would be too coarse: parts of 65536 of the largest machine's CPU, memory and storage.
    pub availability: Vec<Vector>,
    pub demand: Vec<Vector>,
    /// Containers that share a machine are one here, with the sum of their demands: how many.
    pub members: Vec<usize>,
    /// Container, machine, cost.
    pub arcs: Vec<(usize, usize, i64)>,
    pub unscheduled_cost: i64,
    /// Cost of our solution.
    pub optimum: i64,
    /// Costs and prices from the vectors, and the solution: medians of ten repeats on one processor.
    pub build_ms: f64,
    pub solve_ms: f64,
}

/// The first seed's containers under the first profile that is a flow.
///
/// # Errors
/// Settings that do not stand, or no profile that is a flow.
pub fn dump(settings: &Settings, trace: Option<&str>) -> Result<Dump, SimError> {
    settings.check()?;
    let (machines, arrivals) = workload(settings, trace, settings.seed_base)?;
    let batch = batch(&machines, &arrivals);
    let first = contenders(settings)?.into_iter().find(|one| Prepared::of(&batch, one.method).is_some());
    let contender = first.ok_or(SimError::NoFlow)?;
    let instance = Instance::of(&batch, contender.method).ok_or(SimError::NoFlow)?;
    let runs: Vec<Flow> = (0..REPEATS).filter_map(|_| first_flow(&machines, &arrivals, &contender)).collect();
    let Some(Flow { cost: optimum, .. }) = runs.first().copied() else { return Err(SimError::NoFlow) };
    let median = |of: fn(&Flow) -> f64| quantile(&runs.iter().map(of).collect::<Vec<_>>(), 0.5);
    Ok(Dump {
        machines: instance.availability.len(),
        containers: instance.demand.len(),
        availability: instance.availability,
        demand: instance.demand,
        members: instance.members,
        arcs: instance.arcs,
        unscheduled_cost: 0,
        optimum,
        build_ms: median(|run| run.build_ms),
        solve_ms: median(|run| run.solve_ms),
    })
}
