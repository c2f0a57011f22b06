//! What a task has behind it on this node: its failures, the pause that follows from them, and whether its
//! container can go on.

use crate::engine::EngineError;
use crate::task::backoff::{Backoff, HEALTHY_AFTER, jitter};
use crate::task::step::Action;
use tokio::time::Instant;

/// Starts of one container that may fail in a row before it is made anew: what Docker keeps of it may be damaged.
const STARTS_MAX: u32 = 3;

/// One task.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) busy: Option<Action>,
    pub(super) restarts: u32,
    /// Why the engine refused what was asked of it last; nothing once it did it.
    refusal: String,
    /// How its container ended last.
    end: String,
    /// Why the wanted limits are not in force.
    pub(super) limit_error: String,
    pub(super) pause: Option<Instant>,
    backoff: Backoff,
    running_since: Option<Instant>,
    failed_starts: u32,
    /// It was stopped by us, so its next start is no restart.
    stopped: bool,
    /// The engine gave no answer to a start: there may be a container that no list has shown yet.
    pub(super) in_doubt: bool,
}

impl Task {
    pub(super) fn with_restarts(restarts: u32) -> Self {
        Self { restarts, ..Self::default() }
    }

    pub(super) fn is_pausing(&self, now: Instant) -> bool {
        self.pause.is_some_and(|until| now < until)
    }

    /// Its container has to be made anew.
    pub(super) fn is_spoilt(&self) -> bool {
        STARTS_MAX <= self.failed_starts
    }

    /// What went wrong last, for people.
    pub(super) fn error(&self) -> &str {
        if self.refusal.is_empty() { &self.end } else { &self.refusal }
    }

    /// There may be a container of it, or there soon will be.
    pub(super) fn is_open(&self) -> bool {
        self.busy.is_some() || self.in_doubt
    }

    pub(super) fn was_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn seen_running(&mut self, now: Instant) {
        self.running_since.get_or_insert(now);
    }

    /// It was seen running, and now it is not.
    pub(super) fn ended(&mut self, code: Option<i32>, now: Instant) {
        self.end = code.map_or_else(|| "exited".to_owned(), |code| format!("exited with code {code}"));
        self.failed(now);
    }

    pub(super) fn failed(&mut self, now: Instant) {
        let ran = self.running_since.take().map_or_else(Default::default, |since| now - since);
        if HEALTHY_AFTER <= ran {
            self.backoff.succeeded();
        }
        self.pause = Some(now + self.backoff.failed(jitter()));
    }

    pub(super) fn started(&mut self, started: &Result<(), EngineError>, now: Instant) {
        self.busy = None;
        match started {
            Ok(()) => {
                self.running_since = Some(now);
                self.pause = None;
                self.failed_starts = 0;
                self.stopped = false;
                self.refusal.clear();
            }
            // Nothing to wait for: it can never be started.
            Err(EngineError::NetworkGone { .. }) => self.failed_starts = STARTS_MAX,
            Err(error) => {
                self.in_doubt = true;
                self.failed_starts += 1;
                self.refusal = error.to_string();
                self.failed(now);
            }
        }
    }

    pub(super) fn limited(&mut self, refused: Option<String>, now: Instant) {
        self.busy = None;
        if refused.is_some() {
            self.pause = Some(now + self.backoff.failed(jitter()));
        }
        self.limit_error = refused.unwrap_or_default();
    }

    pub(super) fn stopped(&mut self, stopped: Result<(), EngineError>, now: Instant) {
        self.busy = None;
        match stopped {
            Ok(()) => {
                self.running_since = None;
                self.stopped = true;
                self.refusal.clear();
            }
            Err(error) => self.refused(&error, now),
        }
    }

    /// Its container is gone, to be made anew: the pauses go on where they were.
    pub(super) fn unspoilt(&mut self) {
        self.busy = None;
        self.failed_starts = 0;
    }

    pub(super) fn refused(&mut self, error: &EngineError, now: Instant) {
        self.busy = None;
        self.refusal = error.to_string();
        self.failed(now);
    }
}
