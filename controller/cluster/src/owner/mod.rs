//! The one owner of the cluster's state: takes commands one by one and, after each, brings published
//! documents a step nearer to the wanted ones.
//!
//! Fourteen rooms: `decide` turns waiting jobs into commits, `advance` carries commits out to the nodes, `moves`
//! takes changes back that cannot be made, `replan` changes jobs that run, `cores` their limits, `drain` moves
//! them off nodes, `follow` lets nodes follow the load, `lost` places tasks of lost nodes anew, `batches` takes in
//! what has run to its end, `watch` tells what came and went, `regain` takes back from nodes what was lost here,
//! `confidential` keeps secrets and logins, `prefetch` images that nodes hold ready, `usage` what containers
//! used, `volumes` what nodes keep for tasks.
//! What is acknowledged lies in the journal; what nodes say is only looked at.

mod advance;
mod batches;
mod confidential;
mod cores;
mod cuts;
mod decide;
mod difference;
mod drain;
mod explain;
mod follow;
mod lost;
mod measure;
mod moves;
mod observe;
mod prefetch;
mod regain;
mod replan;
mod reunite;
mod seen;
mod usage;
mod volumes;
mod watch;

use crate::cluster::{Batching, Beat};
use crate::copies::CopyKeys;
use crate::documents::Ground;
use crate::error::{StopError, SubmitError};
use crate::events::{Events, Kind};
use crate::figures::{DECISION_BOUNDS, Histogram};
use crate::follow::{Follow, FollowLoad};
use crate::journal::JournalError;
use crate::model::{Event, Image, JobRecord, Model, Phase};
use crate::nodes::{NodeRecord, Nodes};
use crate::outbox::Outbox;
use crate::planner::{new_record, reason};
use crate::state::State;
use crate::topology::DownLinks;
use crate::views;
use decide::has_heartbeat;
use drain::Drains;
use edgeloom_common::desired::Pool;
use edgeloom_common::ids::{ClusterId, JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::price::Prices;
use edgeloom_common::view::{JobState, JobView, NodeView};
use edgeloom_sched::Profile;
use edgeloom_sched::scoring::Scoring;
use edgeloom_sealing::Key;
pub(crate) use explain::Planned;
use lost::Losses;
use moves::Progress;
use replan::ClosedLoop;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use usage::Accounts;
use watch::Presence;

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
    pub(crate) scoring: Scoring,
    pub(crate) batching: Batching,
    /// Whether nodes follow the load.
    pub(crate) follow: Option<FollowLoad>,
    /// For the copies of jobs that nodes keep.
    pub(crate) keys: CopyKeys,
    /// Seals secrets and logins.
    pub(crate) key: Key,
    /// What use costs; none: nothing is charged.
    pub(crate) prices: Option<Prices>,
}

/// State, nodes and the change under way.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) settings: Ownership,
    pub(crate) state: State,
    pub(crate) nodes: Nodes,
    pub(crate) outbox: Outbox,
    /// When the step that nodes have to confirm was published.
    step_ms: u64,
    /// What the last decision on waiting jobs was made with.
    decided_on: String,
    /// When jobs of a profile with a heartbeat were last decided on.
    beat_ms: u64,
    pub(crate) now_ms: u64,
    pub(crate) events: Events,
    /// What jobs achieve, and what is learnt of them by it.
    closed_loop: ClosedLoop,
    /// Nodes and links as last told of.
    presence: Presence,
    /// Of tasks that move.
    progress: Option<Progress>,
    losses: Losses,
    drains: Drains,
    follow: Follow,
    /// What containers used.
    accounts: Accounts,
    /// Seconds that decisions took; counted where they are only looked at.
    pub(crate) decisions: RefCell<Histogram>,
    /// Nodes with documents from before the start that have not told of their links since.
    untold: BTreeSet<NodeId>,
}

impl Owner {
    pub(crate) fn new(settings: Ownership, state: State, outbox: Outbox, now_ms: u64) -> Self {
        let mut owner = Self {
            settings,
            state,
            nodes: Nodes::default(),
            outbox,
            step_ms: now_ms,
            decided_on: String::new(),
            beat_ms: 0,
            now_ms,
            events: Events::default(),
            closed_loop: ClosedLoop::default(),
            presence: Presence::default(),
            progress: None,
            losses: Losses::default(),
            drains: Drains::default(),
            follow: Follow::default(),
            accounts: Accounts::default(),
            decisions: RefCell::new(Histogram::new(&DECISION_BOUNDS)),
            untold: BTreeSet::new(),
        };
        owner.untold = owner.state.model.published.keys().cloned().collect();
        owner.state.model.published.keys().cloned().for_each(|node| owner.outbox.mark(node));
        for node in owner.state.model.cut_off.keys() {
            owner.nodes.table.entry(node.clone()).or_default().silent = true;
        }
        owner
    }

    pub(crate) fn model(&self) -> &Model {
        &self.state.model
    }

