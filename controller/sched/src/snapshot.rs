//! What a decision may see: one immutable value, time and seed inside.

use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use std::collections::BTreeMap;

use crate::plan::JobPlan;

/// The cluster as it is now. Nodes and links are sorted by name; equal snapshots give equal plans.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Milliseconds since the epoch of the caller's choice.
    pub now_ms: u64,
    pub seed: u64,
    /// Payload share of a wire rate (`TCP_GOODPUT` on a real cluster, 1 in the papers' models).
    pub goodput: f64,
    /// Share of each link's capacity that flows may reserve; the rest is for everything else.
    pub link_share: f64,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Committed jobs, with what each was given.
    pub running: Vec<Running>,
    /// `Q_wait`: jobs to decide on.
    pub waiting: Vec<Waiting>,
}

/// A machine of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub id: NodeId,
    /// False: offline or not yet known well enough; nothing new goes there or through it.
    pub ready: bool,
    pub labels: BTreeMap<String, String>,
    /// Allocatable: total minus reserve.
    pub cpu: MilliCores,
    /// Reference-core seconds that one core does in a second.
    pub core_speed: f64,
    pub memory: Bytes,
    pub disk: Bytes,
    /// The kernel can shape flows and take custom routes.
    pub shapes_flows: bool,
}

impl Node {
    /// Reference-core seconds a second, all cores together: the paper's `PS_j`.
    #[must_use]
    pub fn speed(&self) -> f64 {
        f64::from(self.cpu.0) / 1000.0 * self.core_speed
    }
}

/// A line between two nodes, `a < b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub a: NodeId,
    pub b: NodeId,
    /// Wire capacity from `a` to `b`.
    pub a_to_b: BitRate,
    /// Wire capacity from `b` to `a`.
    pub b_to_a: BitRate,
    pub duplex: Duplex,
}

/// Whether the two directions of a link share its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// Both directions together have `a_to_b`.
    Half,
    Full,
}

/// A job that holds resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    pub job: Job,
    pub plan: JobPlan,
}

/// A job that wants resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub job: Job,
    pub since_ms: u64,
    /// Bytes that each task's image would fetch on each node, where known. The source's container is
    /// listed under `source`.
    pub missing_bytes: BTreeMap<TaskName, BTreeMap<NodeId, Bytes>>,
}
