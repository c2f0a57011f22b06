//! What a node says about itself: presence, load, what it is and holds, its links, and what it made of
//! its desired state.

use crate::desired::{SCHEMA, Version};
use crate::ids::{ClusterId, FlowId, JobName, NodeId, TaskName};
use crate::job::Taint;
use crate::units::{BitRate, Bytes, MilliCores};
use crate::volume::HeldVolume;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Presence. `session` is the wall-clock millisecond of the connection, and rises with each one of an
/// agent, so that a late Last Will of an older connection cannot overrule a newer birth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub schema: u32,
    pub online: bool,
    pub session: u64,
}

impl Status {
    /// The status message of one session.
    #[must_use]
    pub fn new(online: bool, session: u64) -> Self {
        Self { schema: SCHEMA, online, session }
    }
}

/// Load, at least every 10 s.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema: u32,
    /// Measured use of the node's CPU, in thousandths of a core.
    pub cpu_used: MilliCores,
    pub memory_used: Bytes,
    pub disk_used: Bytes,
    /// Measured flow rates, from the class counters at the flow's first node.
    #[serde(default)]
    pub flows: Vec<FlowRate>,
    /// Measured use of each running container of ours.
    #[serde(default)]
    pub tasks: Vec<TaskUse>,
    /// What the same containers used since each was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<TaskTotal>,
    /// The hottest sensor, in thousandths of a degree Celsius, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_millicelsius: Option<i32>,
    /// What the agent itself has written to storage since it started, where the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written: Option<Bytes>,
    /// For how long the agent has been running, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_s: Option<u64>,
}

/// An agent that has just started has written what it writes once: no measure of a day.
const DAY_KNOWN_AFTER_S: u64 = 600;

impl Report {
    /// What the agent writes to storage in a day at the rate since it started; none while that tells nothing.
    #[must_use]
    pub fn disk_written_a_day(&self) -> Option<Bytes> {
        let running_s = self.running_s.filter(|seconds| *seconds >= DAY_KNOWN_AFTER_S)?;
        let a_day = u128::from(self.disk_written?.0) * 86_400 / u128::from(running_s);
        Some(Bytes(u64::try_from(a_day).unwrap_or(u64::MAX)))
    }
}

/// One running container, over the reporting period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUse {
    pub job: JobName,
    pub task: TaskName,
    /// Processor time used, in thousandths of a core.
    pub cpu: MilliCores,
    /// Now.
    pub memory: Bytes,
    /// What its own interface received and sent, as that interface counts.
    pub received: BitRate,
    pub sent: BitRate,
}

/// What one run of a container used since it was started: who misses reports loses nothing by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTotal {
    pub job: JobName,
    pub task: TaskName,
    /// Docker's id.
    pub container: String,
    /// Another one after each start of the container: all below begins with it. The lower 32 bits rise from start to
    /// start, the upper ones change with each boot.
    pub run: u64,
    /// For how long it has been running, by a clock that nobody sets.
    pub age_ms: u64,
    /// Processor time, as its control group counts it.
    pub cpu_us: u64,
    /// What its own interface sent and received.
    pub sent: Bytes,
    pub received: Bytes,
    /// Now.
    pub memory: Bytes,
    /// Bytes of memory times seconds, since the agent looks at it.
    pub memory_byte_s: u64,
    /// How old the run was when the agent began to look; another one after each start of the agent.
    pub memory_from_ms: u64,
}

/// One shaped flow, as its class counted it since the report before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRate {
    pub id: FlowId,
    /// Wire rate over the reporting period.
    pub rate: BitRate,
    /// Bytes waiting in the class now.
    pub backlog: Bytes,
}

/// What the node is and holds; changes seldom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    pub schema: u32,
    pub cluster: ClusterId,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// Machines of one class compute alike: model, processor and number of cores, as one word.
    #[serde(default)]
    pub class: String,
    /// CPU that containers may use.
    pub cpu: MilliCores,
    /// Reference-core seconds that one core does in a second, from the reference run.
    pub core_speed: f64,
    pub memory: Bytes,
    pub disk: Bytes,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What keeps tasks away that do not tolerate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    pub capabilities: Capabilities,
    pub store: ImageStore,
    #[serde(default)]
    pub layers: LayerInventory,
    /// What tasks have kept here, those of jobs that are gone too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<HeldVolume>,
}

