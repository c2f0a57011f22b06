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
mod fullness;
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
pub(crate) use joint::routed;
pub(crate) use online::{Outcome, Strategy, decide_one, give_bandwidth, rebalance, whole_bits};
pub(crate) use params::{EQUAL, LEAST_RATE_BPS, NO_LIMIT_ITEMS_PER_S};

use crate::case::wire_bits;
pub(crate) use crate::case::{Case, Placed, Stuck};
use crate::job_graph::{Edge, JobGraph};
use crate::plan::JobPlan;
use crate::world::World;

/// An edge between nodes, with its path as arcs and its rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Routed {
    pub(crate) edge: Edge,
    pub(crate) path: Vec<usize>,
    /// Wire bits a second.
    pub(crate) rate: f64,
}

/// The node of each vertex; none where one is not known.
pub(crate) fn nodes_of(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Option<Vec<usize>> {
    graph.vertices.iter().map(|vertex| world.index(plan.placement.get(&vertex.name)?)).collect()
}
