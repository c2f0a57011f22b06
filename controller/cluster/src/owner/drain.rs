//! Nodes that are cordoned and drained: tasks move off, one job at a time, by the ordinary way of moves.
//!
//! In: cordons. Out: commits of jobs under plans without the drained nodes, and a reason for each task that has to
//! stay; it is tried again when something else is offered. What is on a cordoned node that is not drained stays.

use super::Owner;
use crate::cordon::{Cordon, drained};
use crate::error::DrainError;
use crate::events::Kind;
use crate::journal::JournalError;
use crate::lost::{names, pinned};
use crate::model::{Event, JobRecord};
use crate::planner::Outcome;
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::view::{CordonView, CordonedBy, NodeView, RemainingView};
use edgeloom_sched::Profile;
use edgeloom_sched::snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs that found no other place, with what was offered then, and why.
#[derive(Debug, Default)]
pub(super) struct Drains {
    kept: BTreeMap<JobName, (String, String)>,
}

impl Owner {
    /// The node takes nothing new; drained, its tasks move off, too.
    pub(crate) fn cordon(&mut self, node: &NodeId, drain: bool) -> Result<NodeView, DrainError> {
        self.may_cordon(node)?;
        let before = self.model().cordons.get(node);
        let since_ms = before.map_or(self.now_ms, |before| before.since_ms);
        self.set_cordon(node, Cordon { since_ms, by: CordonedBy::Operator, drain })
            .map_err(|_| DrainError::Unavailable(node.clone()))?;
        self.advance();
        self.node_view(node)
    }

    /// The node takes tasks again.
    pub(crate) fn uncordon(&mut self, node: &NodeId) -> Result<NodeView, DrainError> {
        self.node_view(node)?;
        self.lift_cordon(node, "takes tasks again").map_err(|_| DrainError::Unavailable(node.clone()))?;
        self.advance();
        self.node_view(node)
    }

    fn node_view(&self, node: &NodeId) -> Result<NodeView, DrainError> {
        let known = self.nodes.table.get(node).ok_or_else(|| DrainError::Unknown(node.clone()))?;
        Ok(self.node(node, known))
    }

    /// Some other node has to go on taking tasks.
    fn may_cordon(&self, node: &NodeId) -> Result<(), DrainError> {
        if !self.nodes.table.contains_key(node) {
            return Err(DrainError::Unknown(node.clone()));
        }
        let takes = |(other, known): (&NodeId, &crate::nodes::NodeRecord)| {
            other != node && known.ready() && !self.model().cordons.contains_key(other)
        };
        let others = self.nodes.table.iter().any(takes);
        if others { Ok(()) } else { Err(DrainError::Last(node.clone())) }
    }

    pub(super) fn set_cordon(&mut self, node: &NodeId, cordon: Cordon) -> Result<(), JournalError> {
        if self.model().cordons.get(node) == Some(&cordon) {
            return Ok(());
        }
        self.state.commit(Event::Cordoned { node: node.clone(), cordon })?;
        let what =
            if cordon.drain { "is drained: its tasks move to other nodes" } else { "takes nothing new" };
        let why = match cordon.by {
            CordonedBy::Operator => "",
            CordonedBy::Load => ", since the load fits on fewer nodes",
        };
        self.events.note(self.now_ms, None, Kind::NodeDrained, format!("node {node} {what}{why}"));
        Ok(())
    }

    pub(super) fn lift_cordon(&mut self, node: &NodeId, why: &str) -> Result<(), JournalError> {
        if !self.model().cordons.contains_key(node) {
            return Ok(());
        }
        self.state.commit(Event::Uncordoned { node: node.clone() })?;
        self.events.note(self.now_ms, None, Kind::NodeOpened, format!("node {node} {why}"));
        Ok(())
    }

