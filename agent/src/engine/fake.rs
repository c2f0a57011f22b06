//! A container engine that behaves, in memory: it keeps state, refuses what Docker refuses, and can be
//! told to fail, to stop answering, or to pull slowly. For the fast tests.

mod trials;

pub use trials::Script;

use super::{
    ContainerEngine, EngineError, EngineVersion, FoundContainer, FoundState, Limits, LogSelection,
    NetworkSpec, Owner, PullProgress, TaskKey,
};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef, Pool};
use edgeloom_common::units::{Bytes, MilliCores};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// The engine; clones share their state, as clients of one daemon do.
#[derive(Debug, Clone, Default)]
pub struct FakeEngine {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    network: Option<NetworkSpec>,
    containers: BTreeMap<String, FoundContainer>,
    images: BTreeSet<String>,
    /// Images that the pretended registry has.
    registry: BTreeSet<String>,
    starts: BTreeMap<TaskKey, u32>,
    next_id: u64,
    down: bool,
    failing_starts: u32,
    failing_removals: u32,
    removals: u32,
    changes_of_limits: u32,
    /// Of each running container.
    memory_used: Bytes,
    watchers: Vec<mpsc::Sender<()>>,
    trials: trials::State,
}

impl State {
    fn check_up(&self) -> Result<(), EngineError> {
        match self.down {
            true => Err(EngineError::Unreachable {
                socket: "fake".to_owned(),
                reason: "told to be down".to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn changed(&mut self) {
        self.watchers.retain(|watcher| !watcher.is_closed());
        for watcher in &self.watchers {
            let _ = watcher.try_send(());
        }
    }
}

fn refused(verb: &'static str, object: &str, status: u16, reason: &str) -> EngineError {
    EngineError::Refused { verb, object: object.to_owned(), status, reason: reason.to_owned() }
}

impl FakeEngine {
    /// An engine whose registry has `images`, by digest.
    #[must_use]
    pub fn with_registry(images: &[&str]) -> Self {
        let engine = Self::default();
        engine.state().registry = images.iter().map(ToString::to_string).collect();
        engine
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops answering, or answers again; following the events ends too.
    pub fn set_answering(&self, answering: bool) {
        let mut state = self.state();
        state.down = !answering;
        state.watchers.clear();
    }

    /// Lets the next `count` starts fail.
    pub fn fail_starts(&self, count: u32) {
        self.state().failing_starts = count;
    }

    /// Lets the next `count` removals fail.
    pub fn fail_removals(&self, count: u32) {
        self.state().failing_removals = count;
    }

    /// How often a removal was asked for.
    #[must_use]
    pub fn removals(&self) -> u32 {
        self.state().removals
    }

    /// Each running container uses so much memory from now on.
    pub fn use_memory(&self, used: Bytes) {
        self.state().memory_used = used;
    }

    /// How often a change of limits was asked for.
    #[must_use]
    pub fn changes_of_limits(&self) -> u32 {
        self.state().changes_of_limits
    }

    /// The image is there without a pull, as after `docker load`.
    pub fn load(&self, digest: &str) {
        self.state().images.insert(digest.to_owned());
    }

    /// The container of a task ends by itself.
    pub fn end(&self, key: &TaskKey, code: i32) {
        let mut state = self.state();
        for container in state.containers.values_mut().filter(|container| container.key == *key) {
            container.state = FoundState::Exited(Some(code));
        }
        state.changed();
    }

    /// How often the task's container was started.
    #[must_use]
    pub fn starts(&self, key: &TaskKey) -> u32 {
        self.state().starts.get(key).copied().unwrap_or(0)
    }

    /// Tasks whose container runs, with its spec hash.
    #[must_use]
    pub fn running(&self) -> BTreeMap<TaskKey, String> {
        let state = self.state();
        let running = state.containers.values().filter(|container| container.state == FoundState::Running);
        running.map(|container| (container.key.clone(), container.spec_hash.clone())).collect()
    }
}

impl ContainerEngine for FakeEngine {
    async fn ensure_network(&self, network: &NetworkSpec) -> Result<(), EngineError> {
        let mut state = self.state();
        state.check_up()?;
        let containers = state.containers.len();
        match &state.network {
            Some(found) if found.pool != network.pool && containers > 0 => Err(EngineError::NetworkInUse {
                name: network.bridge.clone(),
                found: found.pool.network.to_string(),
                wanted: network.pool.network.to_string(),
                containers,
            }),
            _ => {
                state.network = Some(network.clone());
                Ok(())
            }
        }
    }

    async fn remove_network(&self, _name: &str) -> Result<(), EngineError> {
        let mut state = self.state();
        state.check_up()?;
        state.network = None;
        Ok(())
    }

    async fn list(&self) -> Result<Vec<FoundContainer>, EngineError> {
        let state = self.state();
        state.check_up()?;
        Ok(state.containers.values().cloned().collect())
    }

    async fn image_present(&self, image: &ImageRef) -> Result<bool, EngineError> {
        let state = self.state();
        state.check_up()?;
        Ok(state.images.contains(&image.digest))
    }

    async fn pull(
        &self,
        image: &ImageRef,
        progress: &watch::Sender<PullProgress>,
    ) -> Result<(), EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        if !state.registry.contains(&image.digest) {
            return Err(EngineError::Pull {
                image: image.name.clone(),
                reason: "manifest unknown".to_owned(),
            });
        }
        progress.send_modify(|progress| progress.observe("layer", "Downloading", Some(100), Some(100)));
        state.images.insert(image.digest.clone());
        Ok(())
    }

    async fn create(&self, spec: &ContainerSpec, bridge: &str) -> Result<String, EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        let key = TaskKey::of(spec);
        if !state.images.contains(&spec.image.digest) {
            return Err(refused("create container", &key.container_name(), 404, "no such image"));
        }
        if state.network.as_ref().is_none_or(|network| network.bridge != bridge) {
            return Err(refused("create container", &key.container_name(), 404, "no such network"));
        }
        if state.containers.values().any(|container| container.key == key) {
            return Err(refused("create container", &key.container_name(), 409, "the name is in use"));
        }
        state.next_id += 1;
        let id = format!("fake{:012}", state.next_id);
        let container = FoundContainer {
            id: id.clone(),
            key,
            spec_hash: spec.spec_hash.clone(),
            address: Some(spec.address),
            limits: Limits::of(spec).into(),
            state: FoundState::Created,
        };
        state.containers.insert(id.clone(), container);
        Ok(id)
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        if state.failing_starts > 0 {
            state.failing_starts -= 1;
            return Err(refused("start container", id, 500, "told to fail"));
        }
        let Some(container) = state.containers.get(id).cloned() else {
            return Err(refused("start container", id, 404, "no such container"));
        };
        let holds =
            |other: &FoundContainer| other.state == FoundState::Running && other.address == container.address;
        if state.containers.values().any(|other| other.id != id && holds(other)) {
            return Err(refused("start container", id, 403, "address already in use"));
        }
        if container.state != FoundState::Running {
            *state.starts.entry(container.key.clone()).or_default() += 1;
            state
                .containers
                .insert(id.to_owned(), FoundContainer { state: FoundState::Running, ..container });
            state.changed();
        }
        Ok(())
    }

    async fn limit(&self, id: &str, limits: Limits) -> Result<(), EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        state.changes_of_limits += 1;
        let used = state.memory_used;
        let Some(container) = state.containers.get_mut(id) else { return Ok(()) };
        container.limits.cpu = Some(limits.cpu);
        if container.state == FoundState::Running && limits.memory < used {
            return Err(EngineError::MemoryInUse { id: id.to_owned(), used, wanted: limits.memory });
        }
        container.limits.memory = Some(limits.memory);
        state.changed();
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        tokio::task::yield_now().await;
        let mut state = self.state();
        state.check_up()?;
        state.removals += 1;
        if state.failing_removals > 0 {
            state.failing_removals -= 1;
            return Err(refused("remove container", id, 500, "told to fail"));
        }
        state.containers.remove(id);
        state.changed();
        Ok(())
    }

    async fn logs(
        &self,
        id: &str,
        selection: LogSelection,
        text: mpsc::Sender<Vec<u8>>,
    ) -> Result<(), EngineError> {
        self.state().check_up()?;
        if !self.state().containers.contains_key(id) {
            return Err(refused("read logs of", id, 404, "no such container"));
        }
        let lines = selection.tail.unwrap_or(3);
        for line in 0..lines {
            if text.send(format!("line {line}\n").into_bytes()).await.is_err() {
                return Ok(());
            }
        }
        if selection.follow {
            text.closed().await;
        }
        Ok(())
    }

    async fn events(&self, changed: mpsc::Sender<()>) -> Result<(), EngineError> {
        let (sender, mut receiver) = mpsc::channel(1);
        {
            let mut state = self.state();
            state.check_up()?;
            state.watchers.push(sender);
        }
        let _ = changed.try_send(());
        while receiver.recv().await.is_some() {
            let _ = changed.try_send(());
        }
        Ok(())
    }

    async fn version(&self) -> Result<EngineVersion, EngineError> {
        self.state().check_up()?;
        Ok(EngineVersion { version: "fake".to_owned(), api: "1.41".to_owned(), ..EngineVersion::default() })
    }
}

/// The digest of the one image that [`spec`] names.
pub const DIGEST: &str = "sha256:a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

/// A wanted container of job `j`; its address follows from the task's name.
#[must_use]
pub fn spec(task: &str, hash: &str) -> ContainerSpec {
    let last = task.bytes().fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    ContainerSpec {
        job: "j".parse().expect("a constant name"),
        task: task.parse().expect("tests name their tasks well"),
        spec_hash: hash.to_owned(),
        image: ImageRef {
            repository: "registry/app".to_owned(),
            digest: DIGEST.to_owned(),
            name: "app".to_owned(),
        },
        command: Vec::new(),
        environment: BTreeMap::new(),
        cpu: MilliCores(100),
        memory: Bytes(16 << 20),
        address: Ipv4Addr::new(10, 77, 1, last),
        hosts: BTreeMap::new(),
        stop_after_disconnect_s: None,
    }
}

/// A found container of job `j`.
#[must_use]
pub fn found(task: &str, hash: &str, state: FoundState) -> FoundContainer {
    let spec = spec(task, hash);
    FoundContainer {
        id: format!("id-{task}-{hash}"),
        key: TaskKey::of(&spec),
        limits: Limits::of(&spec).into(),
        spec_hash: spec.spec_hash,
        address: Some(spec.address),
        state,
    }
}

/// The owner in the fast tests.
#[must_use]
pub fn owner() -> Owner {
    Owner { cluster: "test".parse().expect("a constant name"), node: "n1".parse().expect("a constant name") }
}

/// A document for [`owner`] with these containers.
#[must_use]
pub fn document(generation: u64, containers: Vec<ContainerSpec>) -> DesiredState {
    let pool =
        Pool { network: Ipv4Addr::new(10, 77, 0, 0), prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let Owner { cluster, node } = owner();
    DesiredState { generation, containers, epoch: 1, ..DesiredState::empty(cluster, node, pool) }
}
