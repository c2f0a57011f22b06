//! What comes back from nodes to a controller that has lost changes of its state. Pure.
//!
//! In: the state, and the documents of nodes that hold newer ones than it ever sent. Out: their jobs and
//! documents, for one event. Of a job the newest copy counts. One is over if a node that should keep a copy
//! holds a document that is newer than the newest copy, and nothing of the job in it.

use crate::copies::{CopyKeys, keepers};
use crate::documents::{Documents, programs};
use crate::model::{JobRecord, Model, Phase, Topology};
use crate::prefetch::Entry;
use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_sched::plan::Share;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Jobs that are remembered to have ended.
const ENDED_MAX: usize = 4096;

/// The operator wants back what nodes run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Regain {
    /// Jobs of which it is known that they ended: they do not come back.
    pub(crate) ended: BTreeSet<JobName>,
    /// Where jobs were to run by what was left of the state: nodes that keep copies of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) planned: BTreeMap<JobName, BTreeSet<NodeId>>,
    /// Of these such a node's document in what was left is of after their plan, with lost changes in between.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) overtaken: BTreeSet<JobName>,
    /// Nodes have told, and the epoch is above all theirs; those that come later are asked one by one.
    pub(crate) gathered: bool,
}

impl Regain {
    /// What nodes hold beyond this state comes back, but for jobs that ended.
    pub(crate) fn of(model: &Model, ended: BTreeSet<JobName>, overtaken: BTreeSet<JobName>) -> Self {
        let kept_at = |(job, record): (&JobName, &JobRecord)| {
            Some((job.clone(), keepers(&record.job, record.plan.as_ref()?)))
        };
        let planned = model.jobs.iter().filter_map(kept_at).collect();
        Self { ended, planned, overtaken, gathered: false }
    }

    /// Nodes that were away all the time may have this job in their documents.
    pub(crate) fn end(&mut self, job: JobName) {
        self.ended.insert(job);
    }

    /// Nodes have told; what was planned before has served.
    pub(crate) fn gather(&mut self) {
        self.gathered = true;
        self.planned.clear();
        self.overtaken.clear();
    }

    /// So much has happened since that what comes now is no part of this state.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.len() > ENDED_MAX
    }
}

/// What nodes gave back.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Regained {
    pub(crate) records: Vec<JobRecord>,
    /// The newest document of every node, as the node holds it.
    pub(crate) documents: Documents,
    /// Of nodes that have not told of their links, as their neighbours' documents have it: routes to them stay.
    pub(crate) topology: Topology,
    /// Jobs that run without a copy that reads, with the nodes: these cannot come back.
    pub(crate) unknown: BTreeMap<JobName, BTreeSet<NodeId>>,
    /// Jobs of the state that ended since: nodes that had something of them have newer documents without it.
    pub(crate) ended: Vec<JobName>,
    /// Jobs that come back without their addresses, which others have: they are planned anew.
    pub(crate) anew: Vec<JobName>,
    /// Images that nodes were to hold ready, and of which nothing is known here.
    pub(crate) ready: Vec<Entry>,
}

/// What these documents of nodes add to the state.
pub(crate) fn regain(model: &Model, held: &Documents, keys: &CopyKeys) -> Regained {
    let mut documents = model.published.clone();
    let newer = |document: &&DesiredState| document.version() > model.version(&document.node);
    let fresh: Vec<&DesiredState> = held.values().filter(newer).collect();
    documents.extend(fresh.iter().map(|document| (document.node.clone(), (*document).clone())));
    let mode = model.regain.as_ref();
    let is_over = |job: &JobName| mode.is_some_and(|mode| mode.ended.contains(job));
    // What was sent may have copies of jobs whose acceptance is lost; later on it has those that are known.
    let copies = match mode {
        Some(Regain { gathered: false, .. }) => newest(&documents.values().collect::<Vec<_>>(), keys),
        _ => newest(&fresh, keys),
    };
    let mut regained = Regained::default();
    if let Some(mode @ Regain { gathered: false, .. }) = mode {
        regained.ended = ended(model, mode, &documents);
        // Later on one that is not known was released.
        regained.ready = model.prefetch.found_in(&documents);
    }
    for (record, version) in copies.into_values() {
        if !is_over(&record.job.name)
            && wanted(model, &record, version)
            && !stopped(&documents, &record, version)
        {
            regained.records.push(settled(record, &documents));
        }
    }
    regained.anew = part_addresses((model, &regained.ended), &mut regained.records);
    let known = |job: &JobName| {
        let comes = regained.records.iter().any(|record| record.job.name == *job);
        comes || model.jobs.contains_key(job) || is_over(job)
    };
    for document in fresh {
        for spec in document.containers.iter().filter(|spec| !known(&spec.job)) {
            let copied = document.copies.get(&spec.job).and_then(|copy| keys.open(&spec.job, copy));
            if copied.is_none() {
                regained.unknown.entry(spec.job.clone()).or_default().insert(document.node.clone());
            }
        }
    }
    let topology = unheard(model, &documents);
    Regained { documents, topology, ..regained }
}