/// What the node's kernel and Docker can do, found by trying.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// HTB classes can be made.
    pub htb: bool,
    /// fq_codel leaves can be made; otherwise bfifo.
    pub fq_codel: bool,
    /// nftables maps can be made.
    pub nft_maps: bool,
    /// Packets are forwarded.
    pub ip_forward: bool,
    /// Memory limits of containers hold.
    pub memory_limit: bool,
    /// Docker's version and API version, as it answers; empty when it does not.
    pub docker_version: String,
    pub docker_api: String,
    /// Folders of the node that containers may mount, and what is below them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_folders: Vec<String>,
    /// What is missing, in words, with the remedy.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// How Docker keeps images, which decides what a pull fetches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageStore {
    /// Layers are found by their own digest.
    Containerd,
    /// Layers are found by chain of what is below them (overlay2 and the like); also a word of a later version.
    #[default]
    #[serde(other)]
    Graphdriver,
}

/// Layers held, as far as they decide what a pull fetches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerInventory {
    /// Image ids (config digests) present: such an image fetches nothing.
    #[serde(default)]
    pub image_ids: Vec<String>,
    /// Chain ids present in the layer store.
    #[serde(default)]
    pub chain_ids: Vec<String>,
    /// Blob digests whose content a layer here has, and is known to have; all blobs where a blob is kept as it came.
    #[serde(default)]
    pub known_digests: Vec<String>,
    /// Digests by which images here were pulled, where only Docker's API tells what is here: the blobs of these
    /// manifests, which it does not name, are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<String>,
}

/// The node's links, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Links {
    pub schema: u32,
    pub links: Vec<LinkReport>,
}

/// One direction of a link: from the reporting node to `neighbour`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    pub neighbour: NodeId,
    pub interface: String,
    /// Our address on the link.
    pub address: Ipv4Addr,
    /// Capacity set by the operator, wire rate.
    #[serde(default)]
    pub capacity_declared: Option<BitRate>,
    /// Capacity measured by packet train, wire rate.
    #[serde(default)]
    pub capacity_measured: Option<BitRate>,
    /// Least and median round trip of the last probes, in microseconds.
    #[serde(default)]
    pub rtt_min_us: Option<u32>,
    #[serde(default)]
    pub rtt_median_us: Option<u32>,
    /// Probes lost, of a thousand.
    #[serde(default)]
    pub loss_permille: u32,
    /// False after three probes in a row went unanswered.
    pub up: bool,
    /// Images come from registries over this link's interface, as the last pulls showed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pulls: bool,
}

/// What became of the desired state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub schema: u32,
    /// The document the agent works on.
    pub version: Version,
    /// True once the kernel carries every flow and route of `version`.
    pub network_applied: bool,
    /// True once everything of `version` is as wanted.
    pub converged: bool,
    /// The engine has told its containers since the agent started; before, `containers` are the wanted ones.
    #[serde(default)]
    pub listed: bool,
    #[serde(default)]
    pub containers: Vec<ContainerState>,
    #[serde(default)]
    pub pulls: Vec<PullState>,
    /// What became of the images to hold ready, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefetched: Vec<PrefetchState>,
    /// The last images that were removed to make room, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collected: Vec<CollectedImage>,
    /// What runs of containers used to their ends, in their order: of the last seconds, and of all that the controller
    /// may not have heard of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<TaskTotal>,
    /// What stands in the way, with object and remedy.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// A container of ours, as Docker has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerState {
    pub job: JobName,
    pub task: TaskName,
    pub spec_hash: String,
    pub container_id: String,
    pub phase: ContainerPhase,
    /// How often the agent or Docker started it again.
    pub restarts: u32,
    /// Exit code or start error of the last end.
    #[serde(default)]
    pub detail: String,
    /// By the node's clock, in milliseconds since 1970: of the last start, and of the end after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
    /// It has run to its end and is not started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// How a container ended for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Of the last attempt; none where the engine tells none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Starts, the first one counted.
    pub attempts: u32,
}

