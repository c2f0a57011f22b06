//! The commands that do one thing and end: `apply`, `purge`, `probe`.

use crate::config::Config;
use crate::engine::{ContainerEngine, EngineError};
use crate::inventory::{Gatherer, InventoryError};
use crate::network::NetworkError;
use crate::node::{Node, OpenError};
use crate::store::{DesiredFile, Lock, StateError};
use crate::wire::Up;
use crate::worker::{Command, Worker};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::report::{Inventory, Observed};
use futures_util::future::join_all;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error("the worker ended unexpectedly")]
    WorkerEnded,
}

/// Reconciles with one document until converged or out of time; the second value tells which.
///
/// # Errors
/// When the node cannot be opened.
pub async fn apply(
    config: Config,
    document: DesiredState,
    limit: Duration,
) -> Result<(Observed, bool), OnceError> {
    let version = document.version();
    let lock = Lock::take(&config.state_dir).map_err(OpenError::from)?;
    let node = Node::open(config)?;
    let (up, mut said) = mpsc::channel(1);
    let (commands, inbox) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let worker = Worker::new(node.worker_settings(&lock)?, up);
    let working = tokio::spawn(worker.run(inbox, stop.clone()));
    commands.send(Command::Desired(Box::new(document))).await.map_err(|_| OnceError::WorkerEnded)?;
    let mut last = None;
    let converging = async {
        while let Some(message) = said.recv().await {
            let Up::Observed(observed) = message else { continue };
            let converged = observed.converged && observed.version == version;
            last = Some(observed);
            if converged {
                return true;
            }
        }
        false
    };
    let converged = tokio::time::timeout(limit, converging).await.unwrap_or(false);
    stop.cancel();
    // A worker that panicked has said so; what it observed last is still worth printing.
    let _ = working.await;
    last.map(|observed| (observed, converged)).ok_or(OnceError::WorkerEnded)
}

/// Removes everything that is ours: containers, Docker's network, kernel objects, the state on disk.
/// Goes on after a failure and returns all.
///
/// # Errors
/// When the node cannot be opened.
pub async fn purge(config: Config) -> Result<Vec<String>, OnceError> {
    let _lock = Lock::take(&config.state_dir).map_err(OpenError::from)?;
    let node = Node::open(config)?;
    let mut left = purge_engine(&node).await;
    left.extend(node.network.purge().await?.iter().map(ToString::to_string));
    DesiredFile::open(&node.config.state_dir)?.remove()?;
    Ok(left)
}

async fn purge_engine(node: &Node) -> Vec<String> {
    let containers = match node.engine.list().await {
        Ok(containers) => containers,
        Err(error) => return vec![error.to_string()],
    };
    let removals = join_all(containers.iter().map(|container| node.engine.remove(&container.id))).await;
    let network = node.engine.remove_network(&node.config.bridge).await;
    let failures = removals.into_iter().chain([network]).filter_map(Result::err);
    failures.map(|error| error.to_string()).collect()
}

/// What the node is and can do.
///
/// # Errors
/// When the node cannot be opened or read.
pub async fn probe(config: Config) -> Result<Inventory, OnceError> {
    let node = Node::open(config)?;
    Ok(Gatherer::open(node).await?.gather()?)
}
