//! From waiting jobs to commits: asks the planner, journals what it decided and why others wait.

use super::Owner;
use super::difference::{begins, difference, places};
use crate::data;
use crate::error::SubmitError;
use crate::events::Kind;
use crate::journal::JournalError;
use crate::model::{Commit, Event, JobRecord, Model, Phase};
use crate::planner::{Leave, Outcome, PlanError, Planner, reason, waiting};
use crate::topology::DownLinks;
use edgeloom_common::ids::JobName;
use edgeloom_common::view::ProblemItem;
use edgeloom_sched::plan::{JobPlan, Unplaced};
use edgeloom_sched::snapshot::Change;
use std::collections::BTreeMap;
use std::time::Instant;

/// How the reason of a job begins whose commit was taken back.
pub(super) const TAKEN_BACK: &str = "not confirmed by";

/// A running job is moved for another's sake at most this often.
const UNDISTURBED_MS: u64 = 60_000;

impl Owner {
    /// Decides on waiting jobs again if anything they depend on has changed.
    pub(super) fn decide_waiting(&mut self) -> Result<(), JournalError> {
        let mut names = waiting(self.model(), &self.nodes);
        names.retain(|job| self.losses.retries.may(job, self.now_ms));
        if names.is_empty() {
            self.decided_on.clear();
            return Ok(());
        }
        self.gather(&mut names)?;
        if names.is_empty() {
            return Ok(());
        }
        let seen = format!("{}{names:?}{:?}", self.offer(), self.leave(0));
        if seen == self.decided_on {
            return Ok(());
        }
        self.decided_on = seen;
        let records: Vec<JobRecord> =
            names.iter().filter_map(|name| self.model().jobs.get(name).cloned()).collect();
        let (opened, outcome) = self.decide_with_all(&records.iter().collect::<Vec<_>>());
        self.open(&opened)?;
        if outcome.is_ok() || names.len() == 1 {
            return self.carry(outcome, &names);
        }
        // One of them cannot be committed: each by itself, so that it does not hold up the others.
        for (name, record) in names.iter().zip(&records) {
            let outcome = self.decide(&[record]);
            self.carry(outcome, std::slice::from_ref(name))?;
        }
        Ok(())
    }

    /// Takes those out that wait for the next heartbeat of their profile; when it comes, all of them stay.
    fn gather(&mut self, names: &mut Vec<JobName>) -> Result<(), JournalError> {
        let gathered = |job: &JobName| {
            let record = self.model().jobs.get(job);
            record.is_some_and(|record| has_heartbeat(&record.profile))
        };
        let (gathered, others): (Vec<_>, Vec<_>) = std::mem::take(names).into_iter().partition(gathered);
        let period = self.settings.batching.heartbeat;
        let next_ms = self.beat_ms + u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        if gathered.is_empty() || self.now_ms >= next_ms {
            self.beat_ms = if gathered.is_empty() { self.beat_ms } else { self.now_ms };
            *names = others.into_iter().chain(gathered).collect();
            return Ok(());
        }
        *names = others;
        let text = format!("gathered until the next heartbeat of its profile, every {} s", period.as_secs());
        let fresh = |record: &JobRecord| record.phase == Phase::Waiting && record.reason.is_empty();
        for job in gathered {
            if self.model().jobs.get(&job).is_some_and(fresh) {
                self.delay(&job, &text)?;
            }
        }
        Ok(())
    }

    /// Gives what departed jobs left to those that run. Waiting jobs have their turn by themselves.
    pub(super) fn share_out(&mut self) -> Result<(), JournalError> {
        if !waiting(self.model(), &self.nodes).is_empty() {
            return Ok(());
        }
        let outcome = self.decide(&[]);
        self.carry(outcome, &[])
    }

    pub(super) fn decide(&self, records: &[&JobRecord]) -> Result<Outcome, PlanError> {
        let outcome = self.outcome(records, &self.leave(UNDISTURBED_MS))?;
        // More tasks than there is room for are what a batch is.
        let batch =
            |job: &JobName| records.iter().any(|record| record.job.kind.ends() && record.job.name == *job);
        if outcome.unplaced.iter().all(|unplaced| unplaced.never || batch(&unplaced.job)) {
            return Ok(outcome);
        }
        // A job that would wait is reason enough to move one that has only begun.
        let again = self.outcome(records, &self.leave(0))?;
        Ok(if again.unplaced.len() < outcome.unplaced.len() { again } else { outcome })
    }

    /// What an arrival or a departure may change of what runs: jobs whose profile routes all its flows anew
    /// may be rerouted, and jobs that have run undisturbed for so long may be moved. Nothing moves while
    /// another change is on its way.
    fn leave(&self, undisturbed_ms: u64) -> BTreeMap<JobName, Change> {
        if !self.model().settled() {
            return BTreeMap::new();
        }
        let change = |record: &JobRecord, plan: &JobPlan| {
            let since_ms = self.closed_loop.known.get(&record.job.name).and_then(|known| known.running_ms);
            let steady =
                since_ms.is_some_and(|since_ms| self.now_ms.saturating_sub(since_ms) >= undisturbed_ms);
            match plan.profile.as_str() {
                "otfa" | "tp" => Change::Routes,
                _ if steady => Change::Placement,
                _ => Change::Rates,
            }
        };
        let confirmed = self.model().committed().filter(|(record, _)| record.confirmed);
        confirmed.map(|(record, plan)| (record.job.name.clone(), change(record, plan))).collect()
    }

