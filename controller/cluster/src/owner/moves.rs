//! Changes of running jobs that cannot be carried out go back to the plans before.
//!
//! A commit leans on all that were committed before it, so everything that is not confirmed goes back
//! together: running jobs to the plan that was confirmed, new ones to waiting. What was confirmed together is
//! sound together.

use super::Owner;
use crate::events::Kind;
use crate::holding::{self, moves};
use crate::journal::JournalError;
use crate::lost::names;
use crate::model::{Event, nodes_of};
use crate::moves::{Goal, Phase};
use edgeloom_common::ids::{JobName, NodeId};
use std::collections::BTreeSet;

/// How long a new node may take to pull; the old container runs meanwhile.
const PULL_DEADLINE_MS: u64 = 600_000;
/// How long a container may take to go from its old node, or to run on its new one.
const CONTAINER_DEADLINE_MS: u64 = 30_000;

/// How far moves were, and since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    phase: Phase,
    /// Of the documents published last, in phases of more than one step.
    generation: u64,
    at_ms: u64,
}

impl Owner {
    /// What to publish next, and where it leads.
    pub(crate) fn goal(&self) -> Goal {
        let down = self.nodes.down(&self.model().topology);
        holding::goal(self.model(), &self.nodes, &self.ground(&down))
    }

    /// Everything committed is published and does what it should.
    pub(super) fn arrived(&self, goal: &Goal) -> bool {
        goal.phase == Phase::Last && holding::not_running(self.model(), &self.nodes).is_none()
    }

    /// Takes changes back that need one of these nodes. True: there were some.
    pub(super) fn take_back_from(&mut self, silent: &BTreeSet<NodeId>) -> Result<bool, JournalError> {
        let changing = self.model().committed().filter_map(|(record, plan)| {
            let before = record.previous.as_ref()?;
            // A change that leaves a lost node never waits for it.
            let left = |node: &&NodeId| !self.model().cut_off.contains_key(*node);
            let nodes: BTreeSet<_> = nodes_of(plan).union(&nodes_of(before)).copied().collect();
            Some((&record.job.name, nodes.into_iter().filter(left).collect::<Vec<_>>()))
        });
        let (mut needed, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for (job, nodes) in changing {
            let gone = nodes.into_iter().filter(|node| silent.contains(*node));
            let gone: BTreeSet<NodeId> = gone.cloned().collect();
            failed.extend((!gone.is_empty()).then(|| job.clone()));
            needed.extend(gone);
        }
        if needed.is_empty() {
            return Ok(false);
        }
        self.fail(self.at_fault(failed));
        let nodes = names(&needed);
        let seconds = super::advance::STEP_DEADLINE_MS / 1000;
        self.take_back(&format!("{} {nodes} within {seconds} s", super::decide::TAKEN_BACK))?;
        Ok(true)
    }

    /// Takes changes back that nodes confirm but do not carry out in time.
    pub(super) fn take_back_overdue(&mut self) -> Result<(), JournalError> {
        if moves(self.model()).next().is_none() {
            self.progress = None;
            return Ok(());
        }
        let phase = self.goal().phase;
        let steps = matches!(phase, Phase::Clearing | Phase::Last);
        let generation = if steps { self.model().generation } else { 0 };
        let now = Progress { phase, generation, at_ms: self.now_ms };
        let before = self.progress.filter(|it| (it.phase, it.generation) == (now.phase, now.generation));
        let since = before.unwrap_or(now);
        self.progress = Some(since);
        match self.overdue(now.phase, self.now_ms.saturating_sub(since.at_ms)) {
            Some((job, reason)) => {
                self.fail(self.at_fault(BTreeSet::from([job])));
                self.take_back(&reason)
            }
            None => Ok(()),
        }
    }

    /// The last commits of these jobs were not carried out; they are made again after a while.
    pub(super) fn fail(&mut self, jobs: impl IntoIterator<Item = JobName>) {
        for (turn, job) in (0..).zip(jobs) {
            self.losses.retries.failed(&job, turn, self.now_ms);
        }
    }

    /// Those at fault, and then new jobs that go back with them: one of these may be what asks for the change.
    fn at_fault(&self, jobs: BTreeSet<JobName>) -> Vec<JobName> {
        let fresh = self.model().committed().filter(|(record, _)| !record.confirmed);
        let fresh = fresh.map(|(record, _)| record.job.name.clone()).filter(|job| !jobs.contains(job));
        let fresh: Vec<JobName> = fresh.collect();
        jobs.into_iter().chain(fresh).collect()
    }

    fn overdue(&self, phase: Phase, waited_ms: u64) -> Option<(JobName, String)> {
        let (model, seconds) = (self.model(), waited_ms / 1000);
        let deadline_ms = if phase == Phase::Pulling { PULL_DEADLINE_MS } else { CONTAINER_DEADLINE_MS };
        if waited_ms < deadline_ms {
            return None;
        }
        match phase {
            Phase::Pulling => {
                let it = moves(model).find(|it| holding::pulls(model, &self.nodes, it))?;
                let image = &it.image.reference.name;
                let text =
                    format!("image {image} of task {} is not on node {} after {seconds} s", it.task, it.to);
                Some((it.job.clone(), text))
            }
            Phase::Vacating => {
                let stays = moves(model).find(|it| holding::shows(&self.nodes, it.from, it).is_some());
                let it = stays.or_else(|| moves(model).next())?;
                let text = format!("task {} has not left node {} within {seconds} s", it.task, it.from);
                Some((it.job.clone(), text))
            }
            Phase::Clearing => None,
            Phase::Last => {
                let it = holding::not_running(model, &self.nodes)?;
                let text = format!("task {} does not run on node {} after {seconds} s", it.task, it.to);
                Some((it.job.clone(), text))
            }
        }
    }

    /// Everything that is not confirmed goes back.
    pub(super) fn take_back(&mut self, reason: &str) -> Result<(), JournalError> {
        let open =
            self.model().committed().filter(|(record, _)| !record.confirmed || record.previous.is_some());
        let open: Vec<(JobName, bool)> =
            open.map(|(record, _)| (record.job.name.clone(), record.previous.is_some())).collect();
        for (job, ran) in open {
            if ran {
                let text = format!("the change is taken back: {reason}");
                self.events.note(self.now_ms, Some(&job), Kind::Changed, text);
                self.state.commit(Event::Restored { job })?;
            } else {
                self.events.note(self.now_ms, Some(&job), Kind::Waiting, reason.to_owned());
                self.state.commit(Event::Returned { job, reason: reason.to_owned() })?;
            }
        }
        Ok(())
    }
}
