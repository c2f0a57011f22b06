//! The most that can be had of a state of which changes are lost. Pure.
//!
//! It begins with the latest whole copy, the journal's or the store's, and takes every later record that is
//! left. Records carry whole things (a job, a plan, a node's document), so one holds without the one before
//! it; what a lost one would have changed stays as it was. The epoch rises, so that nodes take the outcome
//! whatever they hold; what nodes hold beyond it they report, and the epoch rises over that too.

use crate::error::StartError;
use crate::journal::{Found, Loss};
use crate::model::{Event, Model, Phase};
use crate::rebuild::{event, replay};
use edgeloom_common::ids::JobName;
use std::collections::BTreeSet;
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
    /// Named by what is left, but their acceptance is lost.
    unknown: BTreeSet<JobName>,
    /// Planned anew, because another job has an address of theirs.
    waiting: Vec<JobName>,
    epoch: u64,
}

impl Outcome {
    /// Nothing had to be repaired.
    pub(crate) fn whole(model: &Model) -> Self {
        Self {
            lost: None,
            jobs: model.jobs.keys().cloned().collect(),
            unknown: BTreeSet::new(),
            waiting: Vec::new(),
            epoch: model.epoch,
        }
    }
}

/// `stored` is the store's copy, if it has one; `loss` what the start told.
pub(crate) fn salvage(
    found: &Found,
    stored: Option<(u64, Model)>,
    loss: Loss,
    now_s: u64,
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
    let waiting = part_addresses(&mut model);
    model.raise_epoch(now_s);
    model.overrules = true;
    let jobs = model.jobs.keys().cloned().collect();
    let outcome = Outcome { lost: Some(loss), jobs, unknown, waiting, epoch: model.epoch };
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
            write!(f, "\njobs that are lost, stopped where they run; run them again: {jobs}")?;
        }
        if !self.waiting.is_empty() {
            write!(f, "\njobs that are planned anew: {}", list(&mut self.waiting.iter()))?;
        }
        write!(f, "\nepoch {}", self.epoch)
    }
}
