//! The one owner of the cluster's state: takes commands one by one and, after each, brings published
//! documents a step nearer to the wanted ones.

use crate::barrier;
use crate::documents::{Documents, Ground, documents};
use crate::error::{SubmitError, UnknownJob};
use crate::journal::JournalError;
use crate::model::{Event, Image, JobRecord, Model, Phase};
use crate::nodes::{NodeMessage, Nodes};
use crate::outbox::Outbox;
use crate::planner::{Outcome, PlanError, Planner, new_record, reason, waiting};
use crate::state::State;
use crate::topology::DownLinks;
use crate::views;
use edgeloom_common::desired::{DesiredState, Pool};
use edgeloom_common::ids::{ClusterId, JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::view::{JobState, JobView, ProblemItem};
use edgeloom_sched::Profile;
use edgeloom_sched::plan::Unplaced;
use std::collections::{BTreeMap, BTreeSet};

/// How long nodes have to confirm a step.
pub(crate) const STEP_DEADLINE_MS: u64 = 10_000;

/// A job with its images resolved.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) job: Job,
    pub(crate) images: BTreeMap<TaskName, Image>,
}

/// What the owner is made with.
#[derive(Debug)]
pub(crate) struct Ownership {
    pub(crate) cluster: ClusterId,
    pub(crate) pool: Pool,
    pub(crate) profile: Profile,
}

/// State, nodes and the change under way.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) settings: Ownership,
    pub(crate) state: State,
    pub(crate) nodes: Nodes,
    pub(crate) outbox: Outbox,
    /// Jobs whose commit has not arrived everywhere.
    settling: BTreeSet<JobName>,
    /// When the step that nodes have to confirm was published.
    step_ms: u64,
    /// What the last decision on waiting jobs was made with.
    decided_on: String,
    pub(crate) now_ms: u64,
}

impl Owner {
    pub(crate) fn new(settings: Ownership, state: State, outbox: Outbox, now_ms: u64) -> Self {
        let mut owner = Self {
            settings,
            state,
            nodes: Nodes::default(),
            outbox,
            settling: BTreeSet::new(),
            step_ms: now_ms,
            decided_on: String::new(),
            now_ms,
        };
        let wanted = owner.wanted();
        owner.settling = owner.touched(&wanted);
        owner.state.model.published.keys().cloned().for_each(|node| owner.outbox.mark(node));
        owner
    }

    pub(crate) fn model(&self) -> &Model {
        &self.state.model
    }

    /// Accepts a job and decides on it.
    pub(crate) fn submit(&mut self, order: Order) -> Result<JobView, SubmitError> {
        let name = order.job.name.clone();
        let record = self.record(order)?;
        let outcome = self.decide(&[&record]);
        if let Ok(outcome) = &outcome {
            refuse_never(outcome)?;
        }
        self.keep(Event::Accepted(Box::new(record)))?;
        self.carry(outcome, std::slice::from_ref(&name))?;
        self.advance();
        self.job(&name).ok_or(SubmitError::Unavailable)
    }

    /// What [`submit`](Self::submit) would do, without doing it.
    pub(crate) fn plan(&self, order: Order) -> Result<JobView, SubmitError> {
        let mut record = self.record(order)?;
        let outcome = match self.decide(&[&record]) {
            Ok(outcome) => outcome,
            Err(error) => {
                record.reason = error.to_string();
                return Ok(views::job(self.model(), &self.nodes, &record));
            }
        };
        refuse_never(&outcome)?;
        if let Some(unplaced) = outcome.unplaced.first() {
            record.reason = reason(unplaced);
        }
        let mut model = self.model().clone();
        let name = record.job.name.clone();
        model.apply(Event::Accepted(Box::new(record)));
        model.apply(Event::Committed { commits: outcome.commits });
        let record = model.jobs.get(&name).ok_or(SubmitError::Unavailable)?;
        let mut view = views::job(&model, &self.nodes, record);
        if record.plan.is_some() {
            view.state = JobState::Planned;
        }
        Ok(view)
    }

    fn record(&self, order: Order) -> Result<JobRecord, SubmitError> {
        if self.model().jobs.contains_key(&order.job.name) {
            return Err(SubmitError::Exists(order.job.name));
        }
        if let Some(source) = &order.job.source
            && !self.nodes.table.contains_key(&source.node)
        {
            return Err(SubmitError::SourceUnknown(source.node.clone()));
        }
        Ok(new_record(order.job, order.images, self.settings.profile.name(), self.now_ms))
    }

    pub(crate) fn stop(&mut self, name: &JobName) -> Result<JobView, UnknownJob> {
        let unknown = || UnknownJob(name.clone());
        let mut view = self.job(name).ok_or_else(unknown)?;
        if self.keep(Event::Stopping { job: name.clone() }).is_ok() {
            view.state = JobState::Stopping;
            self.settling.remove(name);
            self.advance();
        }
        Ok(view)
    }

    pub(crate) fn job(&self, name: &JobName) -> Option<JobView> {
        Some(views::job(self.model(), &self.nodes, self.model().jobs.get(name)?))
    }

