//! How far network and kernel are: Docker's network, since flows and routes refer to its bridge, and
//! everything of the document in one go.
//!
//! Each waits for nobody but itself: a Docker that hangs must not hold up routes that a dead link needs.
//! Invariant: containers start only after an update that began when the bridge was there, since a bridge that
//! was made just now has none of our settings.

use super::act::Todo;
use crate::engine::{EngineError, NetworkFlaw};
use crate::network::NetworkError;
use crate::task::backoff::{Backoff, jitter};
use edgeloom_common::desired::{DesiredState, Pool, Version};
use edgeloom_net::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a kernel update waits for Docker's first answer: one update then serves both.
const NETWORK_FIRST: Duration = Duration::from_secs(2);
/// Netlink answers at once and `iptables` waits 5 s for its lock: beyond this the thread hangs.
const APPLY_MAX: Duration = Duration::from_secs(60);

/// State of network and kernel.
#[derive(Debug, Default)]
pub(super) struct KernelState {
    network: Side,
    kernel: Side,
    /// The pool that Docker's network has.
    ensured: Option<Pool>,
    /// The pool of the last attempt to make that network, whatever came of it.
    tried: Option<Pool>,
    /// Until then a kernel update waits for that attempt.
    first_until: Option<Instant>,
    applied: Option<Version>,
    /// No update of the kernel has seen the bridge yet.
    bare: bool,
    /// The update under way began when the bridge was there.
    sees_bridge: bool,
    /// What stands in the way of single flows and routes.
    pub(super) problems: Vec<String>,
    /// One of them is the document's or the kernel's, not only a link that is down for now.
    hindered: bool,
    /// What Docker's network lacks though it serves.
    pub(super) flaw: String,
}

/// One of the two: at most one attempt at a time, with pauses between those that fail.
#[derive(Debug, Default)]
struct Side {
    /// When the attempt under way began.
    begun: Option<Instant>,
    look: bool,
    backoff: Backoff,
    pause: Option<Instant>,
    error: String,
}

impl Side {
    fn is_pausing(&self, now: Instant) -> bool {
        self.pause.is_some_and(|until| now < until)
    }

    fn is_busy(&self) -> bool {
        self.begun.is_some()
    }

    fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
        self.look = false;
    }

    fn succeeded(&mut self) {
        self.begun = None;
        self.pause = None;
        self.backoff.succeeded();
        self.error.clear();
    }

    fn failed(&mut self, error: String, now: Instant) {
        self.begun = None;
        self.pause = Some(now + self.backoff.failed(jitter()));
        self.error = error;
    }
}

impl KernelState {
    pub(super) fn look_again(&mut self) {
        self.network.look = true;
        self.kernel.look = true;
    }

    pub(super) fn retry_now(&mut self) {
        self.ensured = None;
        self.tried = None;
        self.network.pause = None;
        self.kernel.pause = None;
        self.look_again();
    }

    /// A container could not be started: the network may be gone.
    pub(super) fn doubt_network(&mut self) {
        self.network.look = true;
    }

    pub(super) fn pauses(&self) -> impl Iterator<Item = Instant> {
        [self.network.pause, self.kernel.pause, self.first_until].into_iter().flatten()
    }

    /// Containers may start: Docker's network stands and the kernel took the document with its bridge.
    pub(super) fn carries(&self, version: Version) -> bool {
        self.ensured.is_some() && self.applied == Some(version) && !self.bare
    }

    /// The kernel took a document, or refused one.
    pub(super) fn was_tried(&self) -> bool {
        self.applied.is_some() || !self.kernel.error.is_empty()
    }

