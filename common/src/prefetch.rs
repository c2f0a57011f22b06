//! Images that nodes hold ready for containers to come: what is asked of the controller, and what it answers.

use crate::ids::NodeId;
use crate::report::PrefetchPhase;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// `POST /v1/images/prefetch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchRequest {
    /// As in job documents.
    pub image: String,
    #[serde(default)]
    pub on: PrefetchOn,
    #[serde(default)]
    pub hold: Hold,
}

/// Where it is held ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrefetchOn {
    /// Where it was before; of a new one: everywhere.
    #[default]
    Same,
    /// On every node, those to come too.
    All,
    /// On these, and nowhere else.
    Nodes(Vec<NodeId>),
}

/// How long it stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// However little room there is.
    #[default]
    Pinned,
    /// While there is room: fetched once, and the first to go as it is not used.
    Unpinned,
    /// Held ready no more; it goes when room is needed.
    Released,
}

/// One image that is held ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefetchView {
    pub image: String,
    /// Of the manifest that its name led to when it was asked for.
    pub digest: String,
    pub pinned: bool,
    /// On every node, those to come too.
    pub everywhere: bool,
    pub nodes: Vec<PrefetchNode>,
}

/// How far a node is, as it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefetchNode {
    pub node: NodeId,
    pub phase: PrefetchPhase,
    pub bytes_fetched: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<Bytes>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// `GET /v1/images/prefetch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefetchList {
    pub images: Vec<PrefetchView>,
}
