//! The seam to whatever runs containers: few verbs, in the agent's own words.
//!
//! `docker.rs` is the only place that names the client library; `fake.rs` behaves like Docker for the
//! fast tests. Both pass the same contract (`contract.rs`). Every verb is idempotent in
//! the way a reconciler needs: making what exists and removing what is gone succeed.

#[cfg(test)]
mod contract;
mod docker;
#[cfg(any(test, feature = "fakes"))]
pub mod fake;
mod image;
mod progress;
pub mod trial;

pub use docker::{Docker, Hosting};
#[cfg(test)]
pub(crate) use docker::{private, registry, samples};
pub(crate) use image::FoundImage;
pub(crate) use progress::Pace;
pub use progress::PullProgress;

pub use crate::secrets::SecretFilesError;
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::{ContainerSpec, ImageRef, Pool};
use edgeloom_common::ids::{ClusterId, JobName, NodeId, TaskName};
use edgeloom_common::report::ImageStore;
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_observe::layers::{self, LayersError, Stored};
use std::fmt;
use std::future::Future;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};

/// Labels on everything of ours.
pub mod label {
    pub const CLUSTER: &str = "edgeloom.cluster";
    pub const NODE: &str = "edgeloom.node";
    pub const JOB: &str = "edgeloom.job";
    pub const TASK: &str = "edgeloom.task";
    pub const SPEC: &str = "edgeloom.spec";
    /// The task's address, since Docker's list does not show the address of a stopped container.
    pub const ADDRESS: &str = "edgeloom.address";
    /// On a measurement, which is no task: the digest of its image.
    pub const TRIAL: &str = "edgeloom.measure";
}

/// Whose containers: those of this cluster and node, and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub cluster: ClusterId,
    pub node: NodeId,
}

/// A task of a job: what identifies a container of ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    pub job: JobName,
    pub task: TaskName,
}

impl TaskKey {
    /// The key of a wanted container.
    #[must_use]
    pub fn of(spec: &ContainerSpec) -> Self {
        Self { job: spec.job.clone(), task: spec.task.clone() }
    }

    /// The container's name. Names of jobs and tasks hold no `_`, so no two keys share one.
    #[must_use]
    pub fn container_name(&self) -> String {
        format!("edgeloom_{}_{}", self.job, self.task)
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.job, self.task)
    }
}

/// A container of ours, as the engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContainer {
    pub id: String,
    pub key: TaskKey,
    pub spec_hash: String,
    pub address: Option<Ipv4Addr>,
    pub limits: FoundLimits,
    pub state: FoundState,
    pub times: Times,
    pub hold: Hold,
}

/// Whether the engine lets anybody at a container. While it does not, nothing that is asked of it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    #[default]
    Free,
    /// It did not answer, as happens to a busy one.
    Brief,
    /// It has not answered for so long that it will not before it is started anew.
    Long,
}

/// When a container was started last and when it ended after that, by the engine's clock, in milliseconds since
/// 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    pub started_ms: Option<u64>,
    pub finished_ms: Option<u64>,
}

/// What a container may use at most; zero: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub cpu: MilliCores,
    pub memory: Bytes,
}

impl Limits {
    /// The limits of a wanted container.
    #[must_use]
    pub fn of(spec: &ContainerSpec) -> Self {
        Self { cpu: spec.cpu, memory: spec.memory }
    }
}

/// Limits in force; none where the kernel below the engine cannot limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundLimits {
    pub cpu: Option<MilliCores>,
    pub memory: Option<Bytes>,
}

impl FoundLimits {
    /// They are as wanted, as far as they can be.
    #[must_use]
    pub fn are(self, wanted: Limits) -> bool {
        self.cpu.is_none_or(|cpu| cpu == wanted.cpu)
            && self.memory.is_none_or(|memory| memory == wanted.memory)
    }
}

impl From<Limits> for FoundLimits {
    fn from(limits: Limits) -> Self {
        Self { cpu: Some(limits.cpu), memory: Some(limits.memory) }
    }
}

