//! The most that can be had of a state of which changes are lost. Pure.
//!
//! It begins with the latest whole copy, the journal's or the store's, and takes every later record that is
//! left. Records carry whole things (a job, a plan, a node's document), so one holds without the one before
//! it; what a lost one would have changed stays as it was. What nodes hold beyond it comes back from them when
//! the controller starts, and then the epoch rises over all that anybody holds.

use crate::copies::keepers;
use crate::error::StartError;
use crate::journal::{Found, Loss};
use crate::model::{Event, JobRecord, Model, Phase};
use crate::rebuild::{event, replay};
use edgeloom_common::ids::JobName;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is left, and what is not.
#[derive(Debug)]
pub(crate) struct Salvage {
    pub(crate) model: Model,
    pub(crate) outcome: Outcome,
}

/// What a repair came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    lost: Option<Loss>,
    jobs: Vec<JobName>,
    /// Named by what is left, but their acceptance is lost: only nodes have them.
    unknown: BTreeSet<JobName>,
    /// Planned anew, because another job has an address of theirs.
    waiting: Vec<JobName>,
    /// Secrets and logins, which need their key file.
    sealed: usize,
    epoch: u64,
    /// What nodes hold beyond it comes back.
    from_nodes: bool,
}

impl Outcome {
    /// Nothing had to be repaired.
    pub(crate) fn whole(model: &Model) -> Self {
        Self {
            lost: None,
            jobs: model.jobs.keys().cloned().collect(),
            unknown: BTreeSet::new(),
            waiting: Vec::new(),
            sealed: model.vault.count(),
            epoch: model.epoch,
            from_nodes: false,
        }
    }

    /// Nothing is lost here, or everything; the rest comes when the controller starts.
    pub(crate) fn from_nodes(model: &Model) -> Self {
        Self { from_nodes: true, ..Self::whole(model) }
    }
}

/// `stored` is the store's copy, if it has one; `loss` what the start told.
pub(crate) fn salvage(
    found: &Found,
    stored: Option<(u64, Model)>,
    loss: Loss,
) -> Result<Salvage, StartError> {
    let base = found.base(Event::is_snapshot);
    let (after, model) = match stored {
        Some((sequence, model)) if base <= sequence => (sequence, model),
        _ => (base.saturating_sub(1), Model::first()),
    };
    let mut model = replay(model, found.after(after))?;
    let mut unknown: BTreeSet<JobName> = BTreeSet::new();
    for record in found.after(after) {
        unknown.extend(event(record)?.named());
    }
    let documents = model.published.values();
    unknown.extend(documents.flat_map(|it| &it.containers).map(|spec| spec.job.clone()));
    unknown.retain(|job| !model.jobs.contains_key(job));
    let gone: BTreeSet<JobName> = removed(found, after)?;
    unknown.retain(|job| !gone.contains(job));
    // First what was planned: a job that loses its plan here may have ended since.
    let overtaken = overtaken(found, after, &model)?;
    model.begin_regain(gone, overtaken);
    let waiting = part_addresses(&mut model);
    let jobs = model.jobs.keys().cloned().collect();
    let sealed = model.vault.count();
    let outcome =
        Outcome { lost: Some(loss), jobs, unknown, waiting, sealed, epoch: model.epoch, from_nodes: true };
    Ok(Salvage { model, outcome })
}

/// Jobs that ended by what is left: nobody misses them.
fn removed(found: &Found, after: u64) -> Result<BTreeSet<JobName>, StartError> {
    let mut gone = BTreeSet::new();
    for record in found.after(after) {
        match event(record)? {
            Event::Gone { job } => drop(gone.insert(job)),
            Event::Accepted(record) => drop(gone.remove(&record.job.name)),
            _ => {}
        }
    }
    Ok(gone)
}

/// Jobs of which a node that keeps them was sent a document after changes that are lost since their last plan.
fn overtaken(found: &Found, after: u64, model: &Model) -> Result<BTreeSet<JobName>, StartError> {
    let (mut expected, mut gaps) = (after + 1, 0_u64);
    let (mut planned, mut sent) = (BTreeMap::new(), BTreeMap::new());
    for record in found.after(after) {
        gaps += u64::from(record.sequence != expected);
        expected = record.sequence + 1;
        match event(record)? {
            Event::Committed { commits } => {
                planned.extend(commits.into_iter().map(|commit| (commit.plan.job, gaps)));
            }
            Event::Published { documents } => {
                sent.extend(documents.into_iter().map(|document| (document.node, gaps)));
            }
            _ => {}
        }
    }
    let is_overtaken = |(job, record): (&JobName, &JobRecord)| {
        let since = planned.get(job).copied().unwrap_or(0);
        let mut keepers = keepers(&record.job, record.plan.as_ref()?).into_iter();
        keepers.any(|node| sent.get(&node).is_some_and(|gaps| *gaps > since)).then(|| job.clone())
    };
    Ok(model.jobs.iter().filter_map(is_overtaken).collect())
}

/// A lost change may have freed an address that a later one gave away: the later commit keeps it.
fn part_addresses(model: &mut Model) -> Vec<JobName> {
    let mut committed: Vec<(u64, JobName)> = model
        .jobs
        .values()
        .filter(|record| record.phase != Phase::Waiting)
        .map(|record| (record.commit_number, record.job.name.clone()))
        .collect();
    committed.sort();
    let (mut taken, mut waiting) = (BTreeSet::new(), Vec::new());
    for (_, job) in committed.into_iter().rev() {
        let Some(record) = model.jobs.get(&job) else { continue };
        let addresses: BTreeSet<_> = record.addresses.values().copied().collect();
        if taken.is_disjoint(&addresses) {
            taken.extend(addresses);
            continue;
        }
        // One that stops was gone already, and must not come back.
        if record.phase == Phase::Committed {
            let reason = "planned anew: changes of the state were lost and another job has its address";
            model.apply(Event::Returned { job: job.clone(), reason: reason.to_owned() });
            waiting.push(job.clone());
        }
        if let Some(record) = model.jobs.get_mut(&job) {
            record.addresses.clear();
        }
    }
    waiting
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lost {
            None => f.write_str("every acknowledged change is there; nothing is lost")?,
            Some(loss) => write!(f, "{loss}")?,
        }
        let list = |jobs: &mut dyn Iterator<Item = &JobName>| {
            jobs.map(JobName::as_str).collect::<Vec<_>>().join(", ")
        };
        write!(f, "\njobs that are there: {} ({})", self.jobs.len(), list(&mut self.jobs.iter()))?;
        if !self.unknown.is_empty() {
            let jobs = list(&mut self.unknown.iter());
            write!(f, "\njobs that are lost here, and come back from the nodes that run them: {jobs}")?;
        }
        if !self.waiting.is_empty() {
            write!(
                f,
                "\njobs that are planned anew, unless nodes show that they ended: {}",
                list(&mut self.waiting.iter())
            )?;
        }
        if self.from_nodes {
            f.write_str("\nnodes are asked what they hold beyond this when the controller starts; jobs that they run come back")?;
        }
        if self.sealed > 0 {
            let file = "the key file of the controller that kept them (secrets.key)";
            write!(f, "\nsecrets and logins: {}; they open with {file} alone", self.sealed)?;
        }
        write!(f, "\nepoch {}", self.epoch)
    }
}
