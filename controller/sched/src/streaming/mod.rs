//! Streaming jobs: where each task runs, which path each flow takes and at what rate.
//!
//! Paper: "ENTS: An Edge-native Task Scheduling System for Collaborative Edge Computing" (2022), sections
//! III (model), IV (Algorithms 1 and 2) and V (Algorithm 3). In: a waiting job, the world and what others
//! hold. Out: a plan with its reasons, or the task that found no node. Nothing is ever half placed.
//!
//! | symbol | here |
//! |---|---|
//! | `PS_j` | `Node::speed`, reference-core seconds a second |
//! | `C_i` | `Vertex::work_s`, reference-core seconds an item |
//! | `D_ij`, `V_i` | `Edge::volume` in bytes; `wire_bits` an item on the wire |
//! | `B_l` | `World::capacity`, one pool a link direction |
//! | `R_avail`, `R_req` | `Ledger::free`, `Vertex::need` |
//! | `TH` | congestion: wire seconds an item of the fullest pool |
//! | `m_ik` | fraction of a demand on a path, `opt::relax` |
//! | `Q_wait`, `Q_run` | `Snapshot::waiting`, `Snapshot::running` |
//!
//! Departures: a request that equals what is free fits; Eq. 15 is used with `B_l`, without which its units
//! do not fit; co-located tasks share the processor, as in the paper's example and unlike Eq. 2.

mod allocation;
mod baseline;
mod bench;
mod climb;
mod fixed_paths;
mod joint;
mod jrba;
mod moves;
mod online;
mod params;
mod paths;
pub(crate) mod predict;
mod search;
mod starts;
mod together;

pub use bench::{JrbaProblem, JrbaResult, JrbaSize, jrba_congestion};
pub(crate) use online::{Outcome, Strategy, decide_one, give_bandwidth, rebalance, whole_bits};
use params::NO_LIMIT_ITEMS_PER_S;
pub(crate) use params::{EQUAL, LEAST_RATE_BPS};

use crate::filter::{Fit, refusal};
use crate::job_graph::{Edge, JobGraph};
use crate::ledger::Ledger;
use crate::plan::JobPlan;
use crate::route::hop_tree;
use crate::world::World;

/// One job before the world as others leave it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) graph: &'a JobGraph<'a>,
    pub(crate) ledger: &'a Ledger,
}

/// A task that found no node: per node, why not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stuck {
    pub(crate) vertex: usize,
    pub(crate) refusals: Vec<String>,
}

/// A node for each vertex, and how it was come by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub(crate) nodes: Vec<usize>,
    pub(crate) reasons: Vec<String>,
}

/// An edge between nodes, with its path as arcs and its rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Routed {
    pub(crate) edge: Edge,
    pub(crate) path: Vec<usize>,
    /// Wire bits a second.
    pub(crate) rate: f64,
}

/// Bits on the wire an item; a flow without bytes counts as one byte, so that it gets a rate.
fn wire_bits(world: &World<'_>, edge: &Edge) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes an item stay far below 2^52")]
    let bytes = edge.volume.0.max(1) as f64;
    bytes * 8.0 / world.goodput
}

/// The node of each vertex; none where one is not known.
fn nodes_of(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Option<Vec<usize>> {
    graph.vertices.iter().map(|vertex| world.index(plan.placement.get(&vertex.name)?)).collect()
}

impl Case<'_> {
    /// Bits on the wire an item; a flow without bytes counts as one byte, so that it gets a rate.
    pub(crate) fn wire_bits(&self, edge: &Edge) -> f64 {
        wire_bits(self.world, edge)
    }

    /// Edges whose ends are on different nodes.
    pub(crate) fn flows(&self, nodes: &[usize]) -> Vec<Edge> {
        let apart = |edge: &&Edge| nodes[edge.from] != nodes[edge.to];
        self.graph.edges.iter().filter(apart).copied().collect()
    }

    /// Nodes to which no way leads from a vertex's inputs, and from which none does. `placed` has the nodes of the
    /// vertices before it at least.
    pub(crate) fn unreached(&self, vertex: usize, placed: &[usize]) -> Vec<(usize, String)> {
        let mut nodes = Vec::new();
        for edge in self.graph.inputs(vertex).filter(|edge| edge.from < vertex) {
            let from = placed[edge.from];
            let tree = hop_tree(&self.world.graph, from);
            let others = (0..self.world.nodes.len()).filter(|node| *node != from);
            let cut_off = others.filter(|node| !tree.distance(*node).is_finite());
            nodes.extend(cut_off.map(|node| (node, format!("no path from {}", self.world.name(from)))));
        }
        nodes
    }

    /// Why each node is refused for a vertex; none where it is not.
    pub(crate) fn refusals(&self, vertex: usize, ledger: &Ledger, fit: Fit) -> Vec<Option<String>> {
        let wanted = &self.graph.vertices[vertex];
        let one = |node: usize| {
            if let Some(fixed) = self.graph.fixed(vertex)
                && fixed != self.world.name(node)
            {
                let known = self.world.index(fixed).is_some();
                let rest = if known { "" } else { ", which is no node of the cluster" };
                return Some(format!("the job's source is on {fixed}{rest}"));
            }
            refusal((node, self.world.nodes[node]), &ledger.free[node], wanted, fit)
        };
        (0..self.world.nodes.len()).map(one).collect()
    }
}
