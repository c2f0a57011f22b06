//! Nodes that are lost, and that return: what each job makes of it.
//!
//! In: losses as the pure room finds them. Out: commits that leave lost nodes, with the other tasks where
//! they are if that is possible at all, and a reason for each job that has to wait. A returned node counts
//! again once it has confirmed a document and shows nothing that is wanted elsewhere.

use super::Owner;
use super::difference::difference;
use crate::error::ForgetError;
use crate::events::Kind;
use crate::journal::JournalError;
use crate::lost::{self, Remedy, Retries, names};
use crate::model::{Event, JobRecord, Stray, nodes_of};
use crate::planner::{Outcome, PlanError, reason};
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::job::Reconcile;
use edgeloom_common::view::StrayView;
use std::collections::{BTreeMap, BTreeSet};

/// What was told and tried of lost nodes.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: BTreeSet<(NodeId, JobName)>,
    /// Why a placed job does not go on by itself.
    pub(super) blocked: BTreeMap<JobName, String>,
    /// What nodes and links offered when a job found no place.
    tried: BTreeMap<JobName, String>,
    /// The same when a job's tasks did not find back to where they were.
    kept: BTreeMap<JobName, String>,
    pub(super) retries: Retries,
}

/// A job that is to be planned anew without these nodes.
struct Due {
    job: JobName,
    lost: BTreeSet<NodeId>,
}

impl Owner {
    /// Places tasks of lost nodes anew, and takes those back that want to be where they were.
    pub(super) fn mend(&mut self) -> Result<(), JournalError> {
        let due = self.due();
        if !due.is_empty() && !self.make_way(&due)? {
            for loss in due {
                self.replace(&loss)?;
            }
        }
        self.reunite()?;
        self.bring_back()
    }

    /// Tells of losses, notes why jobs wait, and picks those that can be tried now.
    fn due(&mut self) -> Vec<Due> {
        let found = lost::losses(self.model(), &self.nodes, self.now_ms);
        let found: Vec<_> = found
            .into_iter()
            .map(|loss| (Due { job: loss.record.job.name.clone(), lost: loss.nodes }, loss.remedy))
            .collect();
        let known = |job: &JobName| found.iter().any(|(due, _)| due.job == *job);
        self.losses.blocked.retain(|job, _| known(job));
        self.losses.tried.retain(|job, _| known(job));
        let (jobs, now_ms) = (&self.state.model.jobs, self.now_ms);
        self.losses.retries.retain(|job| jobs.contains_key(job), now_ms);
        self.losses.kept.retain(|job, _| jobs.contains_key(job));
        let nodes = &self.nodes;
        self.losses.told.retain(|(node, job)| !nodes.online(node) && jobs.contains_key(job));
        let offer = if found.is_empty() { String::new() } else { self.offer() };
        let mut due = Vec::new();
        for (loss, remedy) in found {
            self.tell(&loss);
            match remedy {
                Remedy::Wait(reason) => self.block(&loss.job, reason),
                Remedy::Replace if self.losses.tried.get(&loss.job) == Some(&offer) => {}
                Remedy::Replace if !self.losses.retries.may(&loss.job, self.now_ms) => {}
                Remedy::Replace => due.push(loss),
            }
        }
        due
    }

    /// All that a place depends on.
    pub(super) fn offer(&self) -> String {
        let jobs = self.model().jobs.values();
        // Of a batch, what it holds and what it has done besides.
        let held = |record: &JobRecord| {
            let placed = record.plan.as_ref().map_or(0, |plan| plan.placement.len());
            record.job.kind.ends().then_some((placed, record.ended.len()))
        };
        let holding: Vec<_> =
            jobs.map(|record| (&record.job.name, record.phase, record.settled(), held(record))).collect();
        let cordons = &self.model().cordons;
        let volumes: Vec<_> = self.nodes.volumes().collect();
        let (nodes, links) = (self.nodes.schedulable(), self.nodes.links());
        format!("{nodes:?}{links:?}{holding:?}{cordons:?}{volumes:?}")
    }

    /// Some job counts the node as lost, or left it behind.
    pub(super) fn is_lost(&self, node: &NodeId) -> bool {
        self.model().cut_off.contains_key(node) || self.losses.told.iter().any(|(told, _)| told == node)
    }

    fn tell(&mut self, loss: &Due) {
        for node in &loss.lost {
            if self.losses.told.insert((node.clone(), loss.job.clone())) {
                let seconds = self.nodes.away_ms(node, self.now_ms).unwrap_or(0) / 1000;
                let text = format!("node {node} is lost: out of reach for {seconds} s");
                self.events.note(self.now_ms, Some(&loss.job), Kind::NodeLost, text);
            }
        }
    }

    fn block(&mut self, job: &JobName, reason: String) {
        if self.losses.blocked.get(job) != Some(&reason) {
            self.events.note(self.now_ms, Some(job), Kind::Waiting, reason.clone());
            self.losses.blocked.insert(job.clone(), reason);
        }
    }

