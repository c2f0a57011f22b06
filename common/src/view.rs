//! What the controller's HTTP API answers, shared with the command line and the lab.
//!
//! Keys carry their unit; a number's origin is in its name (`declared`, `predicted`, `measured`).

mod drain;
mod explanation;
mod strategy;

pub use drain::{ConsolidationView, CordonView, CordonedBy, EmptiedView, KeptView, MoveView, RemainingView};
pub use explanation::{Explanation, LimitKind, LimitView, OtherNode, TaskExplanation, Verdict};
pub use strategy::{ListenView, StrategyFlowView, StrategyView, TaskGroupView};

use crate::desired::FlowKey;
use crate::ids::{JobName, NodeId, TaskName};
use crate::report::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// One job, as `GET /v1/jobs/{name}`, `POST /v1/jobs` and its dry run answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub name: JobName,
    pub state: JobState,
    pub profile: String,
    /// Why the job waits, does not run though it was placed, or failed, for people; empty otherwise.
    #[serde(default)]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionView>,
    /// Beside the prediction, once the job has run for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredView>,
    /// How often it was planned anew while it ran, for a shortfall or a changed link or node.
    #[serde(default)]
    pub replans: u32,
    /// What happened to tasks by no doing of theirs: `task detect was moved because node n2 is lost`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub tasks: Vec<TaskView>,
    pub flows: Vec<FlowView>,
    /// Placement, ports, ways and rates as one document; none while the job has no place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategyView>,
    /// How far a batch is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchView>,
    /// Only in a dry run's answer; a job's own is asked for by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// The tasks of a batch, each counted once but for `placed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchView {
    pub tasks: usize,
    pub succeeded: usize,
    pub failed: usize,
    /// They depend on what failed and never run.
    pub skipped: usize,
    pub running: usize,
    /// For others, for room, or for their container's start.
    pub waiting: usize,
    /// Those that hold resources of a node now.
    pub placed: usize,
}

/// The throughput that a job reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredView {
    pub items_per_s_measured: f64,
    /// Seconds over which it was measured.
    pub window_s: f64,
    /// `flows`: the class counters of its flows; `containers`: what its containers received.
    pub origin: String,
}

/// One thing that happened, as `GET /v1/events` lists it, newest last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventView {
    /// Rises by one an event while the controller lives.
    pub number: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobName>,
    /// `replan`, `shortfall`, `measure`, ...
    pub kind: String,
    /// For people: what, why, and the figures.
    pub text: String,
}

/// `GET /v1/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventList {
    pub events: Vec<EventView>,
}

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// A dry run's answer.
    Planned,
    /// Fits, but not now.
    Waiting,
    /// Committed; images, network or containers are on their way.
    Starting,
    Running,
    /// A batch of which every task ended with code 0.
    Succeeded,
    Stopping,
    /// Of a batch: nothing is left to run, and not every task succeeded.
    Failed,
}

impl JobState {
    pub const ALL: [Self; 7] = [
        Self::Planned,
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Succeeded,
        Self::Stopping,
        Self::Failed,
    ];

    /// As documents and tables have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        }
    }
}

/// What the planner expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionView {
    pub items_per_s_predicted: f64,
    pub bound: Bound,
    /// The node, flow or source that sets the pace.
    pub bound_by: String,
}

/// What limits a job's throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    Compute,
    Network,
    /// The source makes no more items.
    Source,
}

/// One task; the source's container appears as `source`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    pub name: TaskName,
    pub node: NodeId,
    pub image: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// Docker's id; empty until created.
    #[serde(default)]
    pub container: String,
    /// `planned waiting pulling creating running exited failed succeeded`.
    pub phase: String,
    #[serde(default)]
    pub detail: String,
    pub restarts: u32,
    /// The limits that the container gets; 0 where it has none.
    #[serde(default)]
    pub cpu_millicores: u32,
    #[serde(default)]
    pub memory_bytes: u64,
    /// Bytes that the pull for this task was predicted to fetch from the registry: layers and
    /// configuration, counted at the first task of a node that needs them.
    pub bytes_predicted: u64,
    /// As the pull reported so far.
    #[serde(default)]
    pub bytes_fetched: u64,
    /// Seconds that the pull took, once it is done; and those foretold for it by what was known of the node's line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_s_predicted: Option<f64>,
    /// Of the last run, by the node's clock, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
    /// How it ended, for a task that has run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// One flow between nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    pub from: TaskName,
    pub to: TaskName,
    pub path: Vec<NodeId>,
    pub bytes_per_item: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<FlowKey>,
    /// Wire rate given.
    pub rate_given_bps: u64,
    /// Wire rate by the class counter of the flow's first node, last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_measured_bps: Option<u64>,
    /// Bytes waiting in the class at the last report: above 0 while the network is the limit.
    #[serde(default)]
    pub backlog_bytes: u64,
}

