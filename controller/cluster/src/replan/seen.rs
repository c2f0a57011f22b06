//! What a decision to re-plan may see: jobs with what they achieve, links and cores as they are now.

use edgeloom_common::ids::{FlowId, JobName, NodeId, TaskName};
use edgeloom_common::view::Bound;
use std::collections::BTreeMap;

/// One direction of a link.
pub(crate) type Direction = (NodeId, NodeId);

/// The cluster at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) now_ms: u64,
    /// Jobs that run and were left alone long enough to be judged.
    pub(crate) jobs: Vec<JobSeen>,
    pub(crate) links: BTreeMap<Direction, LinkSeen>,
    /// Steady core speed of each node.
    pub(crate) speeds: BTreeMap<NodeId, f64>,
}

/// Wire rates in bits a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkSeen {
    /// What flows may reserve of its steady capacity; 0 while the link is down.
    pub(crate) usable_bps: f64,
    pub(crate) reserved_bps: f64,
    /// Round trips are long for this link: packets wait somewhere on it.
    pub(crate) queued: bool,
}

/// One running job.
#[derive(Debug, Clone)]
pub(crate) struct JobSeen {
    pub(crate) name: JobName,
    pub(crate) predicted: f64,
    pub(crate) bound: Bound,
    /// Items a second over the last seconds; none while too little is known.
    pub(crate) measured: Option<f64>,
    pub(crate) flows: Vec<FlowSeen>,
    pub(crate) tasks: Vec<TaskSeen>,
}

/// One flow, over the last seconds.
#[derive(Debug, Clone)]
pub(crate) struct FlowSeen {
    pub(crate) id: FlowId,
    pub(crate) path: Vec<NodeId>,
    pub(crate) given_bps: f64,
    pub(crate) measured_bps: f64,
    /// Part of the time in which its class had a backlog.
    pub(crate) backlogged: f64,
}

/// One task, over the last seconds.
#[derive(Debug, Clone)]
pub(crate) struct TaskSeen {
    pub(crate) name: TaskName,
    pub(crate) node: NodeId,
    /// Cores that it uses, where known, and may use at most.
    pub(crate) cores_used: Option<f64>,
    pub(crate) cores_limit: f64,
    /// Reference-core seconds an item that the plan counts with; 0 where unknown.
    pub(crate) work_s: f64,
}

impl JobSeen {
    /// Directions that the job's flows pass.
    pub(crate) fn crosses(&self, direction: &Direction) -> bool {
        let hops = self.flows.iter().flat_map(|flow| flow.path.windows(2));
        hops.into_iter().any(|hop| (&hop[0], &hop[1]) == (&direction.0, &direction.1))
    }
}