    /// What is on its way would hold up a job that does not run, by the time of a pull: it goes back. True:
    /// something did. A job that was tried before waits instead, so that two never take each other back.
    fn make_way(&mut self, due: &[Due]) -> Result<bool, JournalError> {
        let changing = self.model().committed().any(|(record, _)| record.previous.is_some());
        let losses = &self.losses;
        let first = |it: &&Due| losses.retries.fresh(&it.job) && !losses.tried.contains_key(&it.job);
        let Some(loss) = due.iter().find(first).filter(|_| changing) else { return Ok(false) };
        self.take_back(&format!("node {} is lost, and its tasks come first", names(&loss.lost)))?;
        Ok(true)
    }

    fn replace(&mut self, loss: &Due) -> Result<(), JournalError> {
        let Some(record) = self.model().jobs.get(&loss.job).cloned() else { return Ok(()) };
        if record.job.kind.ends() {
            self.losses.blocked.remove(&loss.job);
            return self.run_elsewhere(&record, &loss.lost);
        }
        let mut outcome = match self.placed_anew(&record, &lost::pinned(&record, &loss.lost)) {
            Ok(outcome) => outcome,
            Err(why) => {
                let names = names(&loss.lost);
                self.losses.tried.insert(loss.job.clone(), self.offer());
                self.block(&loss.job, format!("node {names} is lost and nothing else serves: {why}"));
                return Ok(());
            }
        };
        for commit in outcome.commits.iter_mut().filter(|commit| commit.plan.job == loss.job) {
            commit.lost.clone_from(&loss.lost);
        }
        let why = format!("node {} is lost", names(&loss.lost));
        self.commit_told(outcome, (&loss.job, &why))?;
        self.losses.tried.remove(&loss.job);
        self.losses.blocked.remove(&loss.job);
        for node in &loss.lost {
            self.nodes.table.entry(node.clone()).or_default().silent = true;
        }
        Ok(())
    }

    /// A plan that has a place for all of the job: `held` first, then as if all of it waited.
    fn placed_anew(&self, record: &JobRecord, held: &JobRecord) -> Result<Outcome, String> {
        let first = self.outcome(&[held], &BTreeMap::new());
        match first {
            Ok(outcome) if outcome.unplaced.is_empty() => Ok(outcome),
            _ => whole(self.decide(&[record])),
        }
    }

    /// Commits and tells, also of other jobs that change with it.
    pub(super) fn commit_told(
        &mut self,
        outcome: Outcome,
        (job, why): (&JobName, &str),
    ) -> Result<(), JournalError> {
        let told = |commit: &crate::model::Commit| {
            let name = &commit.plan.job;
            let before = self.model().jobs.get(name)?.plan.as_ref()?;
            let kind = if name == job { Kind::Replan } else { Kind::Changed };
            Some((name.clone(), kind, format!("{why}: {}", difference(before, &commit.plan))))
        };
        let notes: Vec<_> = outcome.commits.iter().filter_map(told).collect();
        self.state.commit(Event::Committed { commits: outcome.commits })?;
        self.count_replan(job);
        for (job, kind, text) in notes {
            self.events.note(self.now_ms, Some(&job), kind, text);
        }
        Ok(())
    }

    /// Moves tasks back to where they were placed first, where the job says so and the node has been back for
    /// as long as it takes to be lost. An ordinary change, one job at a time.
    fn bring_back(&mut self) -> Result<(), JournalError> {
        if !self.model().settled() {
            return Ok(());
        }
        let now_ms = self.now_ms;
        let back = |record: &JobRecord, node: &NodeId| {
            let known = self.nodes.table.get(node);
            let ready = known.filter(|known| known.ready() && !self.model().cut_off.contains_key(node));
            ready.is_some_and(|known| now_ms.saturating_sub(known.since_ms) >= lost::lost_after_ms(record))
        };
        let wants = |record: &JobRecord| {
            record.job.disconnect.reconcile == Reconcile::KeepOriginal
                && !record.moved.is_empty()
                && record.moved.values().all(|node| back(record, node))
        };
        let record = self.model().committed().map(|(record, _)| record).find(|record| {
            wants(record) && self.losses.retries.may(&record.job.name, now_ms) && !self.was_kept(record)
        });
        let Some(record) = record.cloned() else { return Ok(()) };
        let job = &record.job.name;
        match whole(self.outcome(&[&lost::returned(&record)], &BTreeMap::new())) {
            Ok(outcome) => {
                let from: BTreeSet<NodeId> = record.moved.values().cloned().collect();
                self.commit_told(outcome, (job, &format!("node {} has returned", names(&from))))
            }
            Err(why) => {
                self.keep_replacement(job);
                self.events.note(now_ms, Some(job), Kind::Kept, format!("tasks stay where they are: {why}"));
                Ok(())
            }
        }
    }

    /// Another attempt makes sense only when something else is offered.
    pub(super) fn keep_replacement(&mut self, job: &JobName) {
        let offer = self.offer();
        self.losses.kept.insert(job.clone(), offer);
    }

