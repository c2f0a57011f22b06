//! What a decision may say: all profiles speak the same plan.

use edgeloom_common::ids::{FlowId, JobName, NodeId, TaskName};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_common::view::Bound;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to do: jobs to place, and running jobs whose flows change.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// New jobs, and running jobs with new routes or rates. Jobs not named stay as they are.
    pub plans: Vec<JobPlan>,
    /// Waiting jobs that stay waiting, each with its reasons.
    pub unplaced: Vec<Unplaced>,
}

/// All that one job is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    pub job: JobName,
    pub profile: String,
    /// Every task, and `source` (on its own node) where the job has one.
    pub placement: BTreeMap<TaskName, NodeId>,
    /// Limits of containers where they are other than what the job requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<TaskName, Share>,
    /// One for each edge whose ends are on different nodes.
    pub flows: Vec<FlowPlan>,
    pub prediction: Prediction,
    /// Why, in words, for `explain`: one line a step, nodes refused with their reasons.
    pub reasons: Vec<String>,
}

impl JobPlan {
    /// Wire rate that a flow is predicted to need, which may be less than it was given; `goodput` is the payload share
    /// of a wire rate.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes an item stay far below 2^52")]
    pub fn needed(&self, flow: &FlowPlan, goodput: f64) -> f64 {
        let item_bits = flow.volume.0.max(1) as f64 * 8.0 / goodput;
        (self.prediction.items_per_s * item_bits).min(flow.rate.as_f64())
    }
}

/// What one container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Zero: no limit.
    pub cpu: MilliCores,
    pub memory: Bytes,
}

/// Route and rate of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    pub id: FlowId,
    /// First node to last; at least two, no node twice.
    pub path: Vec<NodeId>,
    /// Wire rate.
    pub rate: BitRate,
    /// Payload bytes an item.
    pub volume: Bytes,
}

/// Expected throughput and what sets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    pub items_per_s: f64,
    pub bound: Bound,
    /// The node, flow or source that sets the pace.
    pub bound_by: String,
}

/// A job that does not fit, with the reason for each node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unplaced {
    pub job: JobName,
    /// The task that found no node (the first, in topological order); `source` for the source.
    pub task: TaskName,
    /// Per node, why not.
    pub reasons: Vec<Reason>,
    /// No node could take it even with nothing else running, every node ready and every way open: waiting will
    /// not help.
    pub never: bool,
}

/// Why a node was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub node: NodeId,
    /// Object first, then wanted and found: `memory 2 GiB requested, 512 MiB unused`.
    pub text: String,
}