/// What a found container does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundState {
    /// Made, never started.
    Created,
    Running,
    /// Somebody paused it: theirs to undo.
    Paused,
    /// Ended with this exit code, where the engine tells it.
    Exited(Option<i32>),
    /// On its way out, or starting again: to be looked at later.
    Changing,
    /// Cannot be started again.
    Dead,
}

impl FoundState {
    /// It has processes, or may have.
    #[must_use]
    pub fn is_up(self) -> bool {
        !matches!(self, Self::Created | Self::Exited(_) | Self::Dead)
    }
}

/// The network every container of ours is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSpec {
    /// Name of network and bridge.
    pub bridge: String,
    pub pool: Pool,
}

/// What the engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EngineVersion {
    pub version: String,
    pub api: String,
    pub store: ImageStore,
    /// Storage driver: `overlay2`, `vfs`, or a containerd snapshotter.
    pub driver: String,
    pub root_dir: PathBuf,
    /// Where containerd keeps images, if it does.
    pub content_dir: Option<PathBuf>,
    /// Memory limits of containers hold.
    pub memory_limit: bool,
}

impl EngineVersion {
    /// Which layers its store holds, exactly; a slow card takes seconds to list them.
    pub(crate) fn read_layers(&self) -> Result<Stored, LayersError> {
        match &self.content_dir {
            Some(root) => layers::read_content(root),
            None => layers::read_graph(&self.root_dir, &self.driver),
        }
    }
}

/// Which log lines to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogSelection {
    /// Go on until the container ends.
    pub follow: bool,
    /// Lines from the end to begin with; none: all.
    pub tail: Option<u32>,
    /// Without what was logged before, in seconds since 1970.
    pub since_s: Option<u64>,
    /// Each line begins with its time and a blank.
    pub timestamps: bool,
}

/// Where changes are signalled.
#[derive(Debug)]
pub struct Changes {
    /// Our containers. A signal that has not been looked at yet covers later changes.
    pub containers: mpsc::Sender<()>,
    /// Counts changes of images and of what holds their layers, whosever they are.
    pub images: watch::Sender<u64>,
}

impl Changes {
    pub(crate) fn all(&self) {
        self.container();
        self.image();
    }

    /// False when nobody listens any more.
    pub(crate) fn container(&self) -> bool {
        self.containers.try_send(()).is_ok() || !self.containers.is_closed()
    }

    pub(crate) fn image(&self) {
        self.images.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Why a verb failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// No answer at all: the daemon is down or being restarted.
    #[error("docker does not answer at {socket}: {reason}; is the docker service running?")]
    Unreachable { socket: String, reason: String },
    /// The daemon answered no.
    #[error("docker refuses to {verb} {object}: {reason} (status {status})")]
    Refused { verb: &'static str, object: String, status: u16, reason: String },
    /// A lower limit would end the container instead of limiting it.
    #[error(
        "the memory limit of container {id} stays: it uses {used}, over the wanted {wanted}; stop the job or give it more"
    )]
    MemoryInUse { id: String, used: Bytes, wanted: Bytes },
    /// The network cannot be replaced while others use it.
    #[error(
        "docker network {name} has the subnet {found}, not {wanted}, and {containers} container(s) use it; stop them first"
    )]
    NetworkInUse { name: String, found: String, wanted: String, containers: usize },
    /// The container was made for a network that is gone, and cannot be started any more.
    #[error("container {id} was made for a network that is gone; it is made anew")]
    NetworkGone { id: String },
    /// Docker lost track of what it started.
    #[error(
        "docker does not know that container {id} runs, and its {processes} process(es) stay: {reason}; end them as root, or restart the node"
    )]
    Forgotten { id: String, processes: usize, reason: String },
    /// A network of that name that is not ours.
    #[error(
        "docker network {name} exists and is not ours (label edgeloom.node={node} is missing); remove it or set another `bridge`"
    )]
    ForeignNetwork { name: String, node: NodeId },
    /// A pull that brought no byte for too long.
    #[error("pull of {image} stalled: next to nothing arrived for {seconds} s")]
    Stalled { image: String, seconds: u64 },
    /// A pull of what nobody needs yet.
    #[error("pull of {image} gave way to one that a task waits for")]
    GaveWay { image: String },
    /// A pull that failed, as the daemon says in its stream.
    #[error("pull of {image} failed: {reason}")]
    Pull { image: String, reason: String },
    /// A port that the agent listens on itself.
    #[error("port {port} of the host is the agent's own; choose another")]
    OwnPort { port: u16 },
    /// A folder that containers may not have, or that is not there.
    #[error("containers cannot have folder {folder} of the host: {reason}")]
    HostFolder { folder: String, reason: String },
    #[error(transparent)]
    Secrets(#[from] SecretFilesError),
}

