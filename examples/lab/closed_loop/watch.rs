//! Watches the controller's events for a job's new plans.

use crate::document::Document;
use crate::ground::Ground;
use crate::throughput::Window;
use anyhow::{Context, Result};
use edgeloom_common::view::EventView;
use std::time::{Duration, Instant};

/// How often the events are read.
const POLL: Duration = Duration::from_secs(1);

/// What happened to one job since the watch began.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    ground: &'a Ground,
    window: Window<'a>,
    seen: Seen,
}

/// The part that needs no lab.
#[derive(Debug)]
struct Seen {
    job: String,
    /// The event last seen, whatever it was about.
    last: u64,
    begun: Instant,
    /// New plans: seconds since the watch began, and what the controller says of each.
    replans: Vec<(f64, String)>,
}

impl<'a> Watch<'a> {
    /// From now on; what happened before does not count.
    pub(super) fn begin(ground: &'a Ground, document: &'a Document) -> Result<Self> {
        let last = ground.api.events_after(0)?.last().map_or(0, |event| event.number);
        let window = Window::open(&ground.engines, [document])?;
        let seen = Seen { job: document.name.clone(), last, begun: Instant::now(), replans: Vec::new() };
        Ok(Self { ground, window, seen })
    }

    /// New plans so far.
    pub(super) fn count(&self) -> usize {
        self.seen.replans.len()
    }

    pub(super) fn into_replans(self) -> Vec<(f64, String)> {
        self.seen.replans
    }

    /// What the job reached since the watch began.
    pub(super) fn items_per_s(&self) -> Result<f64> {
        self.window.close()?.first().copied().context("the watch has a job")
    }

    /// Watches for so long, telling what happens.
    pub(super) fn go_on(&mut self, length: Duration) -> Result<()> {
        let until = Instant::now() + length;
        while Instant::now() < until {
            std::thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
            for event in self.ground.api.events_after(self.seen.last)? {
                self.seen.note(event);
            }
        }
        Ok(())
    }
}

impl Seen {
    fn note(&mut self, event: EventView) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.last = self.last.max(event.number);
        if event.job.as_ref().is_none_or(|job| job.as_str() != self.job) {
            return;
        }
        println!("  {seconds:4.0} s: {}: {}", event.kind, event.text);
        if event.kind == "replan" {
            self.replans.push((seconds, event.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_plans_of_the_job_count() {
        let mut watch = Seen { job: "a".to_owned(), last: 3, begun: Instant::now(), replans: Vec::new() };
        let event = |number, job: &str, kind: &str| EventView {
            number,
            at_ms: 0,
            job: Some(job.parse().unwrap()),
            kind: kind.to_owned(),
            text: String::new(),
        };
        for seen in [event(4, "a", "shortfall"), event(5, "b", "replan"), event(6, "a", "replan")] {
            watch.note(seen);
        }
        assert_eq!((watch.replans.len(), watch.last), (1, 6));
    }
}