    /// Accepts a job and decides on it.
    pub(crate) fn submit(&mut self, order: Order) -> Result<JobView, SubmitError> {
        let name = order.job.name.clone();
        let record = self.record(order)?;
        let (opened, outcome) = self.decide_with_all(&[&record]);
        if let Ok(outcome) = &outcome {
            self.refuse_never(outcome, &record)?;
        }
        self.open(&opened).map_err(|error| unavailable(&error))?;
        let accepted = format!("accepted with profile {}", record.profile);
        let gathered = has_heartbeat(&record.profile);
        self.keep(Event::Accepted(Box::new(record)))?;
        self.events.note(self.now_ms, Some(&name), Kind::Accepted, accepted);
        if !gathered {
            self.carry(outcome, std::slice::from_ref(&name)).map_err(|error| unavailable(&error))?;
        }
        self.advance();
        self.job(&name).ok_or(SubmitError::Unavailable)
    }

    /// What [`submit`](Self::submit) would do, without doing it.
    pub(crate) fn plan(&self, order: Order) -> Result<Planned, SubmitError> {
        let mut record = self.record(order)?;
        let outcome = match self.decide_with_all(&[&record]).1 {
            Ok(outcome) => outcome,
            Err(error) => {
                record.reason = error.to_string();
                let view = views::job(self.model(), &self.nodes, &record);
                return Ok(Planned { view, question: None });
            }
        };
        self.refuse_never(&outcome, &record)?;
        if let Some(unplaced) = outcome.unplaced.first() {
            record.reason = reason(unplaced);
        }
        let mut model = self.model().clone();
        let name = record.job.name.clone();
        model.apply(Event::Accepted(Box::new(record)));
        model.apply(Event::Committed { commits: outcome.commits });
        let record = model.jobs.get(&name).ok_or(SubmitError::Unavailable)?;
        let mut view = views::job(&model, &self.nodes, record);
        if record.plan.is_none() {
            return Ok(Planned { view, question: None });
        }
        view.state = JobState::Planned;
        if record.job.kind.ends() {
            return Ok(Planned { view, question: None });
        }
        Ok(Planned { view, question: Some(self.question_in(&model, record)) })
    }

    fn record(&self, order: Order) -> Result<JobRecord, SubmitError> {
        if self.gathering() {
            return Err(SubmitError::Gathering);
        }
        if self.model().jobs.contains_key(&order.job.name) {
            return Err(SubmitError::Exists(order.job.name));
        }
        if let Some(source) = &order.job.source
            && !self.nodes.table.contains_key(&source.node)
            && !self.model().published.contains_key(&source.node)
        {
            return Err(SubmitError::SourceUnknown(source.node.clone()));
        }
        let unknown = self.unknown_secrets(&order.job);
        if !unknown.is_empty() {
            return Err(SubmitError::SecretUnknown(unknown));
        }
        Ok(new_record(order.job, order.images, self.settings.profile.name(), self.now_ms))
    }

    pub(crate) fn stop(&mut self, name: &JobName) -> Result<JobView, StopError> {
        let mut view = self.job(name).ok_or_else(|| StopError::Unknown(name.clone()))?;
        self.keep(Event::Stopping { job: name.clone() }).map_err(|_| StopError::Unavailable(name.clone()))?;
        self.events.note(self.now_ms, Some(name), Kind::Stopping, "stops".to_owned());
        view.state = JobState::Stopping;
        self.advance();
        Ok(view)
    }

    pub(crate) fn job(&self, name: &JobName) -> Option<JobView> {
        Some(self.view(self.model().jobs.get(name)?))
    }

    /// A job with what is measured of it.
    pub(crate) fn view(&self, record: &JobRecord) -> JobView {
        let mut view = views::job(self.model(), &self.nodes, record);
        if view.state == JobState::Running {
            view.measured = self.closed_loop.measured(record, self.now_ms);
        }
        view.replans = self.closed_loop.replans(&record.job.name);
        if let Some(pause_ms) = self.losses.retries.pause_ms(&record.job.name, self.now_ms)
            && record.phase == Phase::Waiting
        {
            view.reason.push_str(&format!("; tried again in {} s", pause_ms.div_ceil(1000)));
        }
        if let Some(reason) = self.losses.blocked.get(&record.job.name) {
            view.state = JobState::Waiting;
            view.reason.clone_from(reason);
        }
        view
    }

    /// A node, and whether it is lost.
    pub(crate) fn node(&self, name: &NodeId, known: &NodeRecord) -> NodeView {
        let lost = self.is_lost(name);
        let cordon = self.cordon_view(name);
        NodeView { lost: lost && !known.online, cordon, ..views::node(self.model(), name, known) }
    }

    /// Everything that can be done now.
    pub(crate) fn advance(&mut self) {
        if let Err(error) = self.try_advance() {
            tracing::error!(%error, "nothing is decided or published");
        }
        let held_back = self.held_back();
        self.outbox.flush(&self.state.model, &self.settings.key, &held_back);
    }

    /// One time around more, and what there is now.
    pub(crate) fn beat(&self, beat: &mut Beat) {
        beat.count += 1;
        beat.jobs = self.model().jobs.len();
        beat.nodes = self.nodes.table.len();
        beat.nodes_online = self.nodes.table.values().filter(|known| known.online).count();
    }

    fn ground<'a>(&'a self, down: &'a DownLinks) -> Ground<'a> {
        Ground { cluster: &self.settings.cluster, pool: &self.settings.pool, down, keys: &self.settings.keys }
    }

    fn keep(&mut self, event: Event) -> Result<(), SubmitError> {
        self.state.commit(event).map_err(|error| unavailable(&error))
    }
}

fn unavailable(error: &JournalError) -> SubmitError {
    tracing::error!(%error, "a change is refused");
    SubmitError::Unavailable
}
