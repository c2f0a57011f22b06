//! The throughput that a placement, its paths and its rates allow.
//!
//! Items a second = the least of: the source's rate; `rate * goodput / (8 * volume)` of each flow; what the
//! CPU limit lets each task do; what each node lets the job's tasks do together. Other jobs on a node count
//! with what they are predicted to use, but leave at least the share that the kernel's fair scheduler gives.

use edgeloom_common::view::Bound;

use super::{Case, NO_LIMIT_ITEMS_PER_S, Routed};
use crate::plan::Prediction;
use crate::snapshot::Processors;

/// What sets the pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limiter {
    Nothing,
    Source,
    Task(usize),
    Node(usize),
    Flow(usize),
}

/// A bound on the throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    pub(crate) items_per_s: f64,
    pub(crate) by: Limiter,
}

impl Limit {
    fn or(self, items_per_s: f64, by: Limiter) -> Self {
        if items_per_s < self.items_per_s { Self { items_per_s, by } } else { self }
    }
}

/// The bound that source and processors set; the network is left out.
pub(crate) fn compute_limit(case: &Case<'_>, nodes: &[usize]) -> Limit {
    let mut limit = Limit { items_per_s: NO_LIMIT_ITEMS_PER_S, by: Limiter::Nothing };
    if let Some(rate) = case.graph.job.source.as_ref().and_then(|source| source.rate_per_s) {
        limit = limit.or(rate, Limiter::Source);
    }
    for (index, (vertex, node)) in case.graph.vertices.iter().zip(nodes).enumerate() {
        let work_s = vertex.work_s[*node];
        limit = limit.or(vertex.pace[*node], Limiter::Task(index));
        if work_s > 0.0 && vertex.cores.is_finite() {
            let speed = vertex.cores * case.world.nodes[*node].core_speed;
            limit = limit.or(speed / work_s, Limiter::Task(index));
        }
        // Each node is looked at once, at the first of its tasks.
        if !nodes[..index].contains(node) {
            let (mut work_s, mut own) = (0.0, 0);
            for (other, _) in case.graph.vertices.iter().zip(nodes).filter(|(_, at)| *at == node) {
                work_s += other.work_s[*node];
                own += u32::from(other.runs);
            }
            if work_s > 0.0 {
                limit = limit.or(speed_left(case, *node, own) / work_s, Limiter::Node(*node));
            }
        }
    }
    limit
}

/// Reference-core seconds a second that a node has for the job's own containers.
fn speed_left(case: &Case<'_>, node: usize, own: u32) -> f64 {
    let speed = case.world.nodes[node].speed();
    if case.world.processors == Processors::PerJob {
        return speed;
    }
    let others = case.ledger.containers[node];
    let fair = speed * f64::from(own) / f64::from((own + others).max(1));
    (speed - case.ledger.busy[node]).max(fair)
}

/// The whole prediction, with the name of what sets the pace.
pub(crate) fn predict(case: &Case<'_>, nodes: &[usize], flows: &[Routed]) -> Prediction {
    let mut limit = compute_limit(case, nodes);
    for (index, flow) in flows.iter().enumerate() {
        limit = limit.or(flow.rate / case.wire_bits(&flow.edge), Limiter::Flow(index));
    }
    let name = |vertex: usize| &case.graph.vertices[vertex].name;
    let (bound, bound_by) = match limit.by {
        Limiter::Nothing => (Bound::Source, "nothing declared".to_owned()),
        Limiter::Source => (Bound::Source, "source".to_owned()),
        Limiter::Task(vertex) => {
            (Bound::Compute, format!("{} on {}", name(vertex), case.world.name(nodes[vertex])))
        }
        Limiter::Node(node) => (Bound::Compute, case.world.name(node).to_string()),
        Limiter::Flow(index) => {
            let edge = &flows[index].edge;
            (Bound::Network, format!("{}->{}", name(edge.from), name(edge.to)))
        }
    };
    Prediction { items_per_s: limit.items_per_s, bound, bound_by }
}
