//! What changes the cluster's state, as the journal keeps it.
//!
//! Kept for good: a variant or field is added with a default and never taken away, since every version reads the
//! journals of those before it.

use crate::batch::Ended;
use crate::cordon::Cordon;
use crate::missing::Layers;
use crate::model::{JobRecord, Model, Stray, Topology};
use crate::prefetch::Entry;
use crate::profiler::Kept;
use crate::usage::Change;
use crate::vault::{self, KeptLogin};
use edgeloom_common::desired::{DesiredState, ImageRef};
use edgeloom_common::ids::{JobName, NodeId, SecretName, TaskName};
use edgeloom_common::registry::RegistryHost;
use edgeloom_sched::plan::JobPlan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// An image as its registry resolved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    pub(crate) reference: ImageRef,
    /// By architecture, as the image's configuration names it (`amd64`, `arm64`).
    pub(crate) platforms: BTreeMap<String, Layers>,
}

impl Image {
    /// The layers that a node of this architecture pulls.
    pub(crate) fn layers(&self, architecture: &str) -> Option<&Layers> {
        self.platforms.get(platform(architecture))
    }
}

/// A kernel's name of an architecture as image configurations have it.
pub(crate) fn platform(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "armv7l" => "arm",
        other => other,
    }
}

/// A commit: plan, addresses and the pulls it was made with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Commit {
    pub(crate) plan: JobPlan,
    pub(crate) addresses: BTreeMap<TaskName, Ipv4Addr>,
    pub(crate) bytes_predicted: BTreeMap<TaskName, u64>,
    /// Lost nodes that it leaves: they confirm nothing, and may run what they had.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) lost: BTreeSet<NodeId>,
    /// When it was decided; 0 where no version noted it.
    #[serde(default)]
    pub(crate) at_ms: u64,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The whole state: a compacted journal begins with it.
    Snapshot(Box<Model>),
    EpochRaised {
        epoch: u64,
    },
    Accepted(Box<JobRecord>),
    /// Several at once: a decision holds only as a whole.
    Committed {
        commits: Vec<Commit>,
    },
    /// Every node that answers carries all of these jobs.
    Confirmed {
        jobs: Vec<JobName>,
    },
    Returned {
        job: JobName,
        reason: String,
    },
    /// A change of a running job is taken back.
    Restored {
        job: JobName,
    },
    Delayed {
        job: JobName,
        reason: String,
    },
    /// Containers have run to their end.
    Ended {
        job: JobName,
        tasks: BTreeMap<TaskName, Ended>,
    },
    Stopping {
        job: JobName,
    },
    Gone {
        job: JobName,
    },
    /// What nodes out of reach may still run of jobs that are done with them.
    Stranded {
        strays: Vec<(NodeId, Stray)>,
    },
    /// A node that was cut off has confirmed its document and runs nothing else.
    Rejoined {
        node: NodeId,
    },
    /// A node that will not come back.
    Forgotten {
        node: NodeId,
    },
    /// These documents go out next.
    Published {
        documents: Vec<DesiredState>,
    },
    /// What came back from nodes, whose documents go out again with a new version.
    Regained {
        epoch: u64,
        records: Vec<JobRecord>,
        documents: Vec<DesiredState>,
        /// Of nodes that have not told of their links themselves.
        topology: Topology,
        /// Jobs of which nodes show that they ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ended: Vec<JobName>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ready: Vec<Entry>,
    },
    Topology {
        node: NodeId,
        neighbours: BTreeMap<NodeId, Ipv4Addr>,
    },
    Profiled {
        kept: Box<Kept>,
    },
    SecretKept {
        name: SecretName,
        kept: vault::Kept,
    },
    SecretRemoved {
        name: SecretName,
    },
    LoginKept {
        registry: RegistryHost,
        login: KeptLogin,
    },
    LoginRemoved {
        registry: RegistryHost,
    },
    /// Their key is lost.
    SecretsForgotten,
    Cordoned {
        node: NodeId,
        cordon: Cordon,
    },
    Uncordoned {
        node: NodeId,
    },
    PrefetchKept {
        entry: Box<Entry>,
    },
    PrefetchReleased {
        image: String,
    },
    /// What containers used.
    Accounted(Box<Change>),
}

impl Event {
    /// Whether a journaled event stands for all before it; told by its first bytes, since it is large.
    pub(crate) fn is_snapshot(payload: &[u8]) -> bool {
        payload.starts_with(b"{\"Snapshot\":")
    }

    /// Jobs that it is about without bringing them.
    pub(crate) fn named(&self) -> Vec<JobName> {
        match self {
            Self::Committed { commits } => commits.iter().map(|commit| commit.plan.job.clone()).collect(),
            Self::Confirmed { jobs } => jobs.clone(),
            Self::Returned { job, .. }
            | Self::Restored { job }
            | Self::Delayed { job, .. }
            | Self::Ended { job, .. }
            | Self::Stopping { job } => vec![job.clone()],
            _ => Vec::new(),
        }
    }
}
