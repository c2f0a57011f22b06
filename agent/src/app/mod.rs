//! Starts and ends the daemon: every task is started here, in one set, and joined here.
//!
//! A task that ends before it was told to ends the daemon (the service manager starts it again): half
//! a daemon is worse than none. Being told to end leaves containers and kernel state as they are.

mod links;
mod report;
mod route;
mod tasks;
mod watch;

use crate::code;
use crate::collect::{self, Collector};
use crate::config::Config;
use crate::counts;
use crate::join::{self, Live};
use crate::layers::{Exchange, Layers};
use crate::node::{Node, OpenError};
use crate::session::{self, Credentials, SessionSettings};
use crate::store::{self, Lock, StateError};
use crate::wire::{Down, Up};
use crate::worker::Worker;
use edgeloom_notify::Service;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, mpsc, watch as latest};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Messages to the controller under way: the session takes them at once, so a burst of events at most.
const UP_MESSAGES: usize = 32;
/// Messages from the session and signals to the worker.
const DOWN_MESSAGES: usize = 16;
/// Interfaces that lost their carrier and are not looked at yet.
const LOST_CARRIERS: usize = 16;
/// Time for the farewell to the controller and the last replies.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why the daemon ended, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(
        "this machine is no node yet, and agent.toml names no certificates in [controller]; join with `edgeloom-agent join CONTROLLER TOKEN` (`edgeloom token create` makes the token)"
    )]
    NotJoined,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("the {task} task ended unexpectedly")]
    Ended { task: &'static str },
    #[error("a task panicked: {0}")]
    Panicked(tokio::task::JoinError),
}

/// All tasks; each gives its name when it ends.
pub(crate) type Tasks = JoinSet<&'static str>;

/// Runs the daemon until a signal ends it.
///
/// # Errors
/// When it could not start, or a task ended by itself.
pub async fn run(config: Config) -> Result<(), AppError> {
    let session = session_settings(&config)?;
    let lock = store::lock(&config.state_dir).map_err(OpenError::from)?;
    let node = Node::open(config)?;
    let layers = open_layers(&node, session.as_ref()).await;
    let mut terminate = signal(SignalKind::terminate()).map_err(AppError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(AppError::Signals)?;
    let stop = CancellationToken::new();
    let service = Service::from_environment();
    let worker = WorkerSettings { lock: &lock, service: service.clone(), layers };
    let mut tasks = start(&node, worker, session, &stop)?;
    let outcome = tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        ended = tasks.join_next() => Err(match ended {
            Some(Ok(task)) => AppError::Ended { task },
            Some(Err(error)) => AppError::Panicked(error),
            None => AppError::Ended { task: "last" },
        }),
    };
    service.stopping();
    stop.cancel();
    let joined = tokio::time::timeout(FAREWELL, async { while tasks.join_next().await.is_some() {} }).await;
    tracing::info!(tasks_left = tasks.len(), in_time = joined.is_ok(), "ended; containers and routes stay");
    outcome
}

/// What the worker needs besides the node.
struct WorkerSettings<'a> {
    lock: &'a Lock,
    service: Service,
    layers: Option<Layers>,
}

/// Docker pulls through them from now on. Without them it pulls all the same.
async fn open_layers(node: &Node, session: Option<&SessionSettings>) -> Option<Layers> {
    let live = session.and_then(|session| match &session.credentials {
        Credentials::Joined(live) => Some(live),
        Credentials::Files(_) => None,
    });
    let opened = Layers::open(&node.config, live).await;
    let opened = opened.unwrap_or_else(|error| {
        tracing::error!(%error, "image layers are not kept");
        None
    });
    if let Some(opened) = &opened {
        node.engine.pull_through(opened.proxy());
    }
    opened
}

