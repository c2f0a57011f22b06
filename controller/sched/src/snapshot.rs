//! What a decision may see: one immutable value, time and seed inside.

use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Job, Taint};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::batch::Packing;
use crate::plan::JobPlan;
use crate::pull::{Goodput, Held, Image};
use crate::scoring::Scoring;

/// The cluster as it is now. Nodes and links are sorted by name; equal snapshots give equal plans.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Milliseconds since the epoch of the caller's choice.
    pub now_ms: u64,
    pub seed: u64,
    /// Payload share of a wire rate (`TCP_GOODPUT` on a real cluster, 1 in the papers' models).
    pub goodput: f64,
    /// Share of each link's capacity that flows may reserve; the rest is for everything else.
    pub link_share: f64,
    pub processors: Processors,
    pub policy: Policy,
    /// What the profiles that score nodes one task at a time go by.
    pub scoring: Scoring,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Committed jobs, with what each was given.
    pub running: Vec<Running>,
    /// `Q_wait`: jobs to decide on.
    pub waiting: Vec<Waiting>,
}

/// A machine of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub id: NodeId,
    /// False: offline or not yet known well enough; nothing new goes there or through it.
    pub ready: bool,
    /// Hardware class: what is profiled on one node holds for all of its class.
    pub class: String,
    pub labels: BTreeMap<String, String>,
    /// Allocatable: total minus reserve.
    pub cpu: MilliCores,
    /// Reference-core seconds that one core does in a second.
    pub core_speed: f64,
    pub memory: Bytes,
    pub disk: Bytes,
    /// The kernel can shape flows and take custom routes.
    pub shapes_flows: bool,
    pub hosting: Hosting,
}

/// What else decides which containers a node takes, and what a pull there costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosting {
    /// Architecture as image configurations name it (`amd64`, `arm64`).
    pub platform: String,
    /// Images and layers, with those that committed jobs are going to pull.
    pub held: Arc<Held>,
    /// What pulls get over the line to the registry; none: not known.
    pub goodput: Option<Goodput>,
    /// Neighbours whose links are that line: what flows need of them, pulls do not get.
    pub pulls_over: BTreeSet<NodeId>,
    pub taints: Vec<Taint>,
    pub containers_max: u32,
    /// Storage for volumes by class.
    pub volumes: BTreeMap<String, Bytes>,
    /// Of its own, which containers may mount.
    pub folders: Vec<String>,
}

impl Default for Hosting {
    fn default() -> Self {
        Self {
            platform: String::new(),
            held: Arc::default(),
            goodput: None,
            pulls_over: BTreeSet::new(),
            taints: Vec::new(),
            containers_max: u32::MAX,
            volumes: BTreeMap::new(),
            folders: Vec::new(),
        }
    }
}

/// The label that nodes carry their platform in where images have variants for some platforms alone.
pub const PLATFORM: &str = "edgeloom.platform";

/// An image by platform.
pub type Platforms = BTreeMap<String, Arc<Image>>;

impl Node {
    /// Reference-core seconds a second, all cores together: the paper's `PS_j`.
    #[must_use]
    pub fn speed(&self) -> f64 {
        f64::from(self.cpu.0) / 1000.0 * self.core_speed
    }
}

/// A line between two nodes, `a < b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub a: NodeId,
    pub b: NodeId,
    /// Wire capacity from `a` to `b`.
    pub a_to_b: BitRate,
    /// Wire capacity from `b` to `a`.
    pub b_to_a: BitRate,
    pub duplex: Duplex,
}

/// Whether the two directions of a link share its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// Both directions together have `a_to_b`.
    Half,
    Full,
}

/// How jobs use a processor together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// All jobs on a node share it, as on a real cluster.
    Shared,
    /// Each job has a node's whole speed to itself, as in the model of ENTS (Eq. 2 and 3).
    PerJob,
}

/// What a change of a running job has to be worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Part of its max-min throughput that every job keeps, 0 to 1, before the rest goes where it gives
    /// the largest sum.
    pub floor: f64,
    /// Seconds for which a job makes no items while a task of it moves: 0.8 were measured from the end of the
    /// old container to the start of the new one, with its image there; slow cards take longer.
    pub migration_s: f64,
    /// Seconds for which a running job is expected to go on: a move has to pay within them.
    pub horizon_s: f64,
    /// What batches are to achieve.
    pub batch: Packing,
}

impl Default for Policy {
    fn default() -> Self {
        Self { floor: 0.75, migration_s: 1.0, horizon_s: 60.0, batch: Packing::default() }
    }
}

/// What may change of a running job; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Nothing,
    /// Rates of flows and limits of containers.
    Rates,
    /// Paths too.
    Routes,
    /// Tasks may move.
    Placement,
}

/// What was measured of a job's tasks, by task and hardware class.
pub type Profiles = BTreeMap<TaskName, BTreeMap<String, TaskProfile>>;

/// One task on one hardware class, under its requested limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TaskProfile {
    /// Reference-core seconds an item: processor time times the core speed it was measured at.
    pub work_s: f64,
    /// Seconds an item.
    pub wall_s: f64,
    /// Core speed of the node that it was measured on.
    pub core_speed: f64,
    pub memory_peak: Bytes,
}

/// A job that holds resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    pub job: Job,
    pub plan: JobPlan,
    pub profiles: Profiles,
    pub change: Change,
    /// Cores that tasks sized by class turned out to need: a share goes no further. Of those not named that is
    /// not known.
    pub enough: BTreeMap<TaskName, MilliCores>,
}

/// A job that wants resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub job: Job,
    pub since_ms: u64,
    /// Each task's image, where known. The source's container is listed under `source`.
    pub images: BTreeMap<TaskName, Platforms>,
    pub profiles: Profiles,
}