impl Outcome {
    #[must_use]
    pub fn succeeded(self) -> bool {
        self.exit_code == Some(0)
    }
}

/// Where a container is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainerPhase {
    Waiting,
    Pulling,
    Creating,
    Running,
    Exited,
    /// It cannot start, or it ran to an end other than 0 and is not started again.
    Failed,
    /// It ran to its end.
    Succeeded,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// An image on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullState {
    pub image: String,
    pub bytes_fetched: Bytes,
    #[serde(default)]
    pub bytes_total: Option<Bytes>,
    /// Layers of which bytes arrived.
    #[serde(default)]
    pub layers: u32,
    /// How long the pull took, once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Bytes that did not come from the registry, but from neighbours or from what the node kept: told once it is done.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub bytes_elsewhere: Bytes,
    #[serde(default)]
    pub done: bool,
    #[serde(default)]
    pub error: String,
}

fn is_nothing(bytes: &Bytes) -> bool {
    bytes.0 == 0
}

/// An image to hold ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefetchState {
    pub image: String,
    /// Of its manifest.
    pub digest: String,
    pub phase: PrefetchPhase,
    /// What the last attempt failed with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// How far an image to hold ready is; how many bytes of it came, its pull says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrefetchPhase {
    /// For tasks' pulls, or for room on the disk.
    Waiting,
    Pulling,
    Present,
    Failed,
    /// It had no pin and was removed to make room.
    Removed,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// An image that a node removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedImage {
    /// A name of it, or its id.
    pub image: String,
    /// By what less was used after it.
    pub freed: Bytes,
    /// Seconds since 1970.
    pub at_s: u64,
    pub why: String,
}

/// A request for logs: `cmd/logs/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsCommand {
    pub job: JobName,
    pub task: TaskName,
    pub follow: bool,
    /// Lines from the end to begin with; none: all.
    #[serde(default)]
    pub tail: Option<u32>,
    /// Leave out what was logged before, in seconds since 1970 by the node's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<u64>,
    /// Begin each line with the time at which the engine took it (RFC 3339 with nine digits, UTC) and a blank.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timestamps: bool,
    /// True: end an earlier request of this id.
    #[serde(default)]
    pub cancel: bool,
}

/// A request for the document that the node holds, `cmd/document/<id>`: a controller that lost its state
/// rebuilds it from what nodes hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentCommand {}

/// A piece of an answer to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub id: u64,
    /// Counts from 0 within an id.
    pub sequence: u64,
    pub text: String,
    /// No more pieces follow.
    #[serde(default)]
    pub last: bool,
    #[serde(default)]
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_a_day_is_told_once_it_can_be_known() {
        let report = |running_s, written| Report {
            running_s: Some(running_s),
            disk_written: Some(Bytes(written)),
            ..Report::default()
        };
        assert_eq!(report(599, 40_960).disk_written_a_day(), None);
        assert_eq!(report(43_200, 40_960).disk_written_a_day(), Some(Bytes(81_920)));
        assert_eq!(report(600, u64::MAX).disk_written_a_day(), Some(Bytes(u64::MAX)));
        assert_eq!(Report::default().disk_written_a_day(), None, "an agent of the version before");
    }

    #[test]
    fn what_older_agents_observe_reads_and_last_counts_come_through() {
        let older =
            r#"{"schema":1,"version":{"epoch":1,"generation":2},"network_applied":true,"converged":true}"#;
        let mut observed: Observed = serde_json::from_str(older).unwrap();
        assert_eq!(observed.ended, []);
        assert!(
            !serde_json::to_string(&observed).unwrap().contains("ended"),
            "older controllers read it as it was"
        );
        let told = r#"{"job":"j","task":"t","container":"c","run":4294967301,"age_ms":1,"cpu_us":2,"sent":3,"received":4,
            "memory":5,"memory_byte_s":6,"memory_from_ms":7}"#;
        observed.ended.push(serde_json::from_str(told).unwrap());
        let text = serde_json::to_string(&observed).unwrap();
        assert_eq!(serde_json::from_str::<Observed>(&text).unwrap(), observed);
    }
}
