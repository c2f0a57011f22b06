//! Carries actions out beside the worker's loop and brings their ends back.

use super::NodeState;
use crate::contact::ContactFile;
use crate::counts::Counts;
use crate::engine::{
    ContainerEngine, EngineError, FoundContainer, FoundState, Hold, Limits, NetworkFlaw, NetworkSpec,
    PullProgress, TaskKey, Times,
};
use crate::network::{NetworkError, NetworkThread};
use crate::secrets::{SecretFiles, Values};
use crate::store::{DesiredFile, StateError};
use edgeloom_common::confidential::{Confidential, Login};
use edgeloom_common::desired::{ContainerSpec, DesiredState, ImageRef, Pool, Version};
use edgeloom_net::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Longer than that nobody waits for the id of a process, by which a container is followed: reports ask again.
const PROCESS_MAX: Duration = Duration::from_secs(2);

/// What to carry out.
#[derive(Debug)]
pub(super) enum Todo {
    /// A document, and the values beside it.
    Save(Arc<DesiredState>, Arc<Confidential>),
    EnsureNetwork(Pool),
    Apply(Arc<DesiredState>),
    /// List containers; the number tells how many actions had begun and ended before.
    List(u64),
    LookForImage(ImageRef),
    Pull(ImageRef, Option<Login>, watch::Sender<PullProgress>),
    Create(ContainerSpec, Values),
    Start(FoundContainer, Values),
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
    counts: Counts,
    network: NetworkThread,
    bridge: String,
    files: Files,
    running: JoinSet<Done>,
}

/// What is kept on disk, and in memory for containers.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) desired: DesiredFile,
    pub(super) contact: ContactFile,
    pub(super) secrets: SecretFiles,
}

impl<E: ContainerEngine> Actions<E> {
    pub(super) fn new(
        (engine, counts): (Arc<E>, Counts),
        network: NetworkThread,
        bridge: String,
        files: Files,
    ) -> Self {
        Self { engine, counts, network, bridge, files, running: JoinSet::new() }
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
            Todo::Save(document, confidential) => self.save(document, confidential),
            Todo::EnsureNetwork(pool) => drop(self.running.spawn(async move {
                let spec = NetworkSpec { bridge, pool: pool.clone() };
                Done::NetworkEnsured(pool, engine.ensure_network(&spec).await)
            })),
            Todo::Apply(document) => drop(self.running.spawn(async move {
                let version = document.version();
                Done::Applied(version, network.apply(document).await)
            })),
            Todo::List(turns) => {
                drop(self.running.spawn(async move { Done::Listed(turns, engine.list().await) }));
            }
            Todo::LookForImage(image) => drop(self.running.spawn(async move {
                let present = engine.image_present(&image).await;
                Done::ImageLooked(image, present)
            })),
            Todo::Pull(image, login, progress) => drop(self.running.spawn(async move {
                let pulled = tokio::select! {
                    pulled = engine.pull(&image, login.as_ref(), &progress) => pulled,
                    // Nobody waits for it any more.
                    () = progress.closed() => Err(EngineError::GaveWay { image: image.name.clone() }),
                };
                Done::Pulled(image, pulled)
            })),
            Todo::Create(spec, values) => {
                let files = self.files.secrets.clone();
                let creating = create(Arc::clone(&engine), (spec, bridge), (files, values));
                self.running.spawn(followed(engine, self.counts.clone(), creating));
            }
            Todo::Start(container, values) => {
                let files = self.files.secrets.clone();
                let starting = start(Arc::clone(&engine), container, (files, values));
                self.running.spawn(followed(engine, self.counts.clone(), starting));
            }
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
            Todo::Remove(container) => {
                let files = self.files.secrets.clone();
                self.running.spawn(async move {
                    let removed = engine.remove(&container.id).await;
                    if removed.is_ok() {
                        files.remove(&container.key);
                    }
                    Done::Removed(container, removed)
                });
            }
        }
    }

    /// Syncing a file takes long on a flash card: not on the loop's thread.
    fn save(&mut self, document: Arc<DesiredState>, confidential: Arc<Confidential>) {
        let file = self.files.desired.clone();
        self.running
            .spawn_blocking(move || Done::Saved(document.version(), file.save(&document, &confidential)));
    }
}

/// Writing to memory waits for nothing, so it may happen on the loop's thread.
type Secrets = (SecretFiles, Values);

async fn create<E: ContainerEngine>(
    engine: Arc<E>,
    (spec, bridge): (ContainerSpec, String),
    (files, values): Secrets,
) -> Done {
    let key = TaskKey::of(&spec);
    // Docker makes no container whose folder is not there.
    let created = match files.write(&key, &values) {
        Ok(()) => engine.create(&spec, &bridge).await,
        Err(error) => Err(error.into()),
    };
    match created {
        Err(error) => Done::Started(key, None, Err(error)),
        Ok(id) => {
            let limits = Limits::of(&spec).into();
            let (address, state) = (Some(spec.address), FoundState::Created);
            let (spec_hash, times) = (spec.spec_hash, Times::default());
            let container =
                FoundContainer { id, key, spec_hash, address, limits, state, times, hold: Hold::Free };
            let started = engine.start(&container.id).await;
            started_as(container, started)
        }
    }
}

/// One that was found. The files are written anew each time: after a reboot they are gone, and a value may be another
/// since.
async fn start<E: ContainerEngine>(
    engine: Arc<E>,
    container: FoundContainer,
    (files, values): Secrets,
) -> Done {
    let started = match files.write(&container.key, &values) {
        Ok(()) => engine.resume(&container).await,
        Err(error) => Err(error.into()),
    };
    started_as(container, started)
}

/// When that was, the next list tells.
fn started_as(container: FoundContainer, started: Result<(), EngineError>) -> Done {
    let (state, times) = match started {
        Ok(()) => (FoundState::Running, Times::default()),
        Err(_) => (container.state, container.times),
    };
    Done::Started(container.key.clone(), Some(FoundContainer { state, times, ..container }), started)
}

/// What has been started is followed at once: one that lives for a moment is not seen by any report.
async fn followed<E: ContainerEngine>(
    engine: Arc<E>,
    counts: Counts,
    starting: impl Future<Output = Done>,
) -> Done {
    let done = starting.await;
    if let Done::Started(key, Some(container), Ok(())) = &done
        && counts.awaits_ends()
        && let Ok(Ok(Some(process))) = timeout(PROCESS_MAX, engine.process(&container.id)).await
    {
        counts.follow(key, &container.id, process);
    }
    done
}
