//! From new shares to plans: limits, what they make of the throughput, and words.

use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::units::{Bytes, MilliCores};
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Seat;
use crate::case::Case;
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::plan::{JobPlan, Prediction, Share};
use crate::streaming::predict::predict;
use crate::streaming::{nodes_of, routed};
use crate::world::World;

/// How the line of reasons about a share begins.
const LINE: &str = "cores of ";

/// A container's new limit, of so much room for all that are sized by class on its node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sized<'s> {
    pub(super) seat: &'s Seat,
    pub(super) cpu: i64,
    pub(super) room: i64,
}

/// One plan for each job that has a new limit.
pub(super) fn plans(world: &World<'_>, held: &HeldJobs<'_>, changes: &[Sized<'_>]) -> Vec<JobPlan> {
    let mut by_job: BTreeMap<&JobName, Vec<&Sized<'_>>> = BTreeMap::new();
    for change in changes {
        by_job.entry(&change.seat.job).or_default().push(change);
    }
    let mut after = held.clone();
    for (job, changes) in &by_job {
        if let Some(own) = after.get_mut(*job) {
            own.plan = Cow::Owned(with_shares(world, own, changes));
        }
    }
    let mut plans = Vec::new();
    for job in by_job.into_keys() {
        if let Some(prediction) = prediction(world, &after, job)
            && let Some(own) = after.get_mut(job)
        {
            own.plan.to_mut().prediction = prediction;
        }
        plans.extend(after.get(job).map(|own| own.plan.clone().into_owned()));
    }
    plans
}

fn with_shares(world: &World<'_>, held: &Held<'_>, changes: &[&Sized<'_>]) -> JobPlan {
    let graph = JobGraph::of(world, held.job, held.profiles);
    let mut plan = held.plan.clone().into_owned();
    for Sized { seat, cpu, room } in changes {
        let need = graph.vertices.iter().find(|vertex| vertex.name == seat.task);
        let needed = || need.map_or(Bytes(0), |vertex| Bytes(vertex.need.memory.max(0).unsigned_abs()));
        let memory = plan.shares.get(&seat.task).map_or_else(needed, |share| share.memory);
        plan.shares.insert(seat.task.clone(), Share { cpu: cores(*cpu), memory });
        say(&mut plan.reasons, &seat.task, line(world, (seat, *cpu, *room)));
    }
    plan
}

fn line(world: &World<'_>, (seat, cpu, room): (&Seat, i64, i64)) -> String {
    let (least, most) = (cores(seat.claim.least), cores(seat.claim.most));
    let (node, room) = (world.name(seat.node), cores(room));
    format!("{} of {room} on {node} for all that are sized by class; {least} to {most} for it", cores(cpu))
}

/// One line a task: the last one counts.
fn say(reasons: &mut Vec<String>, task: &TaskName, text: String) {
    let start = format!("{LINE}{task}: ");
    reasons.retain(|line| !line.starts_with(&start));
    reasons.push(start + &text);
}

/// With the limits as they are now; none where a task's node or a flow's link has gone, or nothing is counted in items.
fn prediction(world: &World<'_>, held: &HeldJobs<'_>, job: &JobName) -> Option<Prediction> {
    let own = held.get(job)?;
    let graph = JobGraph::of(world, own.job, own.profiles).with_shares(&own.plan.shares);
    let nodes = nodes_of(world, &graph, &own.plan)?;
    let counted = graph.vertices.iter().zip(&nodes).any(|(it, node)| it.sized && it.work_s[*node] > 0.0);
    if !counted || super::by_throughput(own) {
        return None;
    }
    let flows = routed(world, &graph, &nodes, &own.plan.flows)?;
    let ledger = Ledger::of(world, held.values().filter(|other| other.job.name != *job));
    Some(predict(&Case { world, graph: &graph, ledger: &ledger }, &nodes, &flows))
}

fn cores(cpu: i64) -> MilliCores {
    MilliCores(u32::try_from(cpu.max(0)).unwrap_or(u32::MAX))
}
