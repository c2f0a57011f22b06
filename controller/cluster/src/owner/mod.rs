//! The one owner of the cluster's state: takes commands one by one and, after each, brings published
//! documents a step nearer to the wanted ones.
//!
//! Two rooms: `decide` turns waiting jobs into commits, `advance` carries commits out to the nodes. What is
//! acknowledged lies in the journal; what nodes say is only looked at.

mod advance;
mod decide;

use crate::documents::{Documents, Ground, documents};
use crate::error::{StopError, SubmitError};
use crate::journal::JournalError;
use crate::model::{Event, Image, JobRecord, Model};
use crate::nodes::{NodeMessage, Nodes};
use crate::outbox::Outbox;
use crate::planner::{new_record, reason};
use crate::state::State;
use crate::topology::DownLinks;
use crate::views;
use decide::refuse_never;
use edgeloom_common::desired::{DesiredState, Pool};
use edgeloom_common::ids::{ClusterId, JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::view::{JobState, JobView};
use edgeloom_sched::Profile;
use std::collections::BTreeMap;

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
            step_ms: now_ms,
            decided_on: String::new(),
            now_ms,
        };
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
        self.carry(outcome, std::slice::from_ref(&name)).map_err(|error| unavailable(&error))?;
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

    pub(crate) fn stop(&mut self, name: &JobName) -> Result<JobView, StopError> {
        let mut view = self.job(name).ok_or_else(|| StopError::Unknown(name.clone()))?;
        self.keep(Event::Stopping { job: name.clone() }).map_err(|_| StopError::Unavailable(name.clone()))?;
        view.state = JobState::Stopping;
        self.advance();
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

fn unavailable(error: &JournalError) -> SubmitError {
    tracing::error!(%error, "a change is refused");
    SubmitError::Unavailable
}