    /// Decides with leave to change what runs; jobs not named may change their rates.
    pub(super) fn outcome(
        &self,
        records: &[&JobRecord],
        changes: &BTreeMap<JobName, Change>,
    ) -> Result<Outcome, PlanError> {
        let (down, begun) = (self.nodes.down(&self.model().topology), Instant::now());
        let outcome = self.planner(self.model(), &down, changes).outcome(records);
        self.decisions.borrow_mut().add(begun.elapsed().as_secs_f64());
        outcome
    }

    pub(super) fn planner<'a>(
        &'a self,
        model: &'a Model,
        down: &'a DownLinks,
        changes: &'a BTreeMap<JobName, Change>,
    ) -> Planner<'a> {
        Planner {
            model,
            nodes: &self.nodes,
            ground: self.ground(down),
            profile: self.settings.profile,
            scoring: &self.settings.scoring,
            packing: self.settings.batching.packing,
            now_ms: self.now_ms,
            leave: Leave {
                changes,
                online: self.closed_loop.online(),
                enough: self.closed_loop.uses.enough(),
            },
        }
    }

    pub(super) fn carry(
        &mut self,
        outcome: Result<Outcome, PlanError>,
        names: &[JobName],
    ) -> Result<(), JournalError> {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::warn!(%error, "a decision is not committed");
                for job in names {
                    self.delay(job, &error.to_string())?;
                }
                return Ok(());
            }
        };
        let begun = |job: &JobName| {
            let now = outcome.commits.iter().any(|commit| commit.plan.job == *job);
            let record = self.model().jobs.get(job).filter(|record| record.job.kind.ends());
            record.is_some_and(|record| now || record.plan.iter().any(|plan| !plan.placement.is_empty()))
        };
        let delayed: Vec<_> = outcome.unplaced.iter().filter(|unplaced| !begun(&unplaced.job)).collect();
        for unplaced in delayed {
            self.delay(&unplaced.job, &reason(unplaced))?;
        }
        if outcome.commits.is_empty() {
            return Ok(());
        }
        let notes: Vec<_> = outcome.commits.iter().map(|commit| self.told(commit)).collect();
        self.state.commit(Event::Committed { commits: outcome.commits })?;
        for (job, kind, text) in notes {
            if kind == Kind::Placed {
                self.closed_loop.witnessed.insert(job.clone());
            }
            self.events.note(self.now_ms, Some(&job), kind, text);
        }
        Ok(())
    }

    /// A job that can never fit is refused at once, with the reason of each node. What a node has that is still to
    /// tell it, as one that has just joined or that a new controller has not heard yet, nobody knows.
    pub(super) fn refuse_never(&self, outcome: &Outcome, record: &JobRecord) -> Result<(), SubmitError> {
        let table = &self.nodes.table;
        let known = |node| table.get(node).is_some_and(|record| record.inventory.is_some());
        let all_known = !table.is_empty() && self.model().published.keys().chain(table.keys()).all(known);
        match outcome.unplaced.iter().find(|unplaced| unplaced.never && all_known) {
            Some(unplaced) => {
                let mut found = data::problems(record, &self.nodes);
                found.extend(problems(unplaced));
                Err(SubmitError::Unplaceable(found))
            }
            None => Ok(()),
        }
    }

    /// What a commit is told as, before it is made.
    fn told(&self, commit: &Commit) -> (JobName, Kind, String) {
        let (plan, job) = (&commit.plan, commit.plan.job.clone());
        let before = self.model().jobs.get(&job).and_then(|record| record.plan.as_ref());
        let items = plan.prediction.items_per_s;
        let batch = self.model().jobs.get(&job).is_some_and(|record| record.job.kind.ends());
        match before {
            _ if batch => (job, Kind::Placed, begins(before, plan)),
            Some(before) => {
                (job, Kind::Changed, format!("others came or went: {}", difference(before, plan)))
            }
            None => (job, Kind::Placed, format!("{}; {items:.2} items/s predicted", places(plan))),
        }
    }

    /// Notes why a job waits, after the reason for which it was taken back, if it was.
    fn delay(&mut self, job: &JobName, reason: &str) -> Result<(), JournalError> {
        let Some(record) = self.model().jobs.get(job) else { return Ok(()) };
        let taken_back = record.reason.split("; now: ").next().filter(|text| text.starts_with(TAKEN_BACK));
        let reason = match taken_back {
            Some(before) => format!("{before}; now: {reason}"),
            None => reason.to_owned(),
        };
        if record.reason == reason {
            return Ok(());
        }
        self.events.note(self.now_ms, Some(job), Kind::Waiting, reason.clone());
        self.state.commit(Event::Delayed { job: job.clone(), reason })
    }
}

/// Whether jobs of that profile are gathered.
pub(super) fn has_heartbeat(profile: &str) -> bool {
    edgeloom_sched::profile(profile).is_some_and(edgeloom_sched::Profile::has_heartbeat)
}

fn problems(unplaced: &Unplaced) -> Vec<ProblemItem> {
    let by_node = unplaced.reasons.iter().map(|reason| ProblemItem {
        line: 0,
        field: reason.node.to_string(),
        problem: format!("task {}: {}", unplaced.task, reason.text),
        remedy: "ask for less, or add a node that has it".to_owned(),
    });
    by_node.collect()
}
