//! The cluster's state and the only way it changes: [`Model::apply`] of one [`Event`], pure.
//!
//! Every event is journaled before it is applied, so replaying the journal gives the same model. What nodes
//! report is no part of it, but for the topology: after a restart the main routes have to stand before any
//! node has spoken.

pub(crate) use crate::change::{Commit, Event, Image, platform};
use crate::cordon::Cordons;
use crate::prefetch::Ready;
use crate::profiler;
pub(crate) use crate::record::{JobRecord, Phase, Stray};
use crate::regain::Regain;
use crate::usage::Book;
use crate::vault::Vault;
use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_sched::plan::JobPlan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// All that has to outlive the controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) epoch: u64,
    /// The last generation given to any document.
    pub(crate) generation: u64,
    pub(crate) jobs: BTreeMap<JobName, JobRecord>,
    /// The document last published to each node.
    pub(crate) published: BTreeMap<NodeId, DesiredState>,
    pub(crate) topology: Topology,
    /// The operator has put this state in place: nodes follow it, also those that hold newer documents.
    #[serde(default)]
    pub(crate) overrules: bool,
    /// What nodes hold beyond this state comes back from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) regain: Option<Regain>,
    /// What was measured of programs.
    #[serde(default)]
    pub(crate) profiles: profiler::Book,
    /// Nodes that changes no longer wait for, with what they may still run though it is wanted elsewhere or
    /// not at all: nobody else gets these addresses until the node has confirmed a document without them.
    #[serde(default)]
    pub(crate) cut_off: BTreeMap<NodeId, BTreeSet<Stray>>,
    /// Nodes that were given up, with the last document that they were sent: one that comes back after all
    /// holds nothing newer than that.
    #[serde(default)]
    pub(crate) forgotten: BTreeMap<NodeId, Version>,
    /// Secrets and logins, sealed.
    #[serde(default, skip_serializing_if = "Vault::is_unused")]
    pub(crate) vault: Vault,
    /// Nodes that take nothing new.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cordons: Cordons,
    /// Images that nodes hold ready.
    #[serde(default, skip_serializing_if = "Ready::is_empty")]
    pub(crate) prefetch: Ready,
    /// What containers used.
    #[serde(default, skip_serializing_if = "Book::is_unused")]
    pub(crate) usage: Book,
}

/// No epoch that was ever given is above: a node that says so would leave no room for later ones.
pub(crate) const EPOCH_MAX: u64 = u64::MAX / 2;

/// Each node's neighbours, with its own address on the link.
pub(crate) type Topology = BTreeMap<NodeId, BTreeMap<NodeId, Ipv4Addr>>;

impl Model {
    /// What nodes hold beyond this state comes back from them, but for jobs that ended. Those that are overtaken
    /// count as ended unless nodes have something of them.
    pub(crate) fn begin_regain(&mut self, ended: BTreeSet<JobName>, overtaken: BTreeSet<JobName>) {
        self.overrules = false;
        self.usage.interrupt();
        self.regain = Some(Regain::of(self, ended, overtaken));
    }

    /// What a new cluster begins with.
    pub(crate) fn first() -> Self {
        Self { epoch: 1, ..Self::default() }
    }

    /// An epoch above this one that was most likely never used. What was lost may have used the next one, and
    /// a node takes an equal version for a repeat, so it is the time in seconds, where the clock is not behind.
    pub(crate) fn epoch_after(epoch: u64, now_s: u64) -> u64 {
        now_s.max(epoch.saturating_add(1))
    }

    /// Puts a new epoch on every published document: nodes take it whatever they hold of an earlier one.
    pub(crate) fn raise_epoch(&mut self, now_s: u64) {
        let published = self.published.values().map(|document| document.epoch);
        let highest = published.chain([self.epoch]).max().unwrap_or(0);
        self.epoch = Self::epoch_after(highest, now_s);
        for document in self.published.values_mut() {
            self.generation += 1;
            (document.epoch, document.generation) = (self.epoch, self.generation);
        }
    }

