//! Which nodes take nothing new, and why: state that outlives the controller.
//!
//! In: what operators ask for, and what the load allows. Out: snapshots in which those nodes are cordoned and jobs
//! may stay where they run.

use edgeloom_common::ids::NodeId;
use edgeloom_common::view::CordonedBy;
use edgeloom_sched::cordon::let_stay;
use edgeloom_sched::snapshot::{Node, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cordon {
    pub(crate) since_ms: u64,
    pub(crate) by: CordonedBy,
    /// Tasks move off.
    pub(crate) drain: bool,
}

/// By node.
pub(crate) type Cordons = BTreeMap<NodeId, Cordon>;

/// Nodes from which tasks move off.
pub(crate) fn drained(cordons: &Cordons) -> BTreeSet<NodeId> {
    cordons.iter().filter(|(_, cordon)| cordon.drain).map(|(node, _)| node.clone()).collect()
}

/// Cordons nodes; running jobs may stay there. One that is planned anew may where it is held in place.
pub(crate) fn apply(cordons: &Cordons, snapshot: &mut Snapshot) {
    if cordons.is_empty() {
        return;
    }
    snapshot.nodes.iter_mut().filter(|node| cordons.contains_key(&node.id)).for_each(Node::cordon);
    for running in &mut snapshot.running {
        let_stay(&mut running.job, &running.plan.placement, |node| cordons.contains_key(node));
    }
}
