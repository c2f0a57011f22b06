//! One job as the controller keeps it: what was asked, what was given, and where its containers may be.
//!
//! Changes only by [`Event`](crate::model::Event)s, so that a replayed journal gives the same record.

use crate::batch::{Ended, is_over};
use crate::model::Image;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_sched::plan::JobPlan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// One job, from its acceptance until nothing of it is left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub(crate) job: Job,
    pub(crate) phase: Phase,
    pub(crate) since_ms: u64,
    pub(crate) profile: String,
    pub(crate) images: BTreeMap<TaskName, Image>,
    /// One a task that runs a container, for the job's life.
    pub(crate) addresses: BTreeMap<TaskName, Ipv4Addr>,
    #[serde(default)]
    pub(crate) plan: Option<JobPlan>,
    /// Rises with every first commit: nodes pull the images of earlier jobs first.
    #[serde(default)]
    pub(crate) commit_number: u64,
    /// Every node has once confirmed all of the commit; from then on only a stop takes it back.
    #[serde(default)]
    pub(crate) confirmed: bool,
    /// The plan before a change that nodes have not confirmed yet: what the job goes back to.
    #[serde(default)]
    pub(crate) previous: Option<JobPlan>,
    /// Nodes that had a task which a later plan places elsewhere, until all is confirmed: a container may
    /// still be there.
    #[serde(default)]
    pub(crate) left: BTreeSet<(TaskName, NodeId)>,
    /// Tasks that were placed anew because the node where they were is lost.
    #[serde(default)]
    pub(crate) moved: BTreeMap<TaskName, NodeId>,
    /// When each task got its place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) placed: BTreeMap<TaskName, Placed>,
    /// Bytes that each task's pull will fetch, as of the commit; a task whose image its node pulls for
    /// another one has no entry.
    #[serde(default)]
    pub(crate) bytes_predicted: BTreeMap<TaskName, u64>,
    /// Why it waits.
    #[serde(default)]
    pub(crate) reason: String,
    /// Tasks that have run to their end; the plan has them no more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ended: BTreeMap<TaskName, Ended>,
}

impl JobRecord {
    /// All of the plan has arrived and nothing of an earlier one is left.
    pub(crate) fn settled(&self) -> bool {
        self.confirmed && self.previous.is_none() && self.left.is_empty()
    }

    pub(crate) fn confirm(&mut self) {
        self.confirmed = true;
        self.previous = None;
        self.left.clear();
    }

    /// Tasks that have ended hold nothing any more.
    pub(crate) fn end(&mut self, tasks: BTreeMap<TaskName, Ended>) {
        for (task, end) in tasks {
            for plan in self.plan.iter_mut().chain(&mut self.previous) {
                plan.placement.remove(&task);
                plan.shares.remove(&task);
            }
            self.left.retain(|(left, _)| *left != task);
            self.addresses.remove(&task);
            self.bytes_predicted.remove(&task);
            self.ended.insert(task, end);
        }
        if is_over(self) {
            (self.phase, self.plan, self.previous) = (Phase::Ended, None, None);
            self.reason.clear();
        }
    }

    /// Notes which nodes the tasks leave; gives the plan before.
    pub(crate) fn replace_plan(&mut self, plan: Option<JobPlan>) -> Option<JobPlan> {
        let before = std::mem::replace(&mut self.plan, plan);
        let was = before.iter().flat_map(|plan| &plan.placement);
        self.left.extend(was.map(|(task, node)| (task.clone(), node.clone())));
        let now = self.plan.iter().flat_map(|plan| &plan.placement);
        for (task, node) in now {
            self.left.remove(&(task.clone(), node.clone()));
        }
        before
    }

    /// Notes which tasks get another place than they have, and when.
    pub(crate) fn note_placed(&mut self, plan: &JobPlan, at_ms: u64) {
        let before = self.plan.as_ref().map(|plan| &plan.placement);
        for (task, node) in &plan.placement {
            let had = before.and_then(|before| before.get(task));
            if had == Some(node) {
                continue;
            }
            // One that is moved waits only from then on.
            let moved = had.is_some() || self.placed.contains_key(task);
            let since_ms = if moved { at_ms } else { self.since_ms };
            self.placed.insert(task.clone(), Placed { at_ms, queued_ms: at_ms.saturating_sub(since_ms) });
        }
    }

    /// A container of the task may be on the node, as far as plans say.
    pub(crate) fn may_have(&self, task: &TaskName, node: &NodeId) -> bool {
        let placed = |plan: &JobPlan| plan.placement.get(task) == Some(node);
        let left = || self.left.iter().any(|(its, from)| (its, from) == (task, node));
        self.plan.iter().chain(&self.previous).any(placed) || left()
    }

    /// Notes which tasks another place was found for because their node is lost.
    pub(crate) fn note_moved(&mut self, before: Option<&JobPlan>, lost: &BTreeSet<NodeId>) {
        let now = self.plan.as_ref().map(|plan| &plan.placement);
        for (task, from) in before.iter().flat_map(|plan| &plan.placement) {
            if now.and_then(|now| now.get(task)) == Some(from) {
                continue;
            }
            if lost.contains(from) {
                self.moved.insert(task.clone(), from.clone());
            } else {
                self.moved.remove(task);
            }
        }
        self.settle_moved();
    }

    /// Drops what is told of tasks that are where they were, or nowhere.
    pub(crate) fn settle_moved(&mut self) {
        let placement = self.plan.as_ref().map(|plan| &plan.placement);
        self.moved.retain(|task, from| {
            placement.and_then(|placement| placement.get(task)).is_some_and(|node| node != from)
        });
    }

    /// Where containers of the job may be, as far as plans say.
    pub(crate) fn whereabouts(&self) -> BTreeSet<(TaskName, NodeId)> {
        let plans = self.plan.iter().chain(&self.previous);
        let planned = plans.flat_map(|plan| &plan.placement).map(|(task, node)| (task.clone(), node.clone()));
        planned.chain(self.left.iter().cloned()).collect()
    }

    /// One of the job's containers on a node that cannot be asked.
    pub(crate) fn stray(&self, task: &TaskName) -> Option<Stray> {
        let address = *self.addresses.get(task)?;
        Some(Stray { job: self.job.name.clone(), task: task.clone(), address })
    }
}

/// When a task got its place, in milliseconds since 1970, and how long it had waited for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) at_ms: u64,
    pub(crate) queued_ms: u64,
}

/// Where a job is, as far as the controller decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Waiting,
    Committed,
    /// A batch with nothing left to run.
    Ended,
    Stopping,
}

/// A container that a node out of reach may have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Stray {
    pub(crate) job: JobName,
    pub(crate) task: TaskName,
    pub(crate) address: Ipv4Addr,
}
