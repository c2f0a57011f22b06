//! Jobs as nodes keep them for a controller that loses its state: definition, images, addresses and plan,
//! sealed so that nobody but the controller reads or makes one.
//!
//! In: committed jobs. Out: texts for the documents of the first nodes that run them, and jobs out of such
//! texts. Equal jobs give equal texts, since documents that differ are published again.

use crate::documents::{Documents, programs};
use crate::model::{Image, JobRecord, Model, Phase};
use crate::pulls;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sealing::{Key, Sealed};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Nodes that keep a copy of one job: two may be lost with the controller.
const KEEPERS_MAX: usize = 3;
/// What the copies of one document may have, in bytes: about twenty jobs of a few tasks. Later jobs have
/// no copy there.
const DOCUMENT_COPIES_MAX: usize = 96 * 1024;

/// Keys that copies are sealed with, the newest first.
#[derive(Debug, Clone)]
pub struct CopyKeys(Vec<Key>);

/// One job, without what only matters to a controller that has its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct JobCopy {
    job: Job,
    since_ms: u64,
    profile: String,
    /// By the name that the job gives: tasks often share one.
    images: BTreeMap<String, Image>,
    addresses: BTreeMap<TaskName, Ipv4Addr>,
    plan: JobPlan,
    commit_number: u64,
}

impl CopyKeys {
    /// The first one seals, all of them open.
    #[must_use]
    pub fn new(keys: &[[u8; 32]]) -> Self {
        Self(keys.iter().map(Key::derive).collect())
    }

    /// A job as its keepers get it; none without a key.
    pub(crate) fn seal(&self, record: &JobRecord, plan: &JobPlan) -> Option<String> {
        let text =
            serde_json::to_vec(&JobCopy::of(record, plan)).expect("a copy is plain data with text keys");
        Some(self.0.first()?.seal_alike(record.job.name.as_str(), &text).into())
    }

    /// The job of a copy; none if it is not one of ours.
    pub(crate) fn open(&self, job: &JobName, sealed: &str) -> Option<JobRecord> {
        let sealed = Sealed::from(sealed.to_owned());
        let text = self.0.iter().find_map(|key| key.unseal(job.as_str(), &sealed).ok())?;
        let copy: JobCopy = serde_json::from_slice(&text).ok()?;
        (copy.job.name == *job).then(|| copy.into_record())
    }
}

impl JobCopy {
    fn of(record: &JobRecord, plan: &JobPlan) -> Self {
        let images = programs(&record.job)
            .into_iter()
            .filter_map(|(task, program)| Some((program.image.clone(), record.images.get(&task)?.clone())));
        Self {
            job: record.job.clone(),
            since_ms: record.since_ms,
            profile: record.profile.clone(),
            images: images.collect(),
            addresses: record.addresses.clone(),
            // Reasons are long, and limits stand in the documents: those of other nodes need not change with them.
            plan: JobPlan { reasons: Vec::new(), shares: BTreeMap::new(), ..plan.clone() },
            commit_number: record.commit_number,
        }
    }

    /// What nodes hold has arrived there.
    fn into_record(self) -> JobRecord {
        let Self { job, since_ms, profile, images, addresses, plan, commit_number } = self;
        let programs = programs(&job).into_iter();
        let images = programs.filter_map(|(task, program)| Some((task, images.get(&program.image)?.clone())));
        JobRecord {
            images: images.collect(),
            job,
            phase: Phase::Committed,
            since_ms,
            profile,
            addresses,
            plan: Some(plan),
            commit_number,
            confirmed: true,
            previous: None,
            left: BTreeSet::new(),
            moved: BTreeMap::new(),
            placed: BTreeMap::new(),
            bytes_predicted: BTreeMap::new(),
            reason: String::new(),
            ended: BTreeMap::new(),
        }
    }
}

/// Nodes that keep the copy of a job: the first of those that run it.
pub(crate) fn keepers(job: &Job, plan: &JobPlan) -> BTreeSet<NodeId> {
    let nodes = programs(job).into_iter().filter_map(|(task, _)| plan.placement.get(&task).cloned());
    let nodes: BTreeSet<NodeId> = nodes.collect();
    nodes.into_iter().take(KEEPERS_MAX).collect()
}

/// Puts a copy of each job into the documents of its keepers, as far as there is room.
pub(crate) fn add_copies(documents: &mut Documents, model: &Model, keys: &CopyKeys) {
    let mut used: BTreeMap<NodeId, usize> = BTreeMap::new();
    // Of a batch there would be another copy with every container that begins or ends.
    for (record, plan) in pulls::in_order(model).into_iter().filter(|(record, _)| !record.job.kind.ends()) {
        let Some(copy) = keys.seal(record, plan) else { return };
        for node in keepers(&record.job, plan) {
            let Some(document) = documents.get_mut(&node) else { continue };
            let used = used.entry(node).or_default();
            if *used + copy.len() <= DOCUMENT_COPIES_MAX {
                *used += copy.len();
                document.copies.insert(record.job.name.clone(), copy.clone());
            }
        }
    }
}
