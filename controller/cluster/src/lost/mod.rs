//! Which nodes count as lost to which jobs, and what that calls for: without clock, state or planner.
//!
//! A node is offline by its Last Will or by silence, and lost to a job once it has been away for the job's
//! `lost_after`. In: the model and for how long nodes have been away. Out: [`Loss`]es, each with the
//! [`Remedy`] that the job's document and whereabouts allow. [`pinned`] holds tasks where they are while
//! others are planned anew, [`Retries`] spaces attempts that fail.

mod retries;

pub(crate) use retries::Retries;

use crate::model::{JobRecord, Model, nodes_of};
use crate::nodes::Nodes;
use edgeloom_common::ids::NodeId;
use edgeloom_sched::cordon::hold_in_place;
use edgeloom_sched::plan::JobPlan;
use std::collections::BTreeSet;

/// A job that lost nodes keep from running.
#[derive(Debug)]
pub(crate) struct Loss<'a> {
    pub(crate) record: &'a JobRecord,
    /// Those that it needs, or that may still have a container of it.
    pub(crate) nodes: BTreeSet<NodeId>,
    pub(crate) remedy: Remedy,
}

/// What a loss calls for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Its tasks on lost nodes are planned anew.
    Replace,
    /// Nothing moves, for this reason.
    Wait(String),
}

/// Every job that needs a lost node. One whose first commit is not confirmed goes back to waiting anyway.
pub(crate) fn losses<'a>(model: &'a Model, nodes: &Nodes, now_ms: u64) -> Vec<Loss<'a>> {
    let confirmed = model.committed().filter(|(record, _)| record.confirmed);
    confirmed.filter_map(|(record, plan)| loss(record, plan, &Clock { nodes, now_ms })).collect()
}

struct Clock<'a> {
    nodes: &'a Nodes,
    now_ms: u64,
}

impl Clock<'_> {
    fn lost(&self, record: &JobRecord, node: &NodeId) -> bool {
        self.nodes.away_ms(node, self.now_ms).is_some_and(|away_ms| away_ms >= lost_after_ms(record))
    }
}

/// The job's `lost_after`.
pub(crate) fn lost_after_ms(record: &JobRecord) -> u64 {
    u64::from(record.job.disconnect.lost_after_s) * 1000
}

fn loss<'a>(record: &'a JobRecord, plan: &JobPlan, clock: &Clock<'_>) -> Option<Loss<'a>> {
    let needed = nodes_of(plan).into_iter().filter(|node| clock.lost(record, node));
    let mut nodes: BTreeSet<NodeId> = needed.cloned().collect();
    if nodes.is_empty() {
        return None;
    }
    let names = names(&nodes);
    let left = record.left.iter().map(|(_, node)| node);
    nodes.extend(left.filter(|node| clock.lost(record, node)).cloned());
    let source = record.job.source.as_ref().map(|source| &source.node);
    let may_run =
        |(_, node): &&(_, NodeId)| clock.nodes.away_ms(node, clock.now_ms).is_some() && !nodes.contains(node);
    let remedy = if let Some(source) = source.filter(|node| nodes.contains(*node)) {
        Remedy::Wait(format!("node {source} is lost and the source stays on it; goes on when it returns"))
    } else if !record.job.disconnect.replace {
        Remedy::Wait(format!(
            "node {names} is lost and the job says `replace: false`; goes on when it returns"
        ))
    } else if let Some((task, node)) = record.left.iter().find(may_run) {
        Remedy::Wait(format!("node {names} is lost; task {task} may still run on {node}, which is offline"))
    } else {
        Remedy::Replace
    };
    Some(Loss { record, nodes, remedy })
}

/// `n2, n4`.
pub(crate) fn names(nodes: &BTreeSet<NodeId>) -> String {
    nodes.iter().map(NodeId::as_str).collect::<Vec<_>>().join(", ")
}

/// The job with every task held where it is but for those on these nodes: what is healthy is not moved for
/// what is lost.
pub(crate) fn pinned(record: &JobRecord, lost: &BTreeSet<NodeId>) -> JobRecord {
    let mut record = record.clone();
    if let Some(plan) = &record.plan {
        hold_in_place(&mut record.job, &plan.placement, lost);
    }
    record
}

/// The job with its moved tasks held where they were before these nodes were lost, all others where they are.
pub(crate) fn returned(record: &JobRecord) -> JobRecord {
    let mut original = record.clone();
    if let Some(plan) = original.plan.as_mut() {
        plan.placement.extend(record.moved.clone());
    }
    let pinned = pinned(&original, &BTreeSet::new());
    JobRecord { plan: record.plan.clone(), ..pinned }
}
