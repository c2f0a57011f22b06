//! A container engine that behaves, in memory: it keeps state, refuses what Docker refuses, and can be
//! told to fail, to stop answering, or to pull slowly. For the fast tests.

mod samples;
mod trials;
mod verbs;

pub use samples::{DIGEST, document, found, owner, spec};
pub use trials::Script;

use super::{EngineError, FoundContainer, FoundState, Hold, Hosting, NetworkSpec, TaskKey};
use edgeloom_common::confidential::Login;
use edgeloom_common::job::HostPort;
use edgeloom_common::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Between two looks at a container that nobody is let at.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// The engine; clones share their state, as clients of one daemon do.
#[derive(Debug, Clone, Default)]
pub struct FakeEngine {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    network: Option<NetworkSpec>,
    containers: BTreeMap<String, FoundContainer>,
    networks_made: u32,
    /// Which network each container was made for.
    made_for: BTreeMap<String, u32>,
    images: BTreeSet<String>,
    /// Images that the pretended registry has.
    registry: BTreeSet<String>,
    /// Who may pull; none: everybody.
    login: Option<Login>,
    starts: BTreeMap<TaskKey, u32>,
    next_id: u64,
    down: bool,
    failing_starts: u32,
    /// Pulls after which the image is gone again.
    vain_pulls: u32,
    failing_removals: u32,
    removals: u32,
    changes_of_limits: u32,
    /// Of each running container.
    memory_used: Bytes,
    watchers: Vec<mpsc::Sender<()>>,
    trials: trials::State,
    hosting: Hosting,
    /// Ports of the host that containers have, by their ids.
    ports: BTreeMap<String, Vec<HostPort>>,
    /// Tasks whose containers nobody is let at.
    held: BTreeSet<TaskKey>,
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

    /// Another container that runs has a port of this one.
    fn has_taken_ports(&self, id: &str) -> bool {
        let runs = |other: &&String| {
            let state = self.containers.get(*other).map(|other| other.state);
            other.as_str() != id && state == Some(FoundState::Running)
        };
        let others = self.ports.keys().filter(runs).flat_map(|other| &self.ports[other]);
        let own = self.ports.get(id).map(Vec::as_slice).unwrap_or_default();
        others.into_iter().any(|other| own.iter().any(|own| own.clashes(other)))
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

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn end(container: &mut FoundContainer, code: i32) {
    container.state = FoundState::Exited(Some(code));
    container.times.finished_ms = Some(now_ms());
}

impl FakeEngine {
    /// An engine whose registry has `images`, by digest.
    #[must_use]
    pub fn with_registry(images: &[&str]) -> Self {
        let engine = Self::default();
        engine.state().registry = images.iter().map(ToString::to_string).collect();
        engine
    }

    /// The pretended registry has this image from now on.
    pub fn publish(&self, digest: &str) {
        self.state().registry.insert(digest.to_owned());
    }

    /// Containers may have this of the node from now on.
    pub fn allow(&self, hosting: Hosting) {
        self.state().hosting = hosting;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pretended registry wants this login from now on.
    pub fn want_login(&self, login: Login) {
        self.state().login = Some(login);
    }

    /// Stops answering, or answers again; following the events ends too.
    pub fn set_answering(&self, answering: bool) {
        let mut state = self.state();
        state.down = !answering;
        state.watchers.clear();
    }

    /// Somebody removes the image right after each of the next `count` pulls.
    pub fn pull_in_vain(&self, count: u32) {
        self.state().vain_pulls = count;
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
            end(container, code);
        }
        state.changed();
    }

    /// Answers for the task's container no more: it shows this, and what is asked of it does not end.
    pub fn hold(&self, key: &TaskKey, shown: FoundState, hold: Hold) {
        let mut state = self.state();
        for container in state.containers.values_mut().filter(|container| container.key == *key) {
            (container.state, container.hold) = (shown, hold);
        }
        match hold {
            Hold::Free => state.held.remove(key),
            Hold::Brief | Hold::Long => state.held.insert(key.clone()),
        };
        state.changed();
    }

    /// The same, before anybody has noticed.
    pub fn hold_unseen(&self, key: &TaskKey) {
        self.state().held.insert(key.clone());
    }

    /// Returns once the engine lets somebody at the container.
    async fn until_free(&self, id: &str) {
        let key = self.state().containers.get(id).map(|container| container.key.clone());
        while key.as_ref().is_some_and(|key| self.state().held.contains(key)) {
            tokio::time::sleep(LOOK_PERIOD).await;
        }
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
