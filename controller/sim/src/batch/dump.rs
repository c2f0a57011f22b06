//! One flow network as plain numbers, so that any other solver can be held against ours.

use edgeloom_sched::batch::{Instance, Prepared, Vector};
use serde::Serialize;

use super::contender::contenders;
use super::{Settings, batch, workload};
use crate::SimError;

/// The network of the first round: the vectors, and every arc of which the container fits the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dump {
    pub machines: usize,
    pub containers: usize,
    /// Thousandths would be too coarse: parts of 65536 of the largest machine's CPU, memory and storage.
    pub availability: Vec<Vector>,
    pub demand: Vec<Vector>,
    /// Container, machine, cost.
    pub arcs: Vec<(usize, usize, i64)>,
    pub unscheduled_cost: i64,
    /// Cost of our solution.
    pub optimum: i64,
}

/// The first seed's containers under the first profile that is a flow.
///
/// # Errors
/// Settings that do not stand, or no profile that is a flow.
pub fn dump(settings: &Settings, trace: Option<&str>) -> Result<Dump, SimError> {
    settings.check()?;
    let (machines, arrivals) = workload(settings, trace, settings.seed_base)?;
    let batch = batch(&machines, &arrivals);
    let first = contenders(settings)?.into_iter().find_map(|one| {
        let instance = Instance::of(&batch, one.method)?;
        Some((instance, Prepared::of(&batch, one.method)?.solve()))
    });
    let (instance, solution) = first.ok_or(SimError::NoFlow)?;
    Ok(Dump {
        machines: instance.availability.len(),
        containers: instance.demand.len(),
        availability: instance.availability,
        demand: instance.demand,
        arcs: instance.arcs,
        unscheduled_cost: 0,
        optimum: solution.cost,
    })
}