    /// The kernel was given a document and never came back.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        self.kernel.begun.is_some_and(|since| APPLY_MAX < now.duration_since(since))
    }

    /// Every flow and route of `version` is in the kernel, as far as links are up.
    pub(super) fn is_whole(&self, version: Version) -> bool {
        self.applied == Some(version) && !self.hindered
    }

    /// What stands in the way of network and kernel as a whole.
    pub(super) fn errors(&self) -> [&String; 3] {
        [&self.network.error, &self.kernel.error, &self.flaw]
    }

    /// A kernel update does not wait for a network that could not be made: the flows that only pass this
    /// node need no Docker.
    pub(super) fn next_actions(&mut self, document: &Arc<DesiredState>, now: Instant) -> Vec<Todo> {
        let ensure = self.ensure(&document.pool, now);
        ensure.into_iter().chain(self.apply(document, now)).collect()
    }

    fn ensure(&mut self, pool: &Pool, now: Instant) -> Option<Todo> {
        if self.network.is_busy() {
            return None;
        }
        let untried = self.tried.as_ref() != Some(pool);
        let missing = self.ensured.as_ref() != Some(pool) && !self.network.is_pausing(now);
        if !untried && !missing && !self.network.look {
            return None;
        }
        if untried {
            self.first_until = Some(now + NETWORK_FIRST);
        }
        self.network.begin(now);
        self.tried = Some(pool.clone());
        Some(Todo::EnsureNetwork(pool.clone()))
    }

    fn apply(&mut self, document: &Arc<DesiredState>, now: Instant) -> Option<Todo> {
        let waits = self.network.is_busy() && self.first_until.is_some_and(|until| now < until);
        if self.kernel.is_busy() || waits {
            return None;
        }
        let stale = self.applied != Some(document.version()) || self.bare;
        let failed = !self.kernel.error.is_empty();
        if (!stale || (failed && self.kernel.is_pausing(now))) && !self.kernel.look {
            return None;
        }
        self.kernel.begin(now);
        self.sees_bridge = self.ensured.is_some();
        Some(Todo::Apply(Arc::clone(document)))
    }

    pub(super) fn ensured(
        &mut self,
        pool: Pool,
        ensured: Result<Option<NetworkFlaw>, EngineError>,
        now: Instant,
    ) {
        self.first_until = None;
        match ensured {
            Ok(flaw) => {
                self.network.succeeded();
                self.bare |= self.ensured.as_ref() != Some(&pool);
                self.ensured = Some(pool);
                self.flaw = flaw.map(|flaw| flaw.to_string()).unwrap_or_default();
            }
            Err(error) => {
                self.network.failed(error.to_string(), now);
                self.ensured = None;
                self.bare = false;
            }
        }
    }

    pub(super) fn applied(
        &mut self,
        version: Version,
        applied: Result<Vec<Problem>, NetworkError>,
        now: Instant,
    ) {
        match applied {
            Ok(problems) => {
                self.kernel.succeeded();
                self.applied = Some(version);
                self.bare &= !self.sees_bridge;
                self.hindered = problems.iter().any(Problem::hinders);
                self.problems = problems.iter().map(ToString::to_string).collect();
            }
            Err(error) => {
                tracing::warn!(%error, generation = version.generation, "the kernel did not take the desired state");
                self.kernel.failed(error.to_string(), now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::document;
    use edgeloom_common::ids::NodeId;

    fn names(todo: &[Todo]) -> Vec<&'static str> {
        let name = |todo: &Todo| match todo {
            Todo::EnsureNetwork(_) => "network",
            Todo::Apply(_) => "kernel",
            _ => "other",
        };
        todo.iter().map(name).collect()
    }

    #[test]
    fn the_first_update_waits_for_the_network_and_serves_both() {
        let (mut state, document, now) =
            (KernelState::default(), Arc::new(document(1, vec![])), Instant::now());
        assert_eq!(names(&state.next_actions(&document, now)), ["network"]);
        assert!(state.next_actions(&document, now).is_empty());
        state.ensured(document.pool.clone(), Ok(None), now);
        assert_eq!(names(&state.next_actions(&document, now)), ["kernel"]);
        assert!(!state.carries(document.version()));
        state.applied(document.version(), Ok(vec![]), now);
        assert!(state.carries(document.version()) && state.next_actions(&document, now).is_empty());
    }

    #[test]
    fn a_docker_that_hangs_holds_no_route_up_and_containers_wait_for_an_update_that_saw_the_bridge() {
        let (mut state, document, now) =
            (KernelState::default(), Arc::new(document(1, vec![])), Instant::now());
        state.next_actions(&document, now);
        let later = now + NETWORK_FIRST;
        assert_eq!(names(&state.next_actions(&document, later)), ["kernel"]);
        state.ensured(document.pool.clone(), Ok(None), later);
        state.applied(document.version(), Ok(vec![]), later);
        assert!(state.is_whole(document.version()) && !state.carries(document.version()));
        assert_eq!(names(&state.next_actions(&document, later)), ["kernel"]);
        state.applied(document.version(), Ok(vec![]), later);
        assert!(state.carries(document.version()));
        // The same in the middle of its life: a link changes while Docker does not answer.
        state.look_again();
        assert_eq!(names(&state.next_actions(&document, later)), ["network", "kernel"]);
        state.applied(document.version(), Ok(vec![]), later);
        state.look_again();
        assert_eq!(names(&state.next_actions(&document, later)), ["kernel"]);
    }

    #[test]
    fn after_a_restart_of_the_engine_containers_wait_until_the_bridge_has_its_settings_again() {
        let (mut state, document, now) =
            (KernelState::default(), Arc::new(document(1, vec![])), Instant::now());
        state.next_actions(&document, now);
        state.ensured(document.pool.clone(), Ok(None), now);
        state.next_actions(&document, now);
        state.applied(document.version(), Ok(vec![]), now);
        state.retry_now();
        assert!(!state.carries(document.version()));
        assert_eq!(names(&state.next_actions(&document, now)), ["network"]);
        state.ensured(document.pool.clone(), Ok(None), now);
        assert!(!state.carries(document.version()));
        assert_eq!(names(&state.next_actions(&document, now)), ["kernel"]);
        state.applied(document.version(), Ok(vec![]), now);
        assert!(state.carries(document.version()));
    }

    #[test]
    fn a_link_that_is_down_is_told_and_does_not_keep_the_document_from_being_confirmed() {
        let (mut state, document, now) =
            (KernelState::default(), Arc::new(document(1, vec![])), Instant::now());
        let neighbour: NodeId = "n2".parse().unwrap();
        let down = Problem::LinkUnusable { neighbour: neighbour.clone(), interface: "l2".to_owned() };
        state.applied(document.version(), Ok(vec![down]), now);
        assert!(state.is_whole(document.version()) && state.problems.len() == 1);
        let unknown = Problem::UnknownVia { address: std::net::Ipv4Addr::LOCALHOST, via: neighbour };
        state.applied(document.version(), Ok(vec![unknown]), now);
        assert!(!state.is_whole(document.version()));
    }

    #[tokio::test]
    async fn a_kernel_that_never_comes_back_is_stuck() {
        let (mut state, now) = (KernelState::default(), Instant::now());
        let document = Arc::new(document(1, vec![]));
        assert_eq!(names(&state.next_actions(&document, now)), ["network"]);
        state.ensured(document.pool.clone(), Ok(None), now);
        assert!(!state.is_stuck(now + 2 * APPLY_MAX));
        assert_eq!(names(&state.next_actions(&document, now)), ["kernel"]);
        assert!(!state.was_tried());
        assert!(!state.is_stuck(now + APPLY_MAX));
        assert!(state.is_stuck(now + 2 * APPLY_MAX));
        state.applied(document.version(), Ok(Vec::new()), now);
        assert!(state.was_tried());
        assert!(!state.is_stuck(now + 2 * APPLY_MAX));
    }
}
