//! Containers that Docker does not answer for.
//!
//! Docker 20.10 was seen to keep the lock of containers that ended together: an inspect, a start or a removal of one
//! never comes back, and the list, which takes no lock, may show it running for ever. Such a container is known by
//! the list, by the event of its end, and by the kernel.
//!
//! In: inspects without an answer, ends that events tell. Out: what the container does, and for how long nobody was
//! let at it. Invariant: what runs by the list has ended only when no process of it is left.

use super::forgotten::processes;
use crate::engine::{FoundContainer, FoundState, Hold, Times};
use bollard::models::EventMessage;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// How long Docker is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// An inspect that takes longer is not waited for: it would keep the other containers from being seen.
    pub(crate) answer: Duration,
    /// Pause before the same is asked again, unless an event tells of the container: Docker never forgets a request
    /// that waits for a lock.
    pub(crate) again: Duration,
    /// From here on Docker is not only busy.
    pub(crate) long: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let [answer, again, long] = [10, 20, 60].map(Duration::from_secs);
        Self { answer, again, long }
    }
}

/// What is known of such containers, by their ids.
#[derive(Debug, Default)]
pub(super) struct Held {
    silences: BTreeMap<String, Silence>,
    ends: BTreeMap<String, End>,
}

/// An inspect was not answered.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// The first of them.
    since: Instant,
    /// The last of them; none: an event has told of the container since.
    asked: Option<Instant>,
}

/// As the event told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    exit_code: Option<i32>,
    at_ms: Option<u64>,
}

impl Held {
    /// Forgets all others.
    pub(super) fn retain(&mut self, listed: &BTreeSet<&String>) {
        self.silences.retain(|id, _| listed.contains(id));
        self.ends.retain(|id, _| listed.contains(id));
    }

    /// Whether another request may find an answer.
    pub(super) fn may_be_asked(&self, id: &str, patience: Patience) -> bool {
        let asked = self.silences.get(id).and_then(|silence| silence.asked);
        asked.is_none_or(|asked| patience.again <= asked.elapsed())
    }

    pub(super) fn answered(&mut self, id: &str) {
        self.silences.remove(id);
    }

    pub(super) fn unanswered(&mut self, id: &str) {
        let now = Instant::now();
        let silence = self.silences.entry(id.to_owned()).or_insert_with(|| {
            tracing::warn!(container = id, "docker does not answer for the container");
            Silence { since: now, asked: None }
        });
        silence.asked = Some(now);
    }

    /// An event told something of it.
    pub(super) fn heard(&mut self, id: &str) {
        self.silences.get_mut(id).into_iter().for_each(|silence| silence.asked = None);
    }

    /// An event told that the container has ended.
    pub(super) fn ended(&mut self, id: &str, event: &EventMessage) {
        let told = event.actor.as_ref().and_then(|actor| actor.attributes.as_ref());
        let exit_code = told.and_then(|told| told.get("exitCode")).and_then(|code| code.parse().ok());
        let at_ms = event.time_nano.and_then(|time| u64::try_from(time / 1_000_000).ok());
        self.ends.insert(id.to_owned(), End { exit_code, at_ms });
    }

    /// An event told that it runs again.
    pub(super) fn started(&mut self, id: &str) {
        self.ends.remove(id);
    }

    /// The container without an answer; its limits and the time of its start are as last read.
    pub(super) fn shown(&self, container: FoundContainer, patience: Patience) -> FoundContainer {
        let silence = self.silences.get(&container.id).map(|silence| silence.since.elapsed());
        let hold = match silence {
            Some(silence) if patience.long <= silence => Hold::Long,
            _ => Hold::Brief,
        };
        let runs = container.state != FoundState::Running || !processes(&container.id).is_empty();
        let end = self.ends.get(&container.id).copied();
        shown(FoundContainer { hold, ..container }, end, runs)
    }
}

fn shown(container: FoundContainer, end: Option<End>, runs: bool) -> FoundContainer {
    let started_ms = container.times.started_ms;
    let finished_ms = end.and_then(|end| end.at_ms);
    let state = match (container.state, end) {
        (FoundState::Running, Some(end)) if !runs => FoundState::Exited(end.exit_code),
        (FoundState::Running, None) if !runs && container.hold == Hold::Long => FoundState::Exited(None),
        (state, _) => state,
    };
    let over = matches!(state, FoundState::Exited(_));
    let times = Times { started_ms, finished_ms: finished_ms.filter(|_| over) };
    FoundContainer { state, times, ..container }
}

#[cfg(test)]
mod tests;
