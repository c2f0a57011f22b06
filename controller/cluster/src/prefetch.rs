//! Images that nodes hold ready: what was asked for, and what of it stands in each node's document. Pure.

use crate::documents::Documents;
use edgeloom_common::desired::{ImageRef, Prefetch};
use edgeloom_common::ids::NodeId;
use edgeloom_common::prefetch::{PrefetchNode, PrefetchView};
use edgeloom_common::report::{Observed, PrefetchPhase};
use edgeloom_common::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Each is some two hundred bytes of every document.
pub(crate) const ENTRIES_MAX: usize = 64;

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) image: ImageRef,
    pub(crate) pinned: bool,
    /// None: every node, those to come too.
    pub(crate) nodes: Option<BTreeSet<NodeId>>,
}

/// By the name that people gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Ready(BTreeMap<String, Entry>);

impl Ready {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn find(&self, image: &str) -> Option<&Entry> {
        self.0.get(image)
    }

    /// One more would be too many.
    pub(crate) fn is_full(&self) -> bool {
        ENTRIES_MAX <= self.0.len()
    }

    pub(crate) fn keep(&mut self, entry: Entry) {
        self.0.insert(entry.image.name.clone(), entry);
    }

    pub(crate) fn release(&mut self, image: &str) {
        self.0.remove(image);
    }

    /// A node that is gone holds nothing.
    pub(crate) fn forget(&mut self, node: &NodeId) {
        for nodes in self.0.values_mut().filter_map(|entry| entry.nodes.as_mut()) {
            nodes.remove(node);
        }
        self.0.retain(|_, entry| entry.nodes.as_ref().is_none_or(|nodes| !nodes.is_empty()));
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }

    /// What documents name of images that are not known here, for a state that lost them. A document does not say
    /// whether others have it too, so one that all of them name is held everywhere. The newest counts.
    pub(crate) fn found_in(&self, documents: &Documents) -> Vec<Entry> {
        let mut newest: Vec<_> = documents.values().collect();
        newest.sort_by_key(|document| document.version());
        let mut found: BTreeMap<String, Entry> = BTreeMap::new();
        for document in newest {
            for Prefetch { image, pinned } in &document.prefetch {
                let nodes = found.get(&image.name).and_then(|entry| entry.nodes.clone()).unwrap_or_default();
                let nodes = nodes.into_iter().chain([document.node.clone()]).collect();
                let entry = Entry { image: image.clone(), pinned: *pinned, nodes: Some(nodes) };
                found.insert(image.name.clone(), entry);
            }
        }
        let room = ENTRIES_MAX.saturating_sub(self.0.len());
        let mut lost: Vec<Entry> =
            found.into_values().filter(|entry| !self.0.contains_key(&entry.image.name)).take(room).collect();
        for entry in &mut lost {
            entry.nodes = entry.nodes.take().filter(|nodes| nodes.len() < documents.len());
        }
        lost
    }

    /// Writes into each document what its node holds ready.
    pub(crate) fn add_to(&self, documents: &mut Documents) {
        for (node, document) in documents {
            let here = self.0.values().filter(|entry| entry.is_on(node));
            let prefetch = |entry: &Entry| Prefetch { image: entry.image.clone(), pinned: entry.pinned };
            document.prefetch = here.map(prefetch).collect();
        }
    }
}

impl Entry {
    fn is_on(&self, node: &NodeId) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(node))
    }

    /// With what each of its nodes says of it.
    pub(crate) fn view<'a>(
        &self,
        nodes: impl Iterator<Item = (&'a NodeId, Option<&'a Observed>)>,
    ) -> PrefetchView {
        PrefetchView {
            image: self.image.name.clone(),
            digest: self.image.digest.clone(),
            pinned: self.pinned,
            everywhere: self.nodes.is_none(),
            nodes: nodes
                .filter(|(node, _)| self.is_on(node))
                .map(|(node, observed)| self.on(node, observed))
                .collect(),
        }
    }

    fn on(&self, node: &NodeId, observed: Option<&Observed>) -> PrefetchNode {
        let told = observed.map(|it| it.prefetched.as_slice()).unwrap_or_default();
        let state = told.iter().find(|state| state.digest == self.image.digest);
        let pulls = observed.map(|it| it.pulls.as_slice()).unwrap_or_default();
        let pull = pulls.iter().find(|pull| pull.image == self.image.name);
        PrefetchNode {
            node: node.clone(),
            phase: state.map_or(PrefetchPhase::Waiting, |state| state.phase),
            bytes_fetched: pull.map_or(Bytes(0), |pull| pull.bytes_fetched),
            bytes_total: pull.and_then(|pull| pull.bytes_total),
            error: state.map(|state| state.error.clone()).unwrap_or_default(),
        }
    }
}