/// Jobs that nodes were given by what was left of the state, while a newer document of such a node, and every other
/// that is there, has nothing of them. Most likely they were stopped; one that waited again for room has to be run
/// anew, which is better than to start what somebody stopped.
fn ended(model: &Model, regain: &Regain, documents: &Documents) -> Vec<JobName> {
    let newer =
        |node: &NodeId| documents.get(node).is_some_and(|document| document.version() > model.version(node));
    let given = |job: &JobName| {
        let had = model.published.values().filter(|document| names(document, job));
        let mut nodes =
            had.map(|document| &document.node).chain(regain.planned.get(job).into_iter().flatten());
        regain.overtaken.contains(job) || nodes.any(newer)
    };
    model
        .jobs
        .iter()
        .filter(|(job, record)| record.phase != Phase::Stopping && given(job))
        .filter(|(job, _)| !documents.values().any(|document| names(document, job)))
        .map(|(job, _)| job.clone())
        .collect()
}

/// The document has a container of the job, one that ended or one that is to run, or keeps a copy of it.
fn names(document: &DesiredState, job: &JobName) -> bool {
    document.copies.contains_key(job)
        || document.containers.iter().any(|spec| spec.job == *job)
        || document.kept.iter().any(|kept| kept.job == *job)
}

/// Where nodes of which nothing is known are on the links with their neighbours.
fn unheard(model: &Model, documents: &Documents) -> Topology {
    let mut topology = Topology::new();
    for (node, document) in documents {
        for (peer, address) in &document.neighbours {
            if !model.topology.contains_key(peer) {
                topology.entry(peer.clone()).or_default().insert(node.clone(), *address);
            }
        }
    }
    topology
}

type Copies = BTreeMap<JobName, (JobRecord, Version)>;

/// Of each job the copy in the newest document.
fn newest(documents: &[&DesiredState], keys: &CopyKeys) -> Copies {
    let mut found = Copies::new();
    for document in documents {
        for (job, sealed) in &document.copies {
            let newer = found.get(job).is_none_or(|(_, version)| *version < document.version());
            if newer && let Some(record) = keys.open(job, sealed) {
                found.insert(job.clone(), (record, document.version()));
            }
        }
    }
    found
}

/// The state knows nothing of the job, or only what was before this copy.
fn wanted(model: &Model, record: &JobRecord, version: Version) -> bool {
    let job = &record.job.name;
    let lists = |document: &&DesiredState| document.containers.iter().any(|spec| spec.job == *job);
    let known = model.published.values().filter(lists).map(DesiredState::version).max();
    match model.jobs.get(job) {
        None => true,
        Some(present) if present.phase == Phase::Stopping => false,
        Some(present) => known < Some(version) && present.since_ms <= record.since_ms,
    }
}

/// A node that should keep a copy of the job has a newer document without anything of it.
fn stopped(documents: &Documents, record: &JobRecord, version: Version) -> bool {
    let job = &record.job.name;
    let Some(plan) = &record.plan else { return true };
    let mut kept = keepers(&record.job, plan).into_iter().filter_map(|node| documents.get(&node));
    kept.any(|document| document.version() > version && !names(document, job))
}

/// The job with what only documents tell: the limits of its containers, and where such may be besides the
/// places of its plan.
fn settled(mut record: JobRecord, documents: &Documents) -> JobRecord {
    let Some(plan) = &mut record.plan else { return record };
    let requests = programs(&record.job).into_iter().map(|(task, program)| {
        (task, Share { cpu: program.resources.cpu, memory: program.resources.memory })
    });
    let requested: BTreeMap<TaskName, Share> = requests.collect();
    for (node, document) in documents {
        for spec in document.containers.iter().filter(|spec| spec.job == record.job.name) {
            let given = Share { cpu: spec.cpu, memory: spec.memory };
            if plan.placement.get(&spec.task) != Some(node) {
                record.left.insert((spec.task.clone(), node.clone()));
            } else if requested.get(&spec.task) != Some(&given) {
                plan.shares.insert(spec.task.clone(), given);
            }
        }
    }
    record
}

/// Addresses belong to whoever has them in the state, then to the latest commit; who comes too late waits.
fn part_addresses((model, ended): (&Model, &[JobName]), records: &mut [JobRecord]) -> Vec<JobName> {
    let coming: BTreeSet<JobName> = records.iter().map(|record| record.job.name.clone()).collect();
    let present = model.jobs.iter().filter(|(job, _)| !coming.contains(*job) && !ended.contains(job));
    let mut taken: BTreeSet<Ipv4Addr> =
        present.flat_map(|(_, record)| record.addresses.values().copied()).collect();
    let mut anew = Vec::new();
    records.sort_by_key(|record| std::cmp::Reverse(record.commit_number));
    for record in records {
        let addresses: BTreeSet<Ipv4Addr> = record.addresses.values().copied().collect();
        if taken.is_disjoint(&addresses) {
            taken.extend(addresses);
            continue;
        }
        record.phase = Phase::Waiting;
        record.replace_plan(None);
        record.addresses.clear();
        record.confirmed = false;
        "planned anew: it came back from nodes after another job got its address"
            .clone_into(&mut record.reason);
        anew.push(record.job.name.clone());
    }
    anew
}