    /// Moves tasks of one job off drained nodes.
    pub(super) fn drain(&mut self) -> Result<(), JournalError> {
        let nodes = drained(&self.model().cordons);
        let jobs = &self.state.model.jobs;
        self.drains.kept.retain(|job, _| !nodes.is_empty() && jobs.contains_key(job));
        if nodes.is_empty() || !self.model().settled() || !self.awaited().is_empty() {
            return Ok(());
        }
        let offer = self.offer();
        let due = |record: &&JobRecord| {
            let job = &record.job.name;
            let tried = self.drains.kept.get(job).is_some_and(|(offered, _)| *offered == offer);
            !tried && self.losses.retries.may(job, self.now_ms) && touches(record, &nodes)
        };
        let records: Vec<JobRecord> =
            self.model().committed().map(|(record, _)| record).filter(due).cloned().collect();
        for record in records {
            let job = record.job.name.clone();
            match self.without(&record, &nodes) {
                Ok(outcome) => {
                    self.drains.kept.remove(&job);
                    let verb = if nodes.len() > 1 { "are" } else { "is" };
                    let why = (&job, &*format!("node {} {verb} drained", names(&nodes)));
                    return self.commit_told(outcome, why);
                }
                Err(why) => self.stay(&job, (offer.clone(), why)),
            }
        }
        Ok(())
    }

    /// A plan in which no task is on these nodes and all others stay where they are.
    fn without(&self, record: &JobRecord, nodes: &BTreeSet<NodeId>) -> Result<Outcome, String> {
        if record.job.kind.ends() {
            return Err("what runs to its end is not begun again elsewhere".to_owned());
        }
        if let Some(source) = record.job.source.as_ref().filter(|source| nodes.contains(&source.node)) {
            let rest = record.plan.iter().flat_map(|plan| &plan.placement);
            let mut tasks = rest.filter(|(task, node)| !task.is_source() && nodes.contains(*node));
            if tasks.next().is_none() {
                return Err(format!("its source stays on {}", source.node));
            }
        }
        super::lost::whole(self.outcome(&[&pinned(record, nodes)], &BTreeMap::new()))
    }

    fn stay(&mut self, job: &JobName, (offer, why): (String, String)) {
        let before = self.drains.kept.insert(job.clone(), (offer, why.clone()));
        if before.is_none_or(|(_, before)| before != why) {
            let text = format!("stays on a node that is drained: {why}");
            self.events.note(self.now_ms, Some(job), Kind::Kept, text);
        }
    }

    /// The node's cordon, with what is still there.
    pub(super) fn cordon_view(&self, node: &NodeId) -> Option<CordonView> {
        let Cordon { since_ms, by, drain } = *self.model().cordons.get(node)?;
        let mut tasks = Vec::new();
        for (record, plan) in self.model().committed() {
            let job = &record.job.name;
            let why = self.drains.kept.get(job).filter(|_| drain).map(|(_, why)| why.clone());
            let here = plan.placement.iter().filter(|(_, at)| *at == node).map(|(task, _)| task);
            let left = record.left.iter().filter(|(_, at)| at == node).map(|(task, _)| task);
            let reason = why.unwrap_or_default();
            let view = |task: &edgeloom_common::ids::TaskName| RemainingView {
                job: job.clone(),
                task: task.clone(),
                reason: reason.clone(),
            };
            tasks.extend(here.chain(left).map(view));
        }
        Some(CordonView { since_ms, by, drain, tasks })
    }

    /// What a consolidation looks at. That takes its time, and is for another thread.
    pub(crate) fn consolidation(&self) -> (Profile, Snapshot) {
        let down = self.nodes.down(&self.model().topology);
        (self.settings.profile, self.planner(self.model(), &down, &BTreeMap::new()).again())
    }
}

/// Whether a task of the job is on one of these nodes.
fn touches(record: &JobRecord, nodes: &BTreeSet<NodeId>) -> bool {
    record.plan.iter().flat_map(|plan| plan.placement.values()).any(|node| nodes.contains(node))
}
