//! [`Cluster`]: the handle through which everyone else speaks to the owner of the state.
//!
//! The owner has a thread of its own, since it waits for the disk before it answers; commands reach it
//! through a bounded queue. Registries are asked in the caller's task, so a slow one holds up nobody else.

mod confidential;
mod drain;
mod prefetch;
mod usage;
mod volumes;

use crate::copies::CopyKeys;
use crate::error::{ForgetError, StartError, StopError, SubmitError};
use crate::events::Kind;
use crate::follow::FollowLoad;
use crate::holding::in_force;
use crate::nodes::NodeMessage;
use crate::outbox::{Outbox, Publish};
use crate::owner::{Order, Owner, Ownership, Planned};
use crate::profiler::{Kept, Run, SurveyRequest, Trial};
use crate::state::State;
use edgeloom_common::desired::Pool;
use edgeloom_common::ids::{ClusterId, JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::measure::{Measured, ProfileView};
use edgeloom_common::price::Prices;
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::view::{EventView, Explanation, JobView, NodeView, StrayView};
use edgeloom_registry::Registry;
use edgeloom_sched::batch::Packing;
use edgeloom_sched::scoring::Scoring;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};

/// Commands that wait for the owner.
const COMMAND_QUEUE: usize = 1024;
/// Between looks at deadlines and silence.
const TICK: Duration = Duration::from_secs(1);

/// What the cluster is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    pub cluster: ClusterId,
    pub state_dir: PathBuf,
    /// The default profile.
    pub profile: String,
    /// What profiles that score nodes go by.
    pub scoring: Scoring,
    pub batching: Batching,
    pub pool: Pool,
    pub registries: Registries,
    /// Lets the number of nodes that take tasks follow the load.
    pub follow: Option<FollowLoad>,
    /// For the copies of jobs that nodes keep.
    pub copy_keys: CopyKeys,
    /// The file of the key that seals secrets and logins; made at the first start.
    pub secrets_key: PathBuf,
    /// What use costs; none: nothing is charged.
    pub prices: Option<Prices>,
}

/// How batches are decided on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batching {
    /// What the default profile packs them for.
    pub packing: Packing,
    /// For so long profiles that gather requests do so.
    pub heartbeat: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self { packing: Packing::default(), heartbeat: Duration::from_secs(5) }
    }
}

/// Which registries there are, besides those with a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registries {
    /// Spoken to in plain HTTP (host:port).
    pub insecure: Vec<String>,
    /// Watched as a whole, as all that are spoken to in plain HTTP are.
    pub watched: Vec<RegistryHost>,
    /// Between two questions about one tag.
    pub period: Duration,
}

impl Default for Registries {
    fn default() -> Self {
        let (insecure, watched) = Default::default();
        Self { insecure, watched, period: edgeloom_registry::PERIOD_DEFAULT }
    }
}

/// The owner went around: it is not stuck.
#[derive(Debug, Clone, Default)]
pub struct Beat {
    pub count: u64,
    pub jobs: usize,
    pub nodes: usize,
    pub nodes_online: usize,
}

type Command = Box<dyn FnOnce(&mut Owner) + Send>;

/// A handle; clones speak to the same owner. The owner ends with its last handle.
#[derive(Debug, Clone)]
pub struct Cluster {
    commands: mpsc::Sender<Command>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) registries: Arc<Registries>,
    beats: watch::Receiver<Beat>,
    state_dir: Arc<Path>,
}

