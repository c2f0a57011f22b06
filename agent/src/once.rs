//! The commands that do one thing and end: `apply`, `purge`, `probe`.

use crate::accept::Refusal;
use crate::collect::used;
use crate::config::Config;
use crate::contact::ContactFile;
use crate::engine::trial::Trials;
use crate::engine::{ContainerEngine, EngineError};
use crate::inventory::{Gatherer, InventoryError};
use crate::network::NetworkError;
use crate::node::{Node, OpenError};
use crate::store::{self, DesiredFile, History, StateError};
use crate::wire::Up;
use crate::worker::{Command, Worker};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::report::{Inventory, Observed};
use edgeloom_observe::speed;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A daemon that answers slowly makes each attempt as long as it needs; one that is not there is given
/// up after about 20 s.
const PURGE_ATTEMPTS: u32 = 10;
const PURGE_PAUSE: Duration = Duration::from_secs(2);

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error("the worker ended unexpectedly")]
    WorkerEnded,
}

/// Why something of ours is still there.
#[derive(Debug, thiserror::Error)]
enum PurgeFailure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("container {container} is still there")]
    Stays { container: String },
}

/// Reconciles with one document until converged or out of time; the second value tells which.
///
/// # Errors
/// When the node cannot be opened or the document is not for it; then nothing is changed.
pub async fn apply(
    config: Config,
    document: DesiredState,
    limit: Duration,
) -> Result<(Observed, bool), OnceError> {
    let version = document.version();
    let lock = store::lock(&config.state_dir).map_err(OpenError::from)?;
    let node = Node::open(config)?;
    let (up, mut said) = mpsc::channel(1);
    let (commands, inbox) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let worker = Worker::new(node.worker_settings(&lock)?, up);
    worker.check(&document)?;
    let working = tokio::spawn(worker.run(inbox, stop.clone()));
    commands.send(Command::Desired(Box::new(document.into()))).await.map_err(|_| OnceError::WorkerEnded)?;
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
    let _lock = store::lock(&config.state_dir).map_err(OpenError::from)?;
    let node = Node::open(config)?;
    let mut left = purge_engine(node.engine.as_ref(), &node.config.bridge).await;
    match node.network.purge().await {
        Ok(errors) => left.extend(errors.iter().map(ToString::to_string)),
        Err(error) => left.push(error.to_string()),
    }
    node.secret_files().retain(&BTreeSet::new());
    left.extend(purge_state(&node.config.state_dir, node.config.secrets_key.clone()));
    Ok(left)
}

/// Tries until nothing of ours is left: a daemon that is slow or starting may refuse to remove the
/// network while a container is still on its way out, or finish a creation whose asker is gone.
async fn purge_engine(engine: &(impl ContainerEngine + Trials), bridge: &str) -> Vec<String> {
    let mut left = Vec::new();
    for attempt in 0..PURGE_ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(PURGE_PAUSE).await;
        }
        left = match purge_engine_once(engine, bridge).await {
            Ok(failures) => failures.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        if left.is_empty() {
            break;
        }
    }
    left
}

/// Removes what is listed; empty when there was nothing, or nothing is left.
async fn purge_engine_once(
    engine: &(impl ContainerEngine + Trials),
    bridge: &str,
) -> Result<Vec<PurgeFailure>, EngineError> {
    let containers = engine.list().await?;
    let mut removals = join_all(containers.iter().map(|container| engine.remove(&container.id))).await;
    for trial in engine.list_trials().await? {
        removals.push(engine.remove_trial(&trial).await);
    }
    let network = engine.remove_network(bridge).await;
    let volumes = engine.remove_volumes().await;
    let failures =
        removals.into_iter().chain([network, volumes]).filter_map(Result::err).map(PurgeFailure::from);
    let left = engine.list().await?.into_iter();
    let left = left.map(|container| PurgeFailure::Stays { container: container.key.container_name() });
    Ok(failures.chain(left).collect())
}

fn purge_state(state_dir: &Path, key: PathBuf) -> Vec<String> {
    let desired = DesiredFile::open(state_dir, key).and_then(|file| file.remove());
    let contact = ContactFile::in_directory(state_dir).remove();
    let states = [desired, History::remove(state_dir), contact, used::remove(state_dir)]
        .into_iter()
        .filter_map(Result::err);
    let run = speed::forget(state_dir).err().map(|error| error.to_string());
    states.map(|error| error.to_string()).chain(run).collect()
}

/// What the node is and can do.
///
/// # Errors
/// When the node cannot be opened or read.
pub async fn probe(config: Config) -> Result<Inventory, OnceError> {
    let node = Node::open(config)?;
    Ok(Gatherer::open(node).await?.gather().await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NetworkSpec;
    use crate::engine::fake::{DIGEST, FakeEngine, document, spec};
    use crate::engine::trial::TrialSpec;
    use edgeloom_common::confidential::{Confidential, Value};
    use std::collections::BTreeMap;

    async fn used_engine() -> FakeEngine {
        let engine = FakeEngine::default();
        engine.load(DIGEST);
        let network = NetworkSpec { bridge: "edgeloom0".to_owned(), pool: document(1, vec![]).pool };
        engine.ensure_network(&network).await.unwrap();
        for task in ["a", "b"] {
            let id = engine.create(&spec(task, "h"), "edgeloom0").await.unwrap();
            engine.start(&id).await.unwrap();
        }
        let any = spec("any", "h");
        let trial = TrialSpec {
            image: any.image,
            command: any.command,
            environment: any.environment,
            cpu: any.cpu,
            memory: any.memory,
        };
        engine.create_trial(&trial).await.unwrap();
        engine
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_is_late_is_purged_all_the_same() {
        let engine = used_engine().await;
        engine.set_answering(false);
        let late = async {
            tokio::time::sleep(PURGE_PAUSE * 3).await;
            engine.set_answering(true);
        };
        let (left, ()) = tokio::join!(purge_engine(&engine, "edgeloom0"), late);
        assert_eq!(left, Vec::<String>::new());
        assert_eq!(engine.list().await.unwrap(), []);
        assert_eq!(engine.list_trials().await.unwrap(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_never_answers_is_told_of() {
        let engine = used_engine().await;
        engine.set_answering(false);
        assert_eq!(purge_engine(&engine, "edgeloom0").await.len(), 1);
    }

    #[test]
    fn of_the_state_on_disk_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let state_dir = directory.path();
        let key = state_dir.join("secrets.key");
        let file = DesiredFile::open(state_dir, key.clone()).unwrap();
        let value = Value::new(b"hunter2").unwrap();
        let secrets = BTreeMap::from([("password".parse().unwrap(), value)]);
        file.save(&document(1, vec![]), &Confidential { secrets, ..Confidential::default() }).unwrap();
        drop(History::open(state_dir));
        speed::core_speed(state_dir).unwrap();
        ContactFile::in_directory(state_dir).save(None).unwrap();
        used::LastUse::open(state_dir, 0).note([("id".to_owned(), true)].into_iter(), 0);
        assert_eq!(std::fs::read_dir(state_dir).unwrap().count(), 7);
        assert_eq!(purge_state(state_dir, key), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(state_dir).unwrap().count(), 0);
    }
}
