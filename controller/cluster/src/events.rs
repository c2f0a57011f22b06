//! What happened, newest last: a bounded ring that people and tests read beside the log.
//!
//! In: notes of the owner. Out: [`EventView`]s by number. Numbers rise by one as long as the controller
//! lives, so a reader that asks for what comes after the last one it saw misses nothing but what fell out.

use edgeloom_common::ids::JobName;
use edgeloom_common::view::EventView;
use std::collections::{BTreeMap, VecDeque};

/// Events kept; older ones are in the daemon's log alone.
const KEPT: usize = 1_000;

/// What an event is about, as its `kind` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Accepted,
    Placed,
    /// A job that runs got other rates or limits because of others.
    Changed,
    /// Limits of its containers follow what they use, or who else is there.
    Resized,
    Waiting,
    /// A container of a batch ended with another code than 0, for the last time.
    TaskFailed,
    /// A batch has nothing left to run.
    Ended,
    Stopping,
    Gone,
    Replan,
    /// A re-plan was due and found nothing better.
    Kept,
    Shortfall,
    Recovered,
    Measured,
    NodeUp,
    NodeDown,
    /// Somebody spoke in a node's name who may not.
    Refused,
    /// Out of reach for longer than a job allows.
    NodeLost,
    /// Back, and rid of what was placed elsewhere meanwhile.
    NodeReturned,
    /// Will not come back.
    Forgotten,
    /// Takes nothing new, or its tasks move off.
    NodeDrained,
    /// Takes tasks again.
    NodeOpened,
    /// Lost by the controller, and given back by nodes.
    Regained,
    LinkUp,
    LinkDown,
    /// A node made room.
    ImageRemoved,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Placed => "placed",
            Self::Changed => "changed",
            Self::Resized => "resized",
            Self::Waiting => "waiting",
            Self::TaskFailed => "task-failed",
            Self::Ended => "ended",
            Self::Stopping => "stopping",
            Self::Gone => "gone",
            Self::Replan => "replan",
            Self::Kept => "kept",
            Self::Shortfall => "shortfall",
            Self::Recovered => "recovered",
            Self::Measured => "measured",
            Self::NodeUp => "node-up",
            Self::NodeDown => "node-down",
            Self::Refused => "refused",
            Self::NodeLost => "node-lost",
            Self::NodeReturned => "node-returned",
            Self::Forgotten => "node-forgotten",
            Self::NodeDrained => "node-drained",
            Self::NodeOpened => "node-opened",
            Self::Regained => "regained",
            Self::LinkUp => "link-up",
            Self::LinkDown => "link-down",
            Self::ImageRemoved => "image-removed",
        }
    }
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Events {
    kept: VecDeque<EventView>,
    last: u64,
    /// By kind, since the start.
    counts: BTreeMap<&'static str, u64>,
}

impl Events {
    /// Notes an event, and logs it.
    pub(crate) fn note(&mut self, at_ms: u64, job: Option<&JobName>, kind: Kind, text: String) {
        let kind = kind.word();
        match job {
            Some(job) => tracing::info!(%job, kind, "{text}"),
            None => tracing::info!(kind, "{text}"),
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.last += 1;
        *self.counts.entry(kind).or_default() += 1;
        self.kept.push_back(EventView {
            number: self.last,
            at_ms,
            job: job.cloned(),
            kind: kind.to_owned(),
            text,
        });
    }

    /// How many there were of each kind.
    pub(crate) fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Events with a number above `after`, of one job or of all.
    pub(crate) fn after(&self, after: u64, job: Option<&JobName>) -> Vec<EventView> {
        let wanted = |event: &&EventView| {
            event.number > after && job.is_none_or(|job| event.job.as_ref() == Some(job))
        };
        self.kept.iter().filter(wanted).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_bounded_and_selected_by_job() {
        let mut events = Events::default();
        let (a, b): (JobName, JobName) = ("a".parse().unwrap(), "b".parse().unwrap());
        for turn in 0..KEPT as u64 {
            events.note(turn, Some(if turn % 2 == 0 { &a } else { &b }), Kind::Waiting, String::new());
        }
        events.note(7, None, Kind::NodeUp, "node n1".to_owned());
        let all = events.after(0, None);
        assert_eq!((all.len(), all[0].number, all[KEPT - 1].number), (KEPT, 2, KEPT as u64 + 1));
        assert!(events.after(0, Some(&a)).iter().all(|event| event.job.as_ref() == Some(&a)));
        assert_eq!(events.after(KEPT as u64, None).len(), 1);
        assert!(events.after(KEPT as u64 + 1, None).is_empty());
    }
}
