//! What a node should be: one document, compared by the agent with what it finds.
//!
//! A document carries (cluster, epoch, generation). An agent refuses a foreign cluster and any
//! (epoch, generation) below the one it holds; the same pair again is a repeat and harmless.

use crate::ids::{ClusterId, FlowId, JobName, NodeId, SecretName, TaskName};
use crate::job::{HostPort, Mount};
use crate::registry::RegistryHost;
use crate::units::{BitRate, Bytes, MilliCores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The schema number of every wire message of this version.
pub const SCHEMA: u32 = 1;

/// The document of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredState {
    pub schema: u32,
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Rises at every change of leader, restore or import; then to the time, in seconds, if that is later.
    pub epoch: u64,
    /// Rises with every published change within an epoch.
    pub generation: u64,
    /// The address pool of all tasks.
    pub pool: Pool,
    /// Images to have, pulled one after the other in this order, each before any container that needs it.
    #[serde(default)]
    pub images: Vec<ImageRef>,
    #[serde(default)]
    pub containers: Vec<ContainerSpec>,
    /// The flows that start at or pass this node.
    #[serde(default)]
    pub flows: Vec<FlowSpec>,
    /// Where tasks on other nodes are reached: one host route each.
    #[serde(default)]
    pub routes: Vec<TaskRoute>,
    /// Jobs whose containers the node stops by itself after so many seconds without the controller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stop_after_s: BTreeMap<JobName, u32>,
    /// Where a task is reached while the neighbour of its route is dead: that neighbour's way there does not
    /// lead back over this node (loop-free alternates, RFC 5286).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternates: Vec<TaskRoute>,
    /// Where each neighbour is on the link with this node, as that neighbour says: its address may have changed
    /// since this node was configured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub neighbours: BTreeMap<NodeId, Ipv4Addr>,
    /// What the controller asks back if its own state is lost: jobs that have tasks here, each sealed by the
    /// controller for itself alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub copies: BTreeMap<JobName, String>,
    /// Images whose layers a neighbour may have from this node, by the digests of their manifests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layer_grants: BTreeMap<NodeId, Vec<String>>,
    /// Images to hold ready, pulled after all of `images`, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefetch: Vec<Prefetch>,
    /// Registries of `images` and `prefetch` that want a login, with the revision of it; the login itself travels beside the
    /// document, in [`Delivery`](crate::confidential::Delivery).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logins: BTreeMap<RegistryHost, u64>,
    /// What flows of jobs have of the link with each neighbour, where they have anything: pulls of images get
    /// what is left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reserved: BTreeMap<NodeId, Reserved>,
    /// Containers that ran to their end and stay for their logs: never started again, nor missed if they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
}

impl DesiredState {
    /// A document that wants nothing.
    #[must_use]
    pub fn empty(cluster: ClusterId, node: NodeId, pool: Pool) -> Self {
        Self {
            schema: SCHEMA,
            cluster,
            node,
            epoch: 0,
            generation: 0,
            pool,
            images: Vec::new(),
            containers: Vec::new(),
            flows: Vec::new(),
            routes: Vec::new(),
            stop_after_s: BTreeMap::new(),
            alternates: Vec::new(),
            neighbours: BTreeMap::new(),
            copies: BTreeMap::new(),
            layer_grants: BTreeMap::new(),
            prefetch: Vec::new(),
            logins: BTreeMap::new(),
            reserved: BTreeMap::new(),
            kept: Vec::new(),
        }
    }

    /// The pair that orders documents.
    #[must_use]
    pub fn version(&self) -> Version {
        Version { epoch: self.epoch, generation: self.generation }
    }
}

/// The order of documents: epoch first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Version {
    pub epoch: u64,
    pub generation: u64,
}

/// The addresses that tasks get: every node's Docker network is the whole pool, with the same gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub network: Ipv4Addr,
    pub prefix_len: u8,
    pub gateway: Ipv4Addr,
}

/// An image, by the digest of the manifest that the plan was made with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImageRef {
    /// Registry and repository without tag, for instance `registry.lan:5000/vision/detect`.
    pub repository: String,
    /// `sha256:...` of the manifest (or index).
    pub digest: String,
    /// What the user wrote, for people.
    pub name: String,
}

/// An image to hold ready for containers to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefetch {
    pub image: ImageRef,
    /// It stays, however little room there is on the disk.
    pub pinned: bool,
}

/// Wire rates of the flows that cross a link, in either direction, wherever they start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// From the neighbour to this node.
    #[serde(default)]
    pub inbound: BitRate,
    /// From this node to the neighbour.
    #[serde(default)]
    pub outbound: BitRate,
}

/// A container that should run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    pub job: JobName,
    pub task: TaskName,
    /// Hash of everything but the limits and the revisions of secrets: a running container with the same hash
    /// is kept, and its limits are changed in place.
    pub spec_hash: String,
    pub image: ImageRef,
    /// Empty: what the image says.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Limits; zero: none.
    pub cpu: MilliCores,
    pub memory: Bytes,
    /// The task's address for life, from the pool.
    pub address: Ipv4Addr,
    /// Names for /etc/hosts.
    #[serde(default)]
    pub hosts: BTreeMap<String, Ipv4Addr>,
    /// Secrets that it finds as files, each with the revision of its value; the values travel beside the document,
    /// in [`Delivery`](crate::confidential::Delivery).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<SecretName, u64>,
    /// None: it is started again for as long as it is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_end: Option<ToEnd>,
    /// Ports of the node that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<HostPort>,
    /// Folders that outlive it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
}

/// A container that runs to its end is started again after any code but 0, at most so many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToEnd {
    pub retries: u32,
    /// Tells the job from an earlier one of its name, whose ends are not this one's.
    pub run: u64,
}

/// The container of a task that has ended for good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Kept {
    pub job: JobName,
    pub task: TaskName,
}

/// What identifies a flow's packets: the source port is ephemeral and no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowKey {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: Protocol,
    pub destination_port: u16,
}

/// Transport of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// The IP protocol number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// One node's part in a flow: where its packets go next and, at the flow's first node, how fast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSpec {
    pub id: FlowId,
    pub key: FlowKey,
    /// The neighbour that gets the packets. The last node of a path has no entry.
    pub next_hop: NodeId,
    /// Wire rate of the flow's class, at the flow's first node only; relays forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The whole path, first node to last, for people and for the records.
    pub path: Vec<NodeId>,
}

/// A host route to a task on another node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskRoute {
    pub address: Ipv4Addr,
    /// The neighbour on the main way there.
    pub via: NodeId,
}
