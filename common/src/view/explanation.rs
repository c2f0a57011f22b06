//! The explanation: why each task is where it is, and what the job's limit is worth.

use crate::ids::{JobName, NodeId, TaskName};
use serde::{Deserialize, Serialize};

/// `GET /v1/jobs/{name}/explain`: why each task is where it is, and what was considered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub name: JobName,
    pub profile: String,
    /// The planner's own reasons as it decided, for people; of a waiting job, why it waits.
    pub lines: Vec<String>,
    /// None while the job has no place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_per_s_predicted: Option<f64>,
    /// The source first, then in the order of the data.
    #[serde(default)]
    pub tasks: Vec<TaskExplanation>,
    /// None where nothing that is known limits the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitView>,
}

/// Why a task is on its node and not on another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskExplanation {
    pub task: TaskName,
    pub node: NodeId,
    pub why: String,
    /// Every other node, the best first, those that are refused last.
    pub others: Vec<OtherNode>,
}

/// A node on which a task is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherNode {
    pub node: NodeId,
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The verdict in words.
    pub text: String,
}

/// What speaks against a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It cannot take the task, for this reason.
    Refused(String),
    /// Predicted throughput of the whole job if this task alone were there.
    ItemsPerS(f64),
}

/// What limits a job now, and what more of it would give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitView {
    /// Of the first, where several limit together.
    pub kind: LimitKind,
    /// A link as `n1->n2`, a node, a task as `detect on n1`, or `source`. Where several limit equally, so that
    /// more of one alone gives nothing, all of them, joined with `and`.
    pub name: String,
    pub items_per_s_now: f64,
    /// The same with 10% more of everything named.
    #[serde(rename = "items_per_s_with_10_percent_more")]
    pub items_per_s_with_more: f64,
    /// The price of the limit: what one more unit gives, for people.
    pub gain_per_unit: String,
}

/// What a limit is a limit of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// All processors of a node.
    Node,
    /// One direction of a link; a half-duplex link as a whole.
    Link,
    /// The CPU limit of one task.
    Task,
    /// The source's own rate.
    Source,
}
