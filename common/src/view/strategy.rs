//! The strategy: who runs where, listens on what and sends to whom, by which way and how fast.
//!
//! It holds what the strategy document of the ENTS paper (Fig. 7) holds, in types instead of texts. Two words
//! differ: every task has an address of its own, so ports are told by task; rates are wire rates in bits a
//! second.

use crate::ids::{JobName, NodeId, TaskName};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// A job's whole strategy: one group for each node that runs a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyView {
    pub job: JobName,
    /// By the name of their node.
    pub groups: Vec<TaskGroupView>,
}

/// The tasks of a job that share a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGroupView {
    /// In name order; `source` among them on the source's node.
    pub tasks: Vec<TaskName>,
    pub node: NodeId,
    /// Where each task that has inputs takes them.
    pub listens: Vec<ListenView>,
    /// Nodes that send to this group.
    pub previous_nodes: Vec<NodeId>,
    /// What the group sends to other nodes.
    pub flows: Vec<StrategyFlowView>,
}

/// Where a task takes its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenView {
    pub task: TaskName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    pub port: u16,
}

/// One flow to another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyFlowView {
    pub from: TaskName,
    pub to: TaskName,
    /// Where the receiving task runs.
    pub next_node: NodeId,
    pub next_port: u16,
    pub bandwidth_bps: u64,
    /// Nodes from the sender's to the receiver's, relays between them.
    pub routing: Vec<NodeId>,
}