impl Cluster {
    /// Opens the state and starts the owner; documents go out through `outgoing`.
    pub fn start(settings: Settings, outgoing: mpsc::Sender<Publish>) -> Result<Self, StartError> {
        let profile = edgeloom_sched::profile(&settings.profile).ok_or_else(|| StartError::Profile {
            profile: settings.profile.clone(),
            known: edgeloom_sched::profile_names().join(", "),
        })?;
        let state = State::open(&settings.state_dir)?;
        let registries = settings.registries;
        let registry = Arc::new(Registry::open(edgeloom_registry::Settings {
            insecure: registries.insecure.clone(),
            cache: Some(settings.state_dir.join("registry")),
        })?);
        let key = state.model.vault.key(&settings.secrets_key)?;
        let Settings { cluster, scoring, batching, pool, follow, copy_keys: keys, prices, .. } = settings;
        let ownership = Ownership { cluster, pool, profile, scoring, batching, follow, keys, key, prices };
        let owner = Owner::new(ownership, state, Outbox::new(outgoing), now_ms());
        let (commands, received) = mpsc::channel(COMMAND_QUEUE);
        let (beat, beats) = watch::channel(Beat::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(StartError::Thread)?;
        std::thread::Builder::new()
            .name("cluster".to_owned())
            .spawn(move || runtime.block_on(run(owner, received, beat)))
            .map_err(StartError::Thread)?;
        let (registries, state_dir) = (Arc::new(registries), settings.state_dir.into());
        Ok(Self { commands, registry, registries, beats, state_dir })
    }

    /// Where the journal is.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// The owner's clock, in milliseconds since 1970: the wall clock at the start, steady from then on.
    pub async fn now_ms(&self) -> Option<u64> {
        self.ask(|owner| owner.now_ms).await
    }

    /// A beat about once a second, from the owner's own loop, for whoever watches over it.
    #[must_use]
    pub fn beats(&self) -> watch::Receiver<Beat> {
        self.beats.clone()
    }

    /// Accepts a job: committed, or waiting for room.
    pub async fn submit(&self, job: Job) -> Result<JobView, SubmitError> {
        let (order, notes) = self.order(job).await?;
        let submitted = self.ask(move |owner| owner.submit(order)).await;
        let mut view = submitted.unwrap_or(Err(SubmitError::Unavailable))?;
        view.notes.extend(notes);
        Ok(view)
    }

    /// What [`submit`](Self::submit) would decide; changes nothing.
    pub async fn plan(&self, job: Job) -> Result<JobView, SubmitError> {
        let (order, notes) = self.order(job).await?;
        let planned = self.ask(move |owner| owner.plan(order)).await;
        let Planned { mut view, question } = planned.unwrap_or(Err(SubmitError::Unavailable))?;
        view.notes.extend(notes);
        if let Some(question) = question {
            view.explanation = tokio::task::spawn_blocking(|| question.answer()).await.ok();
        }
        Ok(view)
    }

    /// Takes a job down; it is listed as stopping until nothing is left of it.
    pub async fn stop(&self, name: JobName) -> Result<JobView, StopError> {
        let ended = StopError::Unavailable(name.clone());
        self.ask(move |owner| owner.stop(&name)).await.unwrap_or(Err(ended))
    }

    /// Every job.
    pub async fn jobs(&self) -> Vec<JobView> {
        let all = |owner: &mut Owner| owner.model().jobs.values().map(|record| owner.view(record)).collect();
        self.ask(all).await.unwrap_or_default()
    }

    /// One job.
    pub async fn job(&self, name: &JobName) -> Option<JobView> {
        let name = name.clone();
        self.ask(move |owner| owner.job(&name)).await?
    }

    /// Why a job is where it is.
    pub async fn explain(&self, name: &JobName) -> Option<Explanation> {
        let name = name.clone();
        let question = self.ask(move |owner| owner.question(&name)).await??;
        tokio::task::spawn_blocking(|| question.answer()).await.ok()
    }

    /// Events with a number above `after`, of one job or of all.
    pub async fn events(&self, after: u64, job: Option<JobName>) -> Vec<EventView> {
        self.ask(move |owner| owner.events.after(after, job.as_ref())).await.unwrap_or_default()
    }

    /// Every node heard of.
    pub async fn nodes(&self) -> Vec<NodeView> {
        let all = |owner: &mut Owner| {
            let table = owner.nodes.table.iter();
            table.map(|(name, known)| owner.node(name, known)).collect()
        };
        self.ask(all).await.unwrap_or_default()
    }

    /// Lets go of a node that will not come back, and of the addresses that it may still have. Says what it may
    /// still run.
    pub async fn forget(&self, node: NodeId) -> Result<Vec<StrayView>, ForgetError> {
        let ended = ForgetError::Unavailable(node.clone());
        self.ask(move |owner| owner.forget(&node)).await.unwrap_or(Err(ended))
    }

    /// Takes in a node's message.
    pub async fn observe(&self, node: NodeId, message: NodeMessage) {
        let command: Command = Box::new(move |owner| owner.observe(&node, message));
        // Without an owner there is nobody to tell; the daemon's health says so.
        let _ = self.commands.send(command).await;
    }

    /// Notes for people what was refused in a node's name; changes nothing.
    pub async fn refused(&self, reason: String) {
        let command: Command =
            Box::new(move |owner| owner.events.note(owner.now_ms, None, Kind::Refused, reason));
        let _ = self.commands.send(command).await;
    }

    /// Where a task's container is.
    pub async fn task_node(&self, job: &JobName, task: &TaskName) -> Option<NodeId> {
        let (job, task) = (job.clone(), task.clone());
        let find = move |owner: &mut Owner| {
            let record = owner.model().jobs.get(&job)?;
            let ran = record.ended.get(&task).map(|end| end.node.clone());
            ran.or_else(|| in_force(owner.model(), record)?.placement.get(&task).cloned())
        };
        self.ask(find).await?
    }

    /// The owner answers.
    pub async fn ready(&self) -> bool {
        self.ask(|_| true).await.unwrap_or(false)
    }

    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Owner) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let command: Command = Box::new(move |owner| {
            // A caller that has gone does not need the answer.
            let _ = answer.send(question(owner));
        });
        self.commands.send(command).await.ok()?;
        answered.await.ok()
    }

    /// What there is to measure of a job, which may run already.
    pub async fn survey(&self, job: Job, request: SurveyRequest) -> Result<Vec<Trial>, SubmitError> {
        let (order, _) = self.resolve(job).await?;
        self.ask(move |owner| owner.survey(&order, request)).await.ok_or(SubmitError::Unavailable)
    }

    /// Keeps what a run measured; none where it cannot be kept.
    pub async fn keep_profile(&self, run: Run, measured: Measured) -> Option<ProfileView> {
        self.ask(move |owner| owner.keep_profile(&run, &measured)).await?
    }

    /// Every kept measurement.
    pub async fn profiles(&self) -> Vec<ProfileView> {
        let all = |owner: &mut Owner| owner.model().profiles.all().map(Kept::view).collect();
        self.ask(all).await.unwrap_or_default()
    }

    /// Checks what needs no state and resolves every image; with what the user should know of them.
    async fn order(&self, job: Job) -> Result<(Order, Vec<String>), SubmitError> {
        if let Some(profile) = &job.profile
            && edgeloom_sched::profile(profile).is_none()
        {
            let known = edgeloom_sched::profile_names().join(", ");
            return Err(SubmitError::ProfileUnknown { profile: profile.clone(), known });
        }
        let name = job.name.clone();
        if self.job(&name).await.is_some() {
            return Err(SubmitError::Exists(name));
        }
        self.resolve(job).await
    }
}

async fn run(mut owner: Owner, mut received: mpsc::Receiver<Command>, beat: watch::Sender<Beat>) {
    let mut tick = tokio::time::interval(TICK);
    // Wall-clock time at the start, then the steady clock: a clock that is set must not silence nodes.
    let (started_ms, started) = (now_ms(), Instant::now());
    let steady_ms =
        || started_ms.saturating_add(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    loop {
        tokio::select! {
            command = received.recv() => match command {
                Some(command) => {
                    owner.now_ms = steady_ms();
                    command(&mut owner);
                }
                None => break,
            },
            _ = tick.tick() => {
                owner.now_ms = steady_ms();
                owner.tick();
                beat.send_modify(|beat| owner.beat(beat));
            }
        }
    }
    if let Err(error) = owner.keep_open() {
        tracing::error!(%error, "what containers used since the last time is not kept");
    }
    owner.state.write_store();
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
