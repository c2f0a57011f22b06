//! A lost node that returns with what it had, for jobs that keep the original: its document is held back
//! until the replacement is gone, so that the original container goes on without a pause.
//!
//! In: what a returning node shows. Out: commits that place tasks where they were, and the nodes that get no
//! document meanwhile. What does not work out within [`DECIDE_MS`] is decided the other way: the node gets its
//! document and gives up what was replaced.

use super::Owner;
use crate::journal::JournalError;
use crate::lost::{names, returned};
use crate::model::{JobRecord, Stray};
use edgeloom_common::ids::NodeId;
use edgeloom_common::job::Reconcile;
use edgeloom_common::report::{ContainerPhase, ContainerState};
use std::collections::{BTreeMap, BTreeSet};

/// How long the document of a returned node may be held back before its tasks are on their way home.
const DECIDE_MS: u64 = 10_000;

impl Owner {
    /// Nodes out of reach whose originals are to be kept, and those that have come back with them, as long as
    /// the replacements are not gone.
    pub(super) fn held_back(&self) -> BTreeSet<NodeId> {
        if self.gathering() {
            return self.model().published.keys().cloned().collect();
        }
        let holds = |node: &NodeId, stray: &Stray| {
            self.goes_home(node, stray) || (self.undecided(node) && self.replaced(node, stray).is_some())
        };
        let nodes = self.model().cut_off.iter();
        let nodes = nodes.filter(|(node, strays)| strays.iter().any(|stray| holds(node, stray)));
        nodes.map(|(node, _)| node.clone()).collect()
    }

    fn undecided(&self, node: &NodeId) -> bool {
        let known = self.nodes.table.get(node).filter(|known| known.online);
        known.is_none_or(|known| self.now_ms.saturating_sub(known.since_ms) < DECIDE_MS)
    }

    /// The job that wants this container back instead of its replacement.
    fn replaced(&self, node: &NodeId, stray: &Stray) -> Option<&JobRecord> {
        let wants = |record: &&JobRecord| {
            record.job.disconnect.reconcile == Reconcile::KeepOriginal
                && record.moved.get(&stray.task) == Some(node)
        };
        let mut committed = self.model().committed().map(|(record, _)| record);
        committed.find(|record| record.job.name == stray.job).filter(wants)
    }

    /// The container is wanted where it still runs, and the node's document does not say so yet.
    fn goes_home(&self, node: &NodeId, stray: &Stray) -> bool {
        let mut committed = self.model().committed();
        let home = committed.any(|(record, plan)| {
            record.job.name == stray.job
                && record.previous.is_some()
                && plan.placement.get(&stray.task) == Some(node)
        });
        home && self.original(node, stray).is_some() && self.listed(node, stray).is_none()
    }

    /// The hash of the container's specification in the node's document.
    fn listed(&self, node: &NodeId, stray: &Stray) -> Option<&str> {
        let mut containers = self.model().published.get(node)?.containers.iter();
        let spec = containers.find(|spec| (&spec.job, &spec.task) == (&stray.job, &stray.task))?;
        Some(&spec.spec_hash)
    }

    /// The container as the node has shown it since it came back, while it runs.
    fn original(&self, node: &NodeId, stray: &Stray) -> Option<&ContainerState> {
        let known = self.nodes.table.get(node).filter(|known| known.online)?;
        let seen = known.observed.as_ref().filter(|seen| seen.listed)?;
        if known.observed_ms < known.since_ms {
            return None;
        }
        let mut containers = seen.containers.iter();
        let state = containers.find(|state| (&state.job, &state.task) == (&stray.job, &stray.task));
        state.filter(|state| state.phase == ContainerPhase::Running)
    }

    /// Every replaced task of the job runs where it was, as its replacement does.
    fn is_whole(&self, record: &JobRecord) -> bool {
        let placement = record.plan.as_ref().map(|plan| &plan.placement);
        record.moved.iter().all(|(task, from)| {
            let now = placement.and_then(|placement| placement.get(task));
            let same = || {
                let stray = record.stray(task)?;
                let (original, wanted) = (self.original(from, &stray)?, self.listed(now?, &stray)?);
                Some(original.spec_hash == wanted)
            };
            same().unwrap_or(false)
        })
    }

    /// Places a job's tasks where they were, if all of them still run there.
    pub(super) fn reunite(&mut self) -> Result<(), JournalError> {
        let back = self.model().cut_off.iter().filter(|(node, _)| self.nodes.online(node));
        let mut strays = back.flat_map(|(node, strays)| strays.iter().map(move |stray| (node, stray)));
        let found = strays.find_map(|(node, stray)| {
            let record = self.replaced(node, stray).filter(|_| self.undecided(node))?;
            (self.is_whole(record) && !self.was_kept(record)).then(|| record.clone())
        });
        let Some(record) = found.filter(|_| self.model().settled()) else { return Ok(()) };
        let from: BTreeSet<NodeId> = record.moved.values().cloned().collect();
        // Nothing else goes there before it has confirmed a document; this is there already.
        self.nodes.table.iter_mut().filter(|(node, _)| from.contains(*node)).for_each(|(_, known)| {
            known.silent = false;
        });
        let outcome = self.outcome(&[&returned(&record)], &BTreeMap::new());
        self.nodes.table.iter_mut().filter(|(node, _)| from.contains(*node)).for_each(|(_, known)| {
            known.silent = true;
        });
        match outcome {
            Ok(outcome) if outcome.unplaced.is_empty() => {
                let why = format!("node {} has returned with what it had", names(&from));
                self.commit_told(outcome, (&record.job.name, &why))
            }
            _ => {
                self.keep_replacement(&record.job.name);
                Ok(())
            }
        }
    }
}