fn start(
    node: &Node,
    worker: WorkerSettings<'_>,
    session: Option<SessionSettings>,
    stop: &CancellationToken,
) -> Result<Tasks, AppError> {
    let (up, up_inbox) = mpsc::channel::<Up>(UP_MESSAGES);
    let (down, down_inbox) = mpsc::channel(DOWN_MESSAGES);
    let (commands, command_inbox) = mpsc::channel(DOWN_MESSAGES);
    // Counts connections: whoever publishes by exception says everything again when it changes.
    let (connections, connected) = latest::channel(0_u64);
    let mut settings = node.worker_settings(worker.lock)?;
    let (counts, ends) = counts::open();
    settings.counts = counts.clone();
    settings.exchange = worker.layers.as_ref().map(Layers::exchange);
    let pace = settings.exchange.as_ref().map(Exchange::pace);
    let layers = worker.layers;
    let worker = Worker::new(settings, up.clone()).watched_by(worker.service);
    let Config { state_dir, images, .. } = &*node.config;
    let collector = Collector::new(collect::Settings::new(node.engine.clone(), state_dir.clone(), *images));
    let in_force = worker.in_force();
    let mut tasks = JoinSet::new();
    let span = |task: &'static str| tracing::info_span!("task", task, node = %node.config.node);

    let working = worker.run(command_inbox, stop.clone());
    tasks.spawn(async move { named("worker", working).await }.instrument(span("worker")));
    let renewing = session.as_ref().and_then(|session| match &session.credentials {
        Credentials::Joined(live) => Some(join::renew(Arc::clone(live), session.host.clone())),
        Credentials::Files(_) => None,
    });
    let (changed, changes) = latest::channel(0_u64);
    let talking = talk(session, up_inbox, down, changes.clone());
    tasks.spawn(async move { named("session", talking).await }.instrument(span("session")));
    let routing = route::run(
        node.clone(),
        down_inbox,
        route::Outlets { commands: commands.clone(), up: up.clone(), connections },
    );
    let mut spawn = |task: &'static str, future: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let stop = stop.clone();
        let body = async move {
            stop.run_until_cancelled(future).await;
            task
        };
        tasks.spawn(body.instrument(span(task)));
    };
    if let Some(renewing) = renewing {
        spawn("renewal", Box::pin(renewing));
    }
    if let Some(layers) = layers {
        spawn("layers", Box::pin(layers.serve()));
    }
    spawn("route", Box::pin(routing));
    let (images, images_changed) = latest::channel(0_u64);
    spawn("images", Box::pin(collector.run(in_force, images_changed.clone(), commands.clone())));
    let (containers, containers_changed) = latest::channel(0_u64);
    let changes_of = watch::Counts { images, containers };
    spawn("engine events", Box::pin(watch::engine(node.engine.clone(), commands.clone(), changes_of)));
    let lost = broadcast::Sender::new(LOST_CARRIERS);
    let hearers = watch::Hearers { lost: lost.clone(), changed };
    spawn("kernel events", Box::pin(watch::kernel(commands, hearers)));
    spawn("report", Box::pin(report::reports(node.clone(), counts, up.clone(), containers_changed)));
    spawn("ends", Box::pin(ends.run()));
    spawn(
        "inventory",
        Box::pin(report::inventories(node.clone(), up.clone(), connected.clone(), images_changed)),
    );
    spawn("code", Box::pin(code::give_back()));
    spawn("links", Box::pin(links::run(node.clone(), links::Ends { up, connected, lost, changes, pace })));
    Ok(tasks)
}

async fn talk(
    session: Option<SessionSettings>,
    mut up: mpsc::Receiver<Up>,
    down: mpsc::Sender<Down>,
    changes: latest::Receiver<u64>,
) {
    match session {
        Some(session) => session::run(session, up, down, changes).await,
        None => while up.recv().await.is_some() {},
    }
}

async fn named(task: &'static str, body: impl Future<Output = ()>) -> &'static str {
    body.await;
    task
}

/// None: there is no proof of who we are, so nobody to talk to; what runs goes on.
fn session_settings(config: &Config) -> Result<Option<SessionSettings>, AppError> {
    let files = config.controller.as_ref().and_then(|controller| controller.files.clone());
    let credentials = match (files, Live::open(&config.state_dir)) {
        (Some(files), _) => Credentials::Files(files),
        (None, Ok(Some(live))) => Credentials::Joined(live),
        (None, Ok(None)) => return Err(AppError::NotJoined),
        (None, Err(error)) => {
            tracing::error!(%error, "no session until this machine joins again");
            return Ok(None);
        }
    };
    let controller = config.controller.clone().ok_or(AppError::NotJoined)?;
    let (host, port) = (controller.host, controller.port);
    Ok(Some(SessionSettings { node: config.node.clone(), host, port, credentials }))
}