    /// Takes in what a node says.
    pub(crate) fn observe(&mut self, node: &NodeId, message: NodeMessage) {
        let only_load = matches!(message, NodeMessage::Report(_));
        let connected = matches!(&message, NodeMessage::Status(status) if status.online);
        self.nodes.observe(node, message, self.now_ms, &self.settings.cluster);
        if connected {
            self.outbox.mark(node.clone());
        }
        if !only_load {
            self.compare_version(node);
            self.advance();
        }
    }

    /// A node with an older document gets it again; one with a newer shows that our state is an old copy.
    fn compare_version(&mut self, node: &NodeId) {
        let Some(observed) = self.nodes.table.get(node).and_then(|known| known.observed.as_ref()) else {
            return;
        };
        let (theirs, ours) = (observed.version, self.model().version(node));
        if theirs < ours {
            self.outbox.mark(node.clone());
        }
        if theirs > ours && theirs.epoch < u64::MAX / 2 {
            tracing::warn!(%node, ?theirs, ?ours, "a node has a newer document than was ever sent; the epoch rises");
            let epoch = theirs.epoch.max(self.model().epoch) + 1;
            if self.keep(Event::EpochRaised { epoch }).is_ok() {
                let all: Vec<DesiredState> = self.model().published.values().cloned().collect();
                let _ = self.publish(all);
            }
        }
        if self.nodes.confirmed(node, &self.state.model.published)
            && let Some(known) = self.nodes.table.get_mut(node)
        {
            known.silent = false;
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        self.nodes.expire(self.now_ms);
        self.advance();
    }

    /// Everything that can be done now.
    pub(crate) fn advance(&mut self) {
        if let Err(error) = self.try_advance() {
            tracing::error!(%error, "nothing is decided or published");
        }
        self.outbox.flush(&self.state.model.published);
    }

    fn try_advance(&mut self) -> Result<(), JournalError> {
        self.learn_topology()?;
        self.give_up()?;
        self.decide_waiting()?;
        self.step()?;
        self.finish_stopping()
    }

    fn learn_topology(&mut self) -> Result<(), JournalError> {
        let known: Vec<NodeId> = self.nodes.table.keys().cloned().collect();
        for node in known {
            let neighbours = self.nodes.neighbours(&node);
            let online = self.nodes.online(&node);
            match neighbours.or_else(|| online.then(BTreeMap::new)) {
                Some(neighbours)
                    if self.model().topology.get(&node) != Some(&neighbours)
                        && !(neighbours.is_empty() && self.model().topology.contains_key(&node)) =>
                {
                    self.state.commit(Event::Topology { node, neighbours })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Decides on waiting jobs again if anything they depend on has changed.
    fn decide_waiting(&mut self) -> Result<(), JournalError> {
        let names = waiting(self.model());
        let holding: Vec<_> =
            self.model().jobs.values().map(|record| (&record.job.name, record.phase)).collect();
        let seen = format!("{:?}{:?}{holding:?}", self.nodes.schedulable(), self.nodes.links());
        if names.is_empty() || seen == self.decided_on {
            return Ok(());
        }
        self.decided_on = seen;
        let records: Vec<JobRecord> =
            names.iter().filter_map(|name| self.model().jobs.get(name).cloned()).collect();
        let outcome = self.decide(&records.iter().collect::<Vec<_>>());
        self.carry_journaled(outcome, &names)
    }

    fn decide(&self, records: &[&JobRecord]) -> Result<Outcome, PlanError> {
        let down = self.nodes.down(&self.model().topology);
        let planner = Planner {
            model: self.model(),
            nodes: &self.nodes,
            ground: self.ground(&down),
            profile: self.settings.profile,
            now_ms: self.now_ms,
        };
        planner.outcome(records)
    }

    fn carry(&mut self, outcome: Result<Outcome, PlanError>, names: &[JobName]) -> Result<(), SubmitError> {
        self.carry_journaled(outcome, names).map_err(|error| unavailable(&error))
    }

    fn carry_journaled(
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
        for unplaced in &outcome.unplaced {
            self.delay(&unplaced.job, &reason(unplaced))?;
        }
        if !outcome.commits.is_empty() {
            self.settling.extend(outcome.commits.iter().map(|commit| commit.plan.job.clone()));
            self.state.commit(Event::Committed { commits: outcome.commits })?;
        }
        Ok(())
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
        self.state.commit(Event::Delayed { job: job.clone(), reason })
    }

    /// Nodes whose confirmation the next step waits for.
    fn awaited(&self) -> BTreeSet<NodeId> {
        let published = &self.model().published;
        let waits = |node: &&NodeId| {
            let silent = self.nodes.table.get(*node).is_some_and(|known| known.silent);
            !silent && !self.nodes.confirmed(node, published)
        };
        published.keys().filter(waits).cloned().collect()
    }

    /// After the deadline: nodes that did not confirm are left out, and jobs that need them go back.
    fn give_up(&mut self) -> Result<(), JournalError> {
        let silent = self.awaited();
        if silent.is_empty() || self.now_ms.saturating_sub(self.step_ms) < STEP_DEADLINE_MS {
            return Ok(());
        }
        for node in &silent {
            self.nodes.table.entry(node.clone()).or_default().silent = true;
        }
        let needs = |plan: &edgeloom_sched::plan::JobPlan| {
            let nodes = plan.placement.values().chain(plan.flows.iter().flat_map(|flow| &flow.path));
            let mut found: Vec<&str> =
                nodes.filter(|node| silent.contains(node)).map(NodeId::as_str).collect();
            found.sort_unstable();
            found.dedup();
            found.join(", ")
        };
        let back: Vec<(JobName, String)> = self
            .model()
            .committed()
            .filter(|(record, _)| self.settling.contains(&record.job.name))
            .map(|(record, plan)| (record.job.name.clone(), needs(plan)))
            .filter(|(_, nodes)| !nodes.is_empty())
            .collect();
        for (job, nodes) in back {
            self.settling.remove(&job);
            let reason = format!("{TAKEN_BACK} {nodes} within {} s", STEP_DEADLINE_MS / 1000);
            self.state.commit(Event::Returned { job, reason })?;
        }
        Ok(())
    }

    /// Publishes the next step once every awaited node has confirmed the one before.
    fn step(&mut self) -> Result<(), JournalError> {
        if !self.awaited().is_empty() {
            return Ok(());
        }
        let wanted = self.wanted();
        let documents = barrier::next(&self.model().published, &wanted);
        if documents.is_empty() {
            self.settling.clear();
            return Ok(());
        }
        self.publish(documents.into_values().collect())
    }

    fn publish(&mut self, mut documents: Vec<DesiredState>) -> Result<(), JournalError> {
        let (epoch, mut generation) = (self.model().epoch, self.model().generation);
        for document in &mut documents {
            generation += 1;
            (document.epoch, document.generation) = (epoch, generation);
            self.outbox.mark(document.node.clone());
        }
        self.step_ms = self.now_ms;
        self.state.commit(Event::Published { documents })
    }

    /// Stopped jobs of which no living node has anything are gone.
    fn finish_stopping(&mut self) -> Result<(), JournalError> {
        let stopping = self.model().jobs.values().filter(|record| record.phase == Phase::Stopping);
        let gone: Vec<JobName> = stopping
            .filter(|record| self.left_nothing(record))
            .map(|record| record.job.name.clone())
            .collect();
        for job in gone {
            self.state.commit(Event::Gone { job })?;
        }
        Ok(())
    }

    fn left_nothing(&self, record: &JobRecord) -> bool {
        let name = &record.job.name;
        let published = &self.model().published;
        let addresses: BTreeSet<_> = record.addresses.values().collect();
        published.iter().all(|(node, document)| {
            let mentioned = document.containers.iter().any(|spec| spec.job == *name)
                || document.flows.iter().any(|flow| flow.id.job == *name)
                || document.routes.iter().any(|route| addresses.contains(&route.address));
            let known = self.nodes.table.get(node);
            let dead = known.is_none_or(|known| !known.online || known.silent);
            let observed = known.and_then(|known| known.observed.as_ref());
            let runs = observed.is_some_and(|seen| seen.containers.iter().any(|state| state.job == *name));
            !mentioned && (dead || (!runs && self.nodes.confirmed(node, published)))
        })
    }

    /// Jobs of which something wanted is not published.
    fn touched(&self, wanted: &Documents) -> BTreeSet<JobName> {
        let published = &self.model().published;
        let mut jobs = BTreeSet::new();
        for (node, document) in wanted {
            let now = published.get(node);
            let had = |spec: &&edgeloom_common::desired::ContainerSpec| {
                now.is_some_and(|now| now.containers.contains(spec))
            };
            jobs.extend(document.containers.iter().filter(|spec| !had(spec)).map(|spec| spec.job.clone()));
            let flows = document.flows.iter().filter(|flow| barrier::find(now, &flow.id) != Some(flow));
            jobs.extend(flows.map(|flow| flow.id.job.clone()));
        }
        jobs
    }

    pub(crate) fn wanted(&self) -> Documents {
        let down = self.nodes.down(&self.model().topology);
        documents(self.model(), &self.ground(&down))
    }

    fn ground<'a>(&'a self, down: &'a DownLinks) -> Ground<'a> {
        Ground { cluster: &self.settings.cluster, pool: &self.settings.pool, down }
    }

    fn keep(&mut self, event: Event) -> Result<(), SubmitError> {
        self.state.commit(event).map_err(|error| unavailable(&error))
    }
}

/// How the reason of a job begins whose commit was taken back.
const TAKEN_BACK: &str = "not confirmed by";

fn unavailable(error: &JournalError) -> SubmitError {
    tracing::error!(%error, "a change is refused");
    SubmitError::Unavailable
}

/// A job that can never fit is refused at once, with the reason of each node.
fn refuse_never(outcome: &Outcome) -> Result<(), SubmitError> {
    match outcome.unplaced.iter().find(|unplaced| unplaced.never) {
        Some(unplaced) => Err(SubmitError::Unplaceable(problems(unplaced))),
        None => Ok(()),
    }
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
