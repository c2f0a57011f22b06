//! Whether the controller is heard of, and what may not run without it.
//!
//! A task may say how long it runs without a session: its controller will have started it elsewhere by then.
//! Only a document that the controller sends ends the silence: a connection alone may belong to one that does
//! not know yet what it wants of this node.

use crate::contact::Past;
use edgeloom_common::desired::{ContainerSpec, DesiredState};
use std::time::Duration;
use tokio::time::Instant;

/// Since when the controller was not heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    None,
    Since(Instant),
    /// Longer than anything may run without it.
    Endless,
}

/// The state of it, and what of that is on disk.
#[derive(Debug)]
pub(super) struct Contact {
    silence: Silence,
    /// The last silence that was told to the disk; none: nothing was.
    kept: Option<Silence>,
    keeping: bool,
}

impl Contact {
    /// An agent that starts has no session. The time without one counts from the last that an earlier run had
    /// a word of, from now where that run had a session, and is taken for over after a reboot.
    pub(super) fn at_start(past: Past, now: Instant) -> Self {
        let silence = match past {
            Past::Nothing | Past::Session => Silence::Since(now),
            Past::Silence(silence) => now.checked_sub(silence).map_or(Silence::Endless, Silence::Since),
            Past::Unknown => Silence::Endless,
        };
        Self { silence, kept: None, keeping: false }
    }

    /// The session ended, in which something was heard last at this time.
    pub(super) fn lost(&mut self, heard: Instant) {
        if self.silence == Silence::None {
            self.silence = Silence::Since(heard);
        }
    }

    /// The controller sent the document in force.
    pub(super) fn confirmed(&mut self) {
        self.silence = Silence::None;
    }

    /// The task may not run any more.
    pub(super) fn is_over(&self, document: &DesiredState, spec: &ContainerSpec, now: Instant) -> bool {
        match (self.silence, allowance(document, spec)) {
            (Silence::None, _) | (_, None) => false,
            (Silence::Endless, Some(_)) => true,
            (Silence::Since(since), Some(allowance)) => allowance <= now.saturating_duration_since(since),
        }
    }

    /// When the next task's time is over.
    pub(super) fn next_end(&self, document: &DesiredState, now: Instant) -> Option<Instant> {
        let Silence::Since(since) = self.silence else { return None };
        let allowances = document.containers.iter().filter_map(|spec| allowance(document, spec));
        let ends = allowances.filter_map(|allowance| since.checked_add(allowance));
        ends.filter(|end| now < *end).min()
    }

    /// What the disk has to be told: nothing for documents that do not care. An endless silence is there already.
    pub(super) fn news_for_disk(
        &mut self,
        document: &DesiredState,
        now: Instant,
    ) -> Option<Option<Duration>> {
        let cares = document.containers.iter().any(|spec| allowance(document, spec).is_some());
        if !cares || self.keeping || self.kept == Some(self.silence) || self.silence == Silence::Endless {
            return None;
        }
        self.kept = Some(self.silence);
        self.keeping = true;
        Some(match self.silence {
            Silence::Since(since) => Some(now.saturating_duration_since(since)),
            Silence::None | Silence::Endless => None,
        })
    }

    /// The disk has what it was told last, or cannot take it: the next change is told again.
    pub(super) fn kept(&mut self) {
        self.keeping = false;
    }
}

/// How long a task may run without the controller; none: for ever.
fn allowance(document: &DesiredState, spec: &ContainerSpec) -> Option<Duration> {
    document.stop_after_s.get(&spec.job).map(|seconds| Duration::from_secs(u64::from(*seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{document, spec};

    /// A task of each job; jobs with seconds may run that long without the controller.
    fn wanted(jobs: &[(&str, Option<u32>)]) -> DesiredState {
        let task =
            |(job, _): &(&str, Option<u32>)| ContainerSpec { job: job.parse().unwrap(), ..spec("a", "h") };
        let mut wanted = document(1, jobs.iter().map(task).collect());
        let bounded = jobs.iter().filter_map(|(job, seconds)| Some((job.parse().unwrap(), (*seconds)?)));
        wanted.stop_after_s = bounded.collect();
        wanted
    }

    #[test]
    fn the_time_counts_from_the_last_word_heard_and_ends_with_a_document() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut contact = Contact::at_start(Past::Nothing, begun);
        let wanted = wanted(&[("j", Some(30)), ("k", Some(60)), ("l", None)]);
        assert_eq!(contact.next_end(&wanted, begun), Some(after(30)));
        contact.confirmed();
        assert!(
            !contact.is_over(&wanted, &wanted.containers[0], after(1000))
                && contact.next_end(&wanted, begun).is_none()
        );
        contact.lost(after(10));
        contact.lost(after(35));
        let over =
            |at| wanted.containers.iter().map(|spec| contact.is_over(&wanted, spec, at)).collect::<Vec<_>>();
        assert_eq!(over(after(39)), [false, false, false]);
        assert_eq!(over(after(40)), [true, false, false]);
        assert_eq!(contact.next_end(&wanted, after(40)), Some(after(70)));
        assert_eq!(over(after(70)), [true, true, false]);
    }

    #[test]
    fn what_an_earlier_run_knew_goes_on() {
        let now = Instant::now() + Duration::from_secs(1000);
        let wanted = wanted(&[("j", Some(30))]);
        let is_over = |past| Contact::at_start(past, now).is_over(&wanted, &wanted.containers[0], now);
        assert!(!is_over(Past::Nothing) && !is_over(Past::Session));
        assert!(is_over(Past::Unknown) && is_over(Past::Silence(Duration::from_secs(31))));
        assert!(!is_over(Past::Silence(Duration::from_secs(29))));
    }

    #[test]
    fn the_disk_is_told_of_changes_that_matter_alone() {
        let now = Instant::now();
        let mut contact = Contact::at_start(Past::Nothing, now);
        let (cares, not) = (wanted(&[("j", Some(30))]), wanted(&[("j", None)]));
        assert_eq!(contact.news_for_disk(&not, now), None);
        assert_eq!(contact.news_for_disk(&cares, now), Some(Some(Duration::ZERO)));
        contact.confirmed();
        assert_eq!(contact.news_for_disk(&cares, now), None, "one after the other");
        contact.kept();
        assert_eq!(contact.news_for_disk(&cares, now), Some(None));
        assert_eq!(contact.news_for_disk(&cares, now), None);
        assert_eq!(Contact::at_start(Past::Unknown, now).news_for_disk(&cares, now), None);
    }
}
