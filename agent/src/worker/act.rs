//! Carries actions out beside the worker's loop and brings their ends back.

use super::NodeState;
use crate::contact::ContactFile;
use crate::engine::{
    ContainerEngine, EngineError, FoundContainer, FoundState, Limits, NetworkFlaw, NetworkSpec, PullProgress,
    TaskKey,
};
use crate::network::{NetworkError, NetworkThread};
use crate::store::{DesiredFile, StateError};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef, Pool, Version};
use edgeloom_net::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What to carry out.
#[derive(Debug)]
pub(super) enum Todo {
    Save(Arc<DesiredState>),
    EnsureNetwork(Pool),
    Apply(Arc<DesiredState>),
    /// List containers; the number tells how many actions had begun before.
    List(u64),
    LookForImage(ImageRef),
    Pull(ImageRef, watch::Sender<PullProgress>),
    Create(ContainerSpec),
    Start(FoundContainer),
    Limit(FoundContainer, Limits),
    Stop(FoundContainer),
    Remove(FoundContainer),
    /// Keep since when nothing was heard of the controller; none: there is a session.
    KeepContact(Option<Duration>),
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Done {
    Saved(Version, Result<(), StateError>),
    NetworkEnsured(Pool, Result<Option<NetworkFlaw>, EngineError>),
    Applied(Version, Result<Vec<Problem>, NetworkError>),
    Listed(u64, Result<Vec<FoundContainer>, EngineError>),
    ImageLooked(ImageRef, Result<bool, EngineError>),
    Pulled(ImageRef, Result<(), EngineError>),
    /// A container was made (unless none is given) and started (unless there is an error).
    Started(TaskKey, Option<FoundContainer>, Result<(), EngineError>),
    /// With the limits that it was to have.
    Limited(FoundContainer, Result<(), EngineError>),
    Stopped(TaskKey, Result<(), EngineError>),
    Removed(FoundContainer, Result<(), EngineError>),
    ContactKept(Result<(), StateError>),
}

/// The actions on their way.
#[derive(Debug)]
pub(super) struct Actions<E> {
    engine: Arc<E>,
    network: NetworkThread,
    bridge: String,
    files: Files,
    running: JoinSet<Done>,
}

/// What is kept on disk.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) desired: DesiredFile,
    pub(super) contact: ContactFile,
}

impl<E: ContainerEngine> Actions<E> {
    pub(super) fn new(engine: Arc<E>, network: NetworkThread, bridge: String, files: Files) -> Self {
        Self { engine, network, bridge, files, running: JoinSet::new() }
    }

    /// Begins whatever can begin now.
    pub(super) fn advance(&mut self, state: &mut NodeState) {
        for todo in state.next_actions(Instant::now()) {
            self.begin(todo);
        }
    }

    /// The next action's end; waits for ever while there is none. A panic inside an action is the
    /// worker's panic.
    pub(super) async fn next(&mut self) -> Done {
        match self.running.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    fn begin(&mut self, todo: Todo) {
        let engine = Arc::clone(&self.engine);
        let network = self.network.clone();
        let bridge = self.bridge.clone();
        match todo {
            Todo::Save(document) => self.save(document),
            Todo::EnsureNetwork(pool) => drop(self.running.spawn(async move {
                let spec = NetworkSpec { bridge, pool: pool.clone() };
                Done::NetworkEnsured(pool, engine.ensure_network(&spec).await)
            })),
            Todo::Apply(document) => drop(self.running.spawn(async move {
                let version = document.version();
                Done::Applied(version, network.apply(document).await)
            })),
            Todo::List(begun) => {
                drop(self.running.spawn(async move { Done::Listed(begun, engine.list().await) }));
            }
            Todo::LookForImage(image) => drop(self.running.spawn(async move {
                let present = engine.image_present(&image).await;
                Done::ImageLooked(image, present)
            })),
            Todo::Pull(image, progress) => drop(self.running.spawn(async move {
                let pulled = engine.pull(&image, &progress).await;
                Done::Pulled(image, pulled)
            })),
            Todo::Create(spec) => drop(self.running.spawn(create(engine, spec, bridge))),
            Todo::Start(container) => drop(self.running.spawn(start(engine, container))),
            Todo::Limit(container, limits) => drop(self.running.spawn(async move {
                let limited = engine.limit(&container.id, limits).await;
                Done::Limited(FoundContainer { limits: limits.into(), ..container }, limited)
            })),
            Todo::Stop(container) => drop(self.running.spawn(async move {
                let stopped = engine.stop(&container.id).await;
                Done::Stopped(container.key, stopped)
            })),
            Todo::KeepContact(silence) => {
                let file = self.files.contact.clone();
                self.running.spawn_blocking(move || Done::ContactKept(file.save(silence)));
            }
            Todo::Remove(container) => drop(self.running.spawn(async move {
                let removed = engine.remove(&container.id).await;
                Done::Removed(container, removed)
            })),
        }
    }

    /// Syncing a file takes long on a flash card: not on the loop's thread.
    fn save(&mut self, document: Arc<DesiredState>) {
        let file = self.files.desired.clone();
        self.running.spawn_blocking(move || Done::Saved(document.version(), file.save(&document)));
    }
}

async fn create<E: ContainerEngine>(engine: Arc<E>, spec: ContainerSpec, bridge: String) -> Done {
    let key = TaskKey::of(&spec);
    match engine.create(&spec, &bridge).await {
        Err(error) => Done::Started(key, None, Err(error)),
        Ok(id) => {
            let limits = Limits::of(&spec).into();
            let (address, state) = (Some(spec.address), FoundState::Created);
            let container = FoundContainer { id, key, spec_hash: spec.spec_hash, address, limits, state };
            start(engine, container).await
        }
    }
}

async fn start<E: ContainerEngine>(engine: Arc<E>, container: FoundContainer) -> Done {
    let started = engine.start(&container.id).await;
    let state = if started.is_ok() { FoundState::Running } else { container.state };
    Done::Started(container.key.clone(), Some(FoundContainer { state, ..container }), started)
}
