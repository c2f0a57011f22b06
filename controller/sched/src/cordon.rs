//! Nodes that take nothing new, while what runs there may stay or is moved off.
//!
//! A cordon is a taint that only who names it tolerates: profiles, filters and the checker keep away from the node
//! as from any other that is tainted, paths go on leading through it, and a source stays where it is.

use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Attribute, Constraint, Effect, Job, Taint, Toleration};
use std::collections::{BTreeMap, BTreeSet};

use crate::snapshot::Node;

/// The taint's key; its value is the node's name.
const KEY: &str = "edgeloom.cordoned";

impl Node {
    /// Takes nothing new from now on.
    pub fn cordon(&mut self) {
        let taint = Taint { key: KEY.to_owned(), value: self.id.to_string(), effect: Effect::NoSchedule };
        self.hosting.taints.push(taint);
    }

    /// Takes tasks again.
    pub(crate) fn uncordon(&mut self) {
        self.hosting.taints.retain(|taint| !is_cordon(taint));
    }

    /// Whether it takes nothing new.
    #[must_use]
    pub fn is_cordoned(&self) -> bool {
        self.hosting.taints.iter().any(is_cordon)
    }
}

/// Whether a taint is a cordon, which a toleration of all taints does not cover.
pub(crate) fn is_cordon(taint: &Taint) -> bool {
    taint.key == KEY
}

/// The job with tasks held where they are, cordoned or not, but for those on these nodes.
pub fn hold_in_place(job: &mut Job, placement: &BTreeMap<TaskName, NodeId>, leaves: &BTreeSet<NodeId>) {
    for (task, node) in placement.iter().filter(|(_, node)| !leaves.contains(*node)) {
        if let Some(task) = job.tasks.get_mut(task) {
            let value = node.to_string();
            task.constraints.push(Constraint { attribute: Attribute::Name, equal: true, value });
            task.placement.tolerations.push(toleration(node));
        }
    }
}

/// The job with tasks that may stay on cordoned nodes, where they run already.
pub fn let_stay(job: &mut Job, placement: &BTreeMap<TaskName, NodeId>, cordoned: impl Fn(&NodeId) -> bool) {
    for (task, node) in placement.iter().filter(|(_, node)| cordoned(node)) {
        if let Some(task) = job.tasks.get_mut(task) {
            task.placement.tolerations.push(toleration(node));
        }
    }
}

fn toleration(node: &NodeId) -> Toleration {
    Toleration { key: Some(KEY.to_owned()), value: Some(node.to_string()), effect: None }
}