/// What a network lacks that serves all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFlaw {
    #[error(
        "docker network {name} was made before docker 28, which drops what other nodes send to it; \
         {containers} container(s) use it: stop them once and it is made anew"
    )]
    NoDirectRouting { name: String, containers: usize },
}

/// The verbs.
pub trait ContainerEngine: Send + Sync + 'static {
    /// Makes our network as wanted; one of ours that is not is replaced if nothing that runs uses it. The
    /// answer is what it lacks while something does.
    fn ensure_network(
        &self,
        network: &NetworkSpec,
    ) -> impl Future<Output = Result<Option<NetworkFlaw>, EngineError>> + Send;
    /// Removes our network; gone already is well.
    fn remove_network(&self, name: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// All containers of the owner, running or not.
    fn list(&self) -> impl Future<Output = Result<Vec<FoundContainer>, EngineError>> + Send;
    /// Whether a container can be made from the image without a pull.
    fn image_present(&self, image: &ImageRef) -> impl Future<Output = Result<bool, EngineError>> + Send;
    /// Fetches the image by digest, as whoever the login says; `progress` shows how far it is.
    fn pull(
        &self,
        image: &ImageRef,
        login: Option<&Login>,
        progress: &watch::Sender<PullProgress>,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Makes a container on `bridge` and returns its id. The folder of its secrets, if it has any, is there.
    fn create(
        &self,
        spec: &ContainerSpec,
        bridge: &str,
    ) -> impl Future<Output = Result<String, EngineError>> + Send;
    /// Starts it; running already is well. One whose network was made anew is [`EngineError::NetworkGone`].
    fn start(&self, id: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Starts a container that was found, unless it was started since: an engine may carry a start out long after
    /// whoever asked for it has died, and what runs to its end would run twice.
    fn resume(&self, found: &FoundContainer) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// The id of its first process; none if it does not run, or has none of its own.
    fn process(&self, id: &str) -> impl Future<Output = Result<Option<u32>, EngineError>> + Send;
    /// Stops it, with two seconds' grace; stopped or gone already is well.
    fn stop(&self, id: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Changes the limits of a container, running or not, in place. A memory limit is never set below what
    /// is used now: that is an error, the processor's limit being changed all the same.
    fn limit(&self, id: &str, limits: Limits) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Stops it, with two seconds' grace, and removes it; gone already is well.
    fn remove(&self, id: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Removes all volumes of the owner, which no container may use any more.
    fn remove_volumes(&self) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Sends log text until the end, or until the receiver is gone.
    fn logs(
        &self,
        id: &str,
        selection: LogSelection,
        text: mpsc::Sender<Vec<u8>>,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Signals every change, and one of each kind at the start; returns when the stream ends.
    fn events(&self, changes: Changes) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Asks for the version, settling on an API version anew.
    fn version(&self) -> impl Future<Output = Result<EngineVersion, EngineError>> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tasks_share_a_container_name() {
        let key = |job: &str, task: &str| TaskKey { job: job.parse().unwrap(), task: task.parse().unwrap() };
        assert_ne!(key("a-b", "c").container_name(), key("a", "b-c").container_name());
    }
}