    /// The state after `event`. An event about a job that is not there changes nothing.
    pub(crate) fn apply(&mut self, event: Event) {
        match event {
            Event::Snapshot(model) => *self = *model,
            Event::EpochRaised { epoch } => self.epoch = self.epoch.max(epoch),
            Event::Accepted(record) => {
                if let Some(regain) = &mut self.regain {
                    regain.ended.remove(&record.job.name);
                }
                self.jobs.insert(record.job.name.clone(), *record);
            }
            Event::Committed { commits } => commits.into_iter().for_each(|commit| self.commit(commit)),
            Event::Confirmed { jobs } => {
                jobs.iter().for_each(|job| self.change(job, JobRecord::confirm));
            }
            Event::Returned { job, reason } => self.change(&job, |record| {
                record.phase = Phase::Waiting;
                record.replace_plan(None);
                record.previous = None;
                record.moved.clear();
                record.placed.clear();
                record.reason = reason;
            }),
            Event::Restored { job } => self.change(&job, |record| {
                if let Some(previous) = record.previous.take() {
                    record.replace_plan(Some(previous));
                    record.settle_moved();
                }
            }),
            Event::Delayed { job, reason } => self.change(&job, |record| record.reason = reason),
            Event::Ended { job, tasks } => self.change(&job, |record| record.end(tasks)),
            Event::Stopping { job } => self.change(&job, |record| record.phase = Phase::Stopping),
            Event::Gone { job } => self.end(job),
            Event::Stranded { strays } => {
                for (node, stray) in strays {
                    self.cut_off.entry(node).or_default().insert(stray);
                }
            }
            Event::Rejoined { node } => {
                self.cut_off.remove(&node);
            }
            Event::Forgotten { node } => {
                self.cut_off.remove(&node);
                self.topology.remove(&node);
                self.cordons.remove(&node);
                self.prefetch.forget(&node);
                if let Some(document) = self.published.remove(&node) {
                    self.forgotten.insert(node, document.version());
                }
            }
            Event::Published { documents } => self.publish(documents),
            Event::Regained { epoch, records, documents, topology, ended, ready } => {
                ended.into_iter().for_each(|job| self.end(job));
                for (node, neighbours) in topology {
                    self.topology.entry(node).or_insert(neighbours);
                }
                self.epoch = self.epoch.max(epoch);
                ready.into_iter().for_each(|entry| self.prefetch.keep(entry));
                self.jobs.extend(records.into_iter().map(|record| (record.job.name.clone(), record)));
                self.publish(documents);
                if let Some(regain) = &mut self.regain {
                    regain.gather();
                }
            }
            Event::Topology { node, neighbours } => {
                self.topology.insert(node, neighbours);
            }
            Event::Profiled { kept } => self.profiles.keep(*kept),
            Event::SecretKept { name, kept } => self.vault.keep_secret(name, kept),
            Event::SecretRemoved { name } => self.vault.remove_secret(&name),
            Event::LoginKept { registry, login } => self.vault.keep_login(registry, login),
            Event::LoginRemoved { registry } => self.vault.remove_login(&registry),
            Event::SecretsForgotten => self.vault.clear(),
            Event::Cordoned { node, cordon } => {
                self.cordons.insert(node, cordon);
            }
            Event::Uncordoned { node } => {
                self.cordons.remove(&node);
            }
            Event::PrefetchKept { entry } => self.prefetch.keep(*entry),
            Event::PrefetchReleased { image } => self.prefetch.release(&image),
            Event::Accounted(change) => self.usage.apply(*change),
        }
    }

    fn end(&mut self, job: JobName) {
        self.jobs.remove(&job);
        self.usage.forget(&job);
        if let Some(regain) = &mut self.regain {
            regain.end(job);
        }
        self.regain.take_if(|regain| regain.is_over());
    }

    fn publish(&mut self, documents: Vec<DesiredState>) {
        for document in documents {
            self.generation = self.generation.max(document.generation);
            self.forgotten.remove(&document.node);
            self.published.insert(document.node.clone(), document);
        }
    }

    fn commit(&mut self, commit: Commit) {
        let name = commit.plan.job.clone();
        let lost = commit.lost.clone();
        let next = self.jobs.values().map(|record| record.commit_number).max().unwrap_or(0) + 1;
        self.change(&name, |record| {
            if record.phase == Phase::Waiting {
                (record.commit_number, record.confirmed) = (next, false);
            }
            record.phase = Phase::Committed;
            record.reason.clear();
            record.profile.clone_from(&commit.plan.profile);
            record.addresses = commit.addresses;
            record.bytes_predicted = commit.bytes_predicted;
            if commit.at_ms > 0 {
                record.note_placed(&commit.plan, commit.at_ms);
            }
            let before = record.replace_plan(Some(commit.plan));
            record.note_moved(before.as_ref(), &lost);
            if record.job.kind.ends() {
                // Taken back, it would end what has begun: what a node was given stays with it until it is lost.
                (record.confirmed, record.previous) = (true, None);
            } else if record.confirmed && record.previous.is_none() {
                record.previous = before;
            }
        });
        self.cut_off(&name, lost);
    }

    /// Changes of this job wait for these nodes no longer.
    fn cut_off(&mut self, job: &JobName, lost: BTreeSet<NodeId>) {
        let Some(record) = self.jobs.get(job) else { return };
        for node in lost {
            let strays = self.cut_off.entry(node.clone()).or_default();
            let left = record.left.iter().filter(|(_, from)| *from == node);
            strays.extend(left.filter_map(|(task, _)| record.stray(task)));
        }
    }

    fn change(&mut self, job: &JobName, change: impl FnOnce(&mut JobRecord)) {
        if let Some(record) = self.jobs.get_mut(job) {
            change(record);
        }
    }

    /// Addresses that no other task may get.
    pub(crate) fn leased(&self) -> BTreeSet<Ipv4Addr> {
        let of_jobs = self.jobs.values().flat_map(|record| record.addresses.values().copied());
        of_jobs.chain(self.cut_off.values().flatten().map(|stray| stray.address)).collect()
    }

    /// No change is on its way: whatever is committed has arrived at every node.
    pub(crate) fn settled(&self) -> bool {
        self.committed().all(|(record, _)| record.settled())
    }

    /// Committed jobs with their plans.
    pub(crate) fn committed(&self) -> impl Iterator<Item = (&JobRecord, &JobPlan)> {
        self.jobs
            .values()
            .filter(|record| record.phase == Phase::Committed)
            .filter_map(|record| record.plan.as_ref().map(|plan| (record, plan)))
    }

    /// The version of the document last published to a node.
    pub(crate) fn version(&self, node: &NodeId) -> Version {
        self.published.get(node).map(DesiredState::version).unwrap_or_default()
    }
}

/// Every node that a plan needs: those of its tasks and those that its flows pass.
pub(crate) fn nodes_of(plan: &JobPlan) -> BTreeSet<&NodeId> {
    plan.placement.values().chain(plan.flows.iter().flat_map(|flow| &flow.path)).collect()
}
