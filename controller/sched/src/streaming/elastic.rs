//! Running jobs whose rates may change: those that the `edgeloom` profile placed, while their nodes and links
//! are there.

use super::Case;
use super::online::Strategy;
use super::predict::compute_limit;
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::plan::JobPlan;
use crate::world::World;

/// A flow as the sharing sees it.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) pools: Vec<usize>,
    /// Wire bits an item.
    pub(super) bits: f64,
    /// The rate it has; 0 for a newcomer's.
    pub(super) held_bps: f64,
}

/// A job that takes part in the sharing; `held` is the throughput it has, none for a newcomer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sharer<'s> {
    pub(super) streams: &'s [Stream],
    pub(super) limit: f64,
    pub(super) held: Option<f64>,
}

/// A running job whose rates may change.
#[derive(Debug)]
pub(super) struct Elastic<'a> {
    pub(super) held: &'a Held<'a>,
    pub(super) streams: Vec<Stream>,
    pub(super) limit: f64,
}

impl Elastic<'_> {
    pub(super) fn sharer(&self) -> Sharer<'_> {
        let held = Some(self.held.plan.prediction.items_per_s);
        Sharer { streams: &self.streams, limit: self.limit, held }
    }
}

/// The flows of a job that may share; none if it is of another profile or a link or node of it is gone.
pub(super) fn streams(world: &World<'_>, held: &Held<'_>) -> Option<Vec<Stream>> {
    let plan = &held.plan;
    let graph = JobGraph::of(world, held.job, held.profiles);
    if plan.profile != Strategy::Edgeloom.name() || nodes_of(world, &graph, plan).is_none() {
        return None;
    }
    let one = |flow: &crate::plan::FlowPlan| {
        let pools = world.pools_of(&flow.path);
        #[expect(clippy::cast_precision_loss, reason = "bytes an item stay far below 2^52")]
        let bits = flow.volume.0.max(1) as f64 * 8.0 / world.goodput;
        let whole = pools.len() + 1 == flow.path.len();
        whole.then_some(Stream { pools, bits, held_bps: flow.rate.as_f64() })
    };
    plan.flows.iter().map(one).collect()
}

/// What source and processors let a running job do.
pub(super) fn limit(world: &World<'_>, others: &HeldJobs<'_>, held: &Held<'_>) -> f64 {
    let graph = JobGraph::of(world, held.job, held.profiles);
    let ledger = without(world, others, held);
    let case = Case { world, graph: &graph, ledger: &ledger };
    let nodes = nodes_of(world, &graph, &held.plan);
    nodes.map_or(held.plan.prediction.items_per_s, |nodes| compute_limit(&case, &nodes).items_per_s)
}

pub(super) fn without(world: &World<'_>, others: &HeldJobs<'_>, held: &Held<'_>) -> Ledger {
    Ledger::of(world, others.values().filter(|other| other.job.name != held.job.name))
}

pub(super) fn nodes_of(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Option<Vec<usize>> {
    graph.vertices.iter().map(|vertex| world.index(plan.placement.get(&vertex.name)?)).collect()
}
