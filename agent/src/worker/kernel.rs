//! How far network and kernel are: Docker's network first, since flows and routes refer to its bridge,
//! then everything of the document in one go.

use super::act::Todo;
use crate::engine::EngineError;
use crate::network::NetworkError;
use crate::task::backoff::{Backoff, jitter};
use edgeloom_common::desired::{DesiredState, Pool, Version};
use std::sync::Arc;
use tokio::time::Instant;

/// State of network and kernel.
#[derive(Debug, Default)]
pub(super) struct KernelState {
    /// The pool that Docker's network has.
    ensured: Option<Pool>,
    /// The pool of the last attempt to make that network, whatever came of it.
    tried: Option<Pool>,
    applied: Option<Version>,
    /// Something is under way; both run on one thread each, one after the other.
    busy: bool,
    look_at_network: bool,
    look_at_kernel: bool,
    backoff: Backoff,
    pause: Option<Instant>,
    pub(super) network_error: String,
    pub(super) apply_error: String,
    /// What stands in the way of single flows and routes.
    pub(super) problems: Vec<String>,
}

impl KernelState {
    pub(super) fn look_again(&mut self) {
        self.look_at_network = true;
        self.look_at_kernel = true;
    }

    pub(super) fn retry_now(&mut self) {
        self.ensured = None;
        self.tried = None;
        self.pause = None;
        self.look_again();
    }

    /// A container could not be started: the network may be gone.
    pub(super) fn doubt_network(&mut self) {
        self.look_at_network = true;
    }

    pub(super) fn pause(&self) -> Option<Instant> {
        self.pause
    }

    /// Containers may start: Docker's network stands and the kernel took the document.
    pub(super) fn carries(&self, version: Version) -> bool {
        self.ensured.is_some() && self.applied == Some(version)
    }

    /// Every flow and route of `version` is in the kernel.
    pub(super) fn is_whole(&self, version: Version) -> bool {
        self.applied == Some(version) && self.problems.is_empty()
    }

    /// Network, then kernel. A kernel update does not wait for a network that could not be made: the
    /// flows that only pass this node need no Docker.
    pub(super) fn next_action(&mut self, document: &Arc<DesiredState>, now: Instant) -> Option<Todo> {
        if self.busy {
            return None;
        }
        let pausing = self.pause.is_some_and(|until| now < until);
        let pool = &document.pool;
        let untried = self.tried.as_ref() != Some(pool);
        let missing = self.ensured.as_ref() != Some(pool) && !pausing;
        if untried || missing || self.look_at_network {
            return Some(self.begin_network(pool));
        }
        let stale = self.applied != Some(document.version());
        let failed = !self.apply_error.is_empty();
        if (stale && !(failed && pausing)) || self.look_at_kernel {
            self.busy = true;
            self.look_at_kernel = false;
            return Some(Todo::Apply(Arc::clone(document)));
        }
        None
    }

    fn begin_network(&mut self, pool: &Pool) -> Todo {
        self.busy = true;
        self.look_at_network = false;
        self.tried = Some(pool.clone());
        Todo::EnsureNetwork(pool.clone())
    }

    pub(super) fn ensured(&mut self, pool: Pool, ensured: Result<(), EngineError>, now: Instant) {
        self.busy = false;
        match ensured {
            Ok(()) => {
                self.network_error.clear();
                // A bridge that was made just now has none of our settings yet.
                if self.ensured.as_ref() != Some(&pool) {
                    self.look_at_kernel = true;
                }
                self.ensured = Some(pool);
            }
            Err(error) => {
                self.network_error = error.to_string();
                self.ensured = None;
                self.pause = Some(now + self.backoff.failed(jitter()));
            }
        }
    }

    pub(super) fn applied(
        &mut self,
        version: Version,
        applied: Result<Vec<String>, NetworkError>,
        now: Instant,
    ) {
        self.busy = false;
        match applied {
            Ok(problems) => {
                self.applied = Some(version);
                self.problems = problems;
                self.apply_error.clear();
                if self.network_error.is_empty() {
                    self.backoff.succeeded();
                }
            }
            Err(error) => {
                tracing::warn!(%error, generation = version.generation, "the kernel did not take the desired state");
                self.apply_error = error.to_string();
                self.pause = Some(now + self.backoff.failed(jitter()));
            }
        }
    }
}
