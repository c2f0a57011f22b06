//! The accounts as part of the model: open records as last kept, and closed ones until they are in the archive.

use super::open::{Key, Open};
use super::reading::Reading;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::price::Prices;
use edgeloom_common::usage::{Tariff, UsageView};
use serde::{Deserialize, Serialize};

/// Closed records that wait for the archive; where it cannot be written the oldest go.
const CLOSED_MAX: usize = 2_000;

/// What outlives the controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Book {
    /// Since when everything is counted; 0: not yet.
    pub(crate) begun_ms: u64,
    #[serde(default)]
    pub(crate) pricing: Pricing,
    /// By their keys.
    #[serde(default)]
    open: Vec<Open>,
    /// By their numbers.
    #[serde(default)]
    pub(crate) closed: Vec<UsageView>,
    /// The highest number given.
    #[serde(default)]
    pub(crate) last: u64,
    #[serde(default)]
    rested: Vec<Rested>,
}

/// The price table in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pricing {
    /// Rises with every change; 0: there never was one.
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) prices: Option<Prices>,
}

impl Pricing {
    pub(crate) fn tariff(&self) -> Option<Tariff> {
        Some(Tariff { version: self.version, prices: self.prices.clone()? })
    }
}

/// A run whose record was closed while its node was out of reach: if it goes on after all, and is taken back, it
/// counts from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rested {
    pub(crate) key: Key,
    pub(crate) container: String,
    pub(crate) run: u64,
}

/// A change of the accounts, whole or not at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pricing: Option<Pricing>,
    /// New ones, or as they are by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<Open>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) closed: Vec<UsageView>,
    /// Open ones that do not go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ended: Vec<Key>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rested: Vec<Rested>,
    /// Closed ones up to this number are in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) archived: Option<u64>,
}

impl Book {
    pub(crate) fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn open(&self) -> &[Open] {
        &self.open
    }

    /// The record of this run was closed when its node was lost.
    pub(crate) fn has_rested(&self, key: &Key, reading: &Reading) -> bool {
        self.rested.iter().any(|rested| rested.key == *key && *rested == reading.rested(key.clone()))
    }

    /// The state is another one than nodes last worked with: what lies between is lost, or was counted.
    pub(crate) fn interrupt(&mut self) {
        self.begun_ms = 0;
        self.open.iter_mut().for_each(Open::interrupt);
    }

    /// Nothing of the job is left.
    pub(crate) fn forget(&mut self, job: &JobName) {
        self.rested.retain(|rested| rested.key.0 != *job);
    }

    pub(crate) fn apply(&mut self, change: Change) {
        self.begun_ms = change.begun_ms.unwrap_or(self.begun_ms);
        if let Some(pricing) = change.pricing {
            self.pricing = pricing;
        }
        for open in change.open {
            match self.place(&open.key()) {
                Ok(at) => self.open[at] = open,
                Err(at) => self.open.insert(at, open),
            }
        }
        for key in change.ended {
            if let Ok(at) = self.place(&key) {
                self.open.remove(at);
            }
        }
        self.closed.extend(change.closed);
        self.last = self.closed.last().and_then(|record| record.number).unwrap_or(0).max(self.last);
        if let Some(archived) = change.archived {
            self.closed.retain(|record| record.number > Some(archived));
        }
        let over = self.closed.len().saturating_sub(CLOSED_MAX);
        self.closed.drain(..over);
        for rested in change.rested {
            self.rested.retain(|before| before.key != rested.key);
            self.rested.push(rested);
        }
    }

    fn place(&self, key: &Key) -> Result<usize, usize> {
        let (job, accepted_ms, task, node) = key;
        let wanted: (&JobName, u64, &TaskName, &NodeId) = (job, *accepted_ms, task, node);
        self.open.binary_search_by(|open| {
            let view = open.view();
            (&view.job, view.accepted_ms, &view.task, &view.node).cmp(&wanted)
        })
    }
}