    pub(super) fn was_kept(&self, record: &JobRecord) -> bool {
        self.losses.kept.get(&record.job.name).is_some_and(|kept| *kept == self.offer())
    }

    /// A node that was cut off counts again once it runs nothing but what its document says.
    pub(super) fn rejoin(&mut self, node: &NodeId) {
        let Some(strays) = self.model().cut_off.get(node) else { return };
        let (known, document) = (self.nodes.table.get(node), self.model().published.get(node));
        let Some(seen) = known.filter(|known| known.online).and_then(|known| known.observed.as_ref()) else {
            return;
        };
        let wanted = |stray: &Stray| {
            let specs = document.into_iter().flat_map(|document| &document.containers);
            specs.into_iter().any(|spec| (&spec.job, &spec.task) == (&stray.job, &stray.task))
        };
        let runs = |stray: &&Stray| {
            let mut containers = seen.containers.iter();
            containers.any(|state| (&state.job, &state.task) == (&stray.job, &stray.task)) && !wanted(stray)
        };
        let clean = seen.listed && !strays.iter().any(|stray| runs(&stray));
        let confirmed = document.is_none() || self.nodes.confirmed(node, &self.model().published);
        if !clean || !confirmed {
            return;
        }
        match self.state.commit(Event::Rejoined { node: node.clone() }) {
            Ok(()) => {
                let text = format!("node {node} has returned and runs only what is wanted of it");
                self.events.note(self.now_ms, None, Kind::NodeReturned, text);
            }
            Err(error) => tracing::error!(%error, %node, "the return of a node is not kept"),
        }
    }

    /// A node that will not come back: nothing of it is waited for, nor kept from others. Says what it may run.
    pub(crate) fn forget(&mut self, node: &NodeId) -> Result<Vec<StrayView>, ForgetError> {
        let model = self.model();
        if !model.published.contains_key(node) && !self.nodes.table.contains_key(node) {
            return Err(ForgetError::Unknown(node.clone()));
        }
        if self.nodes.online(node) {
            return Err(ForgetError::Online(node.clone()));
        }
        if let Some((record, _)) = model.committed().find(|(_, plan)| nodes_of(plan).contains(node)) {
            return Err(ForgetError::Used { node: node.clone(), job: record.job.name.clone() });
        }
        let may_run = self.may_run(node);
        if let Err(error) = self.state.commit(Event::Forgotten { node: node.clone() }) {
            tracing::error!(%error, %node, "that a node is gone is not kept");
            return Err(ForgetError::Unavailable(node.clone()));
        }
        self.nodes.table.remove(node);
        self.events.note(self.now_ms, None, Kind::Forgotten, format!("node {node} is forgotten"));
        self.advance();
        Ok(may_run.into_iter().collect())
    }

    /// Containers that a node had by what it was sent, what it showed and what was placed elsewhere since.
    fn may_run(&self, node: &NodeId) -> BTreeSet<StrayView> {
        let sent = self.model().published.get(node).into_iter().flat_map(|document| &document.containers);
        let shown = self.nodes.table.get(node).and_then(|known| known.observed.as_ref());
        let shown = shown.into_iter().flat_map(|seen| &seen.containers);
        let strays = self.model().cut_off.get(node).into_iter().flatten();
        let names = sent.map(|it| (&it.job, &it.task)).chain(shown.map(|it| (&it.job, &it.task)));
        let names = names.chain(strays.map(|it| (&it.job, &it.task)));
        names.map(|(job, task)| StrayView { job: job.clone(), task: task.clone() }).collect()
    }

    /// Keeps what nodes out of reach may still run of a job that is done with these places.
    pub(super) fn strand(
        &mut self,
        job: &JobName,
        places: impl IntoIterator<Item = (edgeloom_common::ids::TaskName, NodeId)>,
    ) -> Result<(), JournalError> {
        let Some(record) = self.model().jobs.get(job) else { return Ok(()) };
        let away =
            |node: &NodeId| self.nodes.table.get(node).is_none_or(|known| !known.online || known.silent);
        let strays = places.into_iter().filter(|(_, node)| away(node));
        let strays: Vec<(NodeId, Stray)> =
            strays.filter_map(|(task, node)| Some((node, record.stray(&task)?))).collect();
        let new = |(node, stray): &(NodeId, Stray)| {
            self.model().cut_off.get(node).is_none_or(|strays| !strays.contains(stray))
        };
        if !strays.iter().any(new) {
            return Ok(());
        }
        for (node, _) in &strays {
            self.nodes.table.entry(node.clone()).or_default().silent = true;
        }
        self.state.commit(Event::Stranded { strays })
    }
}

/// The outcome, if everybody found a place.
pub(super) fn whole(outcome: Result<Outcome, PlanError>) -> Result<Outcome, String> {
    let outcome = outcome.map_err(|error| error.to_string())?;
    match outcome.unplaced.first() {
        Some(unplaced) => Err(reason(unplaced)),
        None => Ok(outcome),
    }
}
