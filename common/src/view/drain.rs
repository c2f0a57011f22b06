//! Nodes that take nothing new, and nodes that could.

use crate::ids::{JobName, NodeId, TaskName};
use serde::{Deserialize, Serialize};

/// A node that takes nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CordonView {
    /// Milliseconds since 1970.
    pub since_ms: u64,
    pub by: CordonedBy,
    /// Its tasks move to other nodes.
    pub drain: bool,
    /// Tasks that are still there.
    pub tasks: Vec<RemainingView>,
}

/// Who wants it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CordonedBy {
    Operator,
    /// The load fits on fewer nodes.
    Load,
}

/// A task on a node that takes nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingView {
    pub job: JobName,
    pub task: TaskName,
    /// Why it stays; empty while it is on its way, or may stay.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `GET` and `POST /v1/consolidation`: nodes that could be emptied together, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsolidationView {
    pub nodes: Vec<EmptiedView>,
    /// Nodes that could not be emptied.
    pub kept: Vec<KeptView>,
    /// They are being drained.
    pub applied: bool,
}

/// A node that could be emptied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmptiedView {
    pub node: NodeId,
    pub moves: Vec<MoveView>,
}

/// A task that would move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveView {
    pub job: JobName,
    pub task: TaskName,
    pub to: NodeId,
    /// Pulled first, while the task runs where it is.
    pub bytes_predicted: u64,
    /// None where the node's line is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_s_predicted: Option<f64>,
    /// How long the task is away then.
    pub pause_s_predicted: f64,
}

/// A node that has to stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptView {
    pub node: NodeId,
    pub reason: String,
}
