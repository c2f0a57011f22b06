//! The rules between tasks, and taints: asked of jobs that are placed anew, since what runs may outlive the
//! tasks that it was placed by.

use super::Violation;
use crate::case::Case;
use crate::filter::untolerated;
use crate::job_graph::JobGraph;
use crate::ledger::{HeldJobs, Ledger};
use crate::plan::JobPlan;
use crate::world::World;

/// Affinity, spread, ports, volumes, numbers of containers and taints.
pub(super) fn hold(world: &World<'_>, held: &HeldJobs<'_>, plans: &[&JobPlan]) -> Vec<Violation> {
    plans.iter().filter_map(|plan| broken(world, held, (plan, plans))).collect()
}

fn broken(
    world: &World<'_>,
    held: &HeldJobs<'_>,
    (plan, anew): (&JobPlan, &[&JobPlan]),
) -> Option<Violation> {
    let own = held.get(&plan.job)?;
    let graph = JobGraph::of(world, own.job, own.profiles);
    let node = |vertex: &crate::job_graph::Vertex<'_>| world.index(plan.placement.get(&vertex.name)?);
    // A task without a node is told elsewhere.
    let nodes: Vec<usize> = graph.vertices.iter().map(node).collect::<Option<_>>()?;
    let tainted = || {
        let mut pairs = graph.vertices.iter().zip(&nodes).enumerate();
        let (at, taint) =
            pairs.find_map(|(at, (vertex, node))| Some((at, untolerated(world.nodes[*node], vertex)?)))?;
        Some((at, format!("taint {} is not tolerated", taint.key)))
    };
    let mut ledger = Ledger::of(world, held.values().filter(|other| other.job.name != plan.job));
    ledger.fresh = anew.iter().map(|plan| plan.job.clone()).collect();
    let case = Case { world, graph: &graph, ledger: &ledger };
    let (vertex, text) = tainted().or_else(|| case.broken_rule(&nodes))?;
    let (job, task) = (plan.job.clone(), graph.vertices[vertex].name.clone());
    Some(Violation::Task { job, task, text: format!("on {}: {text}", world.name(nodes[vertex])) })
}
