//! Containers that run to their end: what nodes show of it, and what follows.
//!
//! In: outcomes that nodes report for what their documents list. Out: journaled ends, before any document is
//! changed for them, so that what has ended is never run again, whoever dies next. Batches that are over stay
//! listed up to a bound, with the containers of their last tasks.

use super::Owner;
use crate::batch::{Ended, failures, has_succeeded};
use crate::events::Kind;
use crate::journal::JournalError;
use crate::lost::names;
use crate::model::{Commit, Event, JobRecord, Phase};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use std::collections::{BTreeMap, BTreeSet};

/// Batches that are over and still listed.
const OVER_MAX: usize = 100;

impl Owner {
    /// Keeps what nodes show to have ended since the last look.
    pub(super) fn take_ends(&mut self) -> Result<(), JournalError> {
        for (job, tasks) in self.ends() {
            for (task, end) in tasks.iter().filter(|(_, end)| !end.outcome.succeeded()) {
                let code =
                    end.outcome.exit_code.map_or_else(|| "without a code".to_owned(), |it| it.to_string());
                let text = format!("task {task} failed on {}: ended with {code}", end.node);
                self.events.note(self.now_ms, Some(&job), Kind::TaskFailed, text);
            }
            self.state.commit(Event::Ended { job: job.clone(), tasks })?;
            self.tell_end(&job);
        }
        self.drop_oldest()
    }

    /// Outcomes of containers where their plans have them.
    fn ends(&self) -> BTreeMap<JobName, BTreeMap<TaskName, Ended>> {
        let mut ends: BTreeMap<JobName, BTreeMap<TaskName, Ended>> = BTreeMap::new();
        for (node, known) in &self.nodes.table {
            let shown = known.observed.iter().flat_map(|seen| &seen.containers);
            for (state, outcome) in shown.filter_map(|state| Some((state, state.outcome?))) {
                let Some(record) = self.model().jobs.get(&state.job) else { continue };
                let placed = record.plan.as_ref().and_then(|plan| plan.placement.get(&state.task));
                let open = record.phase == Phase::Committed && !record.ended.contains_key(&state.task);
                if !open
                    || placed != Some(node)
                    || !self.is_sent(node, &state.task, (&state.job, &state.spec_hash))
                {
                    continue;
                }
                let end = Ended {
                    node: node.clone(),
                    container_id: state.container_id.clone(),
                    outcome,
                    started_ms: state.started_ms,
                    finished_ms: state.finished_ms,
                    at_ms: self.now_ms,
                };
                ends.entry(state.job.clone()).or_default().insert(state.task.clone(), end);
            }
        }
        ends
    }

    /// The node's document lists this very container, not one of an earlier job.
    fn is_sent(&self, node: &NodeId, task: &TaskName, (job, hash): (&JobName, &str)) -> bool {
        let sent = self.model().published.get(node).into_iter().flat_map(|document| &document.containers);
        sent.into_iter().any(|spec| spec.task == *task && spec.job == *job && spec.spec_hash == hash)
    }

    fn tell_end(&mut self, job: &JobName) {
        let Some(record) = self.model().jobs.get(job).filter(|record| record.phase == Phase::Ended) else {
            return;
        };
        let text = match failures(record) {
            None if has_succeeded(record) => format!("all {} tasks succeeded", record.ended.len()),
            None => "nothing is left to run".to_owned(),
            Some(failures) => failures,
        };
        self.events.note(self.now_ms, Some(job), Kind::Ended, text);
    }

    /// The batches that ended first go when there are too many.
    fn drop_oldest(&mut self) -> Result<(), JournalError> {
        let over = self.model().jobs.values().filter(|record| record.phase == Phase::Ended);
        let mut over: Vec<(u64, JobName)> =
            over.map(|record| (ended_ms(record), record.job.name.clone())).collect();
        over.sort();
        let more = over.len().saturating_sub(OVER_MAX);
        for (_, job) in over.into_iter().take(more) {
            self.state.commit(Event::Stopping { job: job.clone() })?;
            self.events.note(self.now_ms, Some(&job), Kind::Stopping, "makes room for later ones".to_owned());
        }
        Ok(())
    }

    /// A batch gives up what it had on lost nodes; its tasks wait for room like those that never ran.
    pub(super) fn run_elsewhere(
        &mut self,
        record: &JobRecord,
        lost: &BTreeSet<NodeId>,
    ) -> Result<(), JournalError> {
        let Some(mut plan) = record.plan.clone() else { return Ok(()) };
        let gone: Vec<String> = plan
            .placement
            .iter()
            .filter(|(_, node)| lost.contains(*node))
            .map(|(task, _)| task.to_string())
            .collect();
        plan.placement.retain(|_, node| !lost.contains(node));
        plan.shares.retain(|task, _| plan.placement.contains_key(task));
        let (job, count) = (record.job.name.clone(), gone.len());
        let commit = Commit {
            plan,
            addresses: record.addresses.clone(),
            bytes_predicted: BTreeMap::new(),
            lost: lost.clone(),
            at_ms: self.now_ms,
        };
        self.state.commit(Event::Committed { commits: vec![commit] })?;
        let text = format!("node {} is lost: {count} unfinished tasks run elsewhere", names(lost));
        self.events.note(self.now_ms, Some(&job), Kind::Replan, text);
        Ok(())
    }
}

fn ended_ms(record: &JobRecord) -> u64 {
    record.ended.values().map(|end| end.at_ms).max().unwrap_or(0)
}