/// A node's last pulls for tasks, up to 256 since the controller started, and its line to the registries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PullsView {
    pub finished: usize,
    /// Those that fetched the predicted bytes to the byte.
    pub exact: usize,
    /// Of layers; configurations apart, which nodes do not count.
    pub bytes_predicted: u64,
    pub bytes_fetched: u64,
    /// The median of how far the predicted seconds were off, as a part of those taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_error_median: Option<f64>,
    /// Payload that pulls get over the line, as learnt from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<u64>,
}

/// `GET /v1/jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobList {
    pub jobs: Vec<JobView>,
}

/// `GET /v1/nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeList {
    pub nodes: Vec<NodeView>,
}

/// `DELETE /v1/nodes/{name}`: a node that will not come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenView {
    pub node: NodeId,
    /// Containers that it had when it was heard last: it may still run them, where nobody can see it.
    pub may_run: Vec<StrayView>,
    /// Serial numbers of its certificates, which are revoked.
    pub serials: Vec<String>,
}

/// A container on a node that cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StrayView {
    pub job: JobName,
    pub task: TaskName,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeView {
    pub name: NodeId,
    pub online: bool,
    /// Since when it is offline, in milliseconds since 1970; none while it is online or was never heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_since_ms: Option<u64>,
    /// It has been away for longer than some job allows, or changes no longer wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Inventory and links have arrived: the planner counts on it.
    pub ready: bool,
    /// It takes nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<CordonView>,
    pub architecture: String,
    /// Hardware class, for which measurements hold.
    #[serde(default)]
    pub class: String,
    pub cpu_capacity_millicores: u32,
    pub cpu_requested_millicores: u32,
    pub cpu_used_millicores: u32,
    pub core_speed: f64,
    /// The hottest sensor, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_millicelsius: Option<i32>,
    pub memory_capacity_bytes: u64,
    pub memory_requested_bytes: u64,
    pub memory_used_bytes: u64,
    pub disk_capacity_bytes: u64,
    pub disk_used_bytes: u64,
    /// Written to storage by the agent itself since it started, where the node's kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_written_bytes: Option<u64>,
    /// The same in a day, at the rate since it started; none in its first ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_written_bytes_per_day: Option<u64>,
    pub labels: BTreeMap<String, String>,
    pub docker_version: String,
    pub layers_held: usize,
    /// How far predictions of the node's pulls were off.
    #[serde(default)]
    pub pulls: PullsView,
    /// The desired state last sent and last confirmed, as (epoch, generation).
    pub version_sent: (u64, u64),
    pub version_observed: (u64, u64),
    pub converged: bool,
    /// How far the node's clock was ahead of the controller's when it last connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    pub links: Vec<LinkView>,
    pub problems: Vec<String>,
}

/// How a node is, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    Lost,
    Offline,
    /// Inventory or links have not arrived.
    Joining,
    /// It works on its document.
    Applying,
    Ready,
}

impl NodeState {
    pub const ALL: [Self; 5] = [Self::Lost, Self::Offline, Self::Joining, Self::Applying, Self::Ready];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Offline => "offline",
            Self::Joining => "joining",
            Self::Applying => "applying",
            Self::Ready => "ready",
        }
    }
}

impl NodeView {
    #[must_use]
    pub fn state(&self) -> NodeState {
        match (self.online, self.ready, self.converged) {
            (false, ..) if self.lost => NodeState::Lost,
            (false, ..) => NodeState::Offline,
            (true, false, _) => NodeState::Joining,
            (true, true, false) => NodeState::Applying,
            (true, true, true) => NodeState::Ready,
        }
    }
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkView {
    pub neighbour: NodeId,
    pub up: bool,
    #[serde(default)]
    pub capacity_declared_bps: Option<u64>,
    #[serde(default)]
    pub capacity_measured_bps: Option<u64>,
    pub rate_reserved_bps: u64,
    #[serde(default)]
    pub rtt_min_us: Option<u32>,
    #[serde(default)]
    pub rtt_median_us: Option<u32>,
    pub loss_permille: u32,
}

/// An error answer (RFC 9457, `application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Stable code, for instance `job.invalid`, `job.exists`, `job.unplaceable`, `image.unknown`.
    #[serde(rename = "type")]
    pub code: String,
    pub title: String,
    pub status: u16,
    #[serde(default)]
    pub detail: String,
    /// Every single problem, where there are several.
    #[serde(default)]
    pub problems: Vec<ProblemItem>,
}

/// One problem of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemItem {
    /// Line in the posted document, from 1; 0 where no line applies.
    pub line: usize,
    /// Path of the field, for instance `tasks.detect.resources.cpu`; or the node, for a refusal by node.
    pub field: String,
    pub problem: String,
    /// What to do about it.
    #[serde(default)]
    pub remedy: String,
}
