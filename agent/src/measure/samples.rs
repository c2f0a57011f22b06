//! Processor time between a container's start and its end, from readings of a counter that began earlier.
//!
//! Making a container costs processor time in its own group before the program runs (tens of milliseconds of
//! the container runtime); what stood on the counter at the start is taken off.

use crate::engine::trial::{TrialEnd, TrialUse};
use edgeloom_common::units::Bytes;
use std::time::Duration;

/// Readings kept around the start. It is known only when the container has ended; at one reading in 10 ms
/// these last for 20 s, longer than any engine takes to start a container.
const FIRST_MAX: usize = 2048;

/// The readings of one run.
#[derive(Debug, Default)]
pub(super) struct Samples {
    first: Vec<TrialUse>,
    last: Option<TrialUse>,
    memory_peak: Bytes,
}

impl Samples {
    pub(super) fn add(&mut self, used: TrialUse) {
        if self.first.len() < FIRST_MAX {
            self.first.push(used);
        }
        self.memory_peak = self.memory_peak.max(used.memory_peak);
        self.last = Some(used);
    }

    /// The highest memory; none without a reading.
    pub(super) fn memory_peak(&self) -> Option<Bytes> {
        self.last.map(|_| self.memory_peak)
    }

    /// Processor time from start to end; none without a reading after the start.
    pub(super) fn cpu(&self, ended: &TrialEnd) -> Option<Duration> {
        let last = self.last.filter(|last| last.at >= ended.started)?;
        Some(last.cpu.saturating_sub(self.at_start(ended.started)))
    }

    /// The counter at the start, between the readings before and after it.
    fn at_start(&self, started: Duration) -> Duration {
        let after = self.first.partition_point(|used| used.at < started);
        let (Some(before), Some(after)) =
            (after.checked_sub(1).map(|index| self.first[index]), self.first.get(after))
        else {
            // Without a reading before, nothing tells the runtime's share: it stays in.
            return Duration::ZERO;
        };
        let span = after.at.saturating_sub(before.at).as_secs_f64();
        let share = if span > 0.0 { (started - before.at).as_secs_f64() / span } else { 0.0 };
        before.cpu + after.cpu.saturating_sub(before.cpu).mul_f64(share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(at_ms: u64, cpu_ms: u64) -> TrialUse {
        let (at, cpu) = (Duration::from_millis(at_ms), Duration::from_millis(cpu_ms));
        TrialUse { at, cpu, memory_peak: Bytes(at_ms) }
    }

    fn ended(started_ms: u64, finished_ms: u64) -> TrialEnd {
        TrialEnd {
            started: Duration::from_millis(started_ms),
            finished: Duration::from_millis(finished_ms),
            exit_code: 0,
            out_of_memory: false,
        }
    }

    fn samples(all: &[TrialUse]) -> Samples {
        let mut samples = Samples::default();
        all.iter().for_each(|used| samples.add(*used));
        samples
    }

    #[test]
    fn what_the_runtime_took_before_the_start_is_taken_off() {
        let samples = samples(&[used(100, 30), used(110, 40), used(120, 40), used(500, 400)]);
        assert_eq!(samples.cpu(&ended(115, 501)), Some(Duration::from_millis(360)));
        assert_eq!(
            samples.cpu(&ended(105, 501)),
            Some(Duration::from_millis(365)),
            "half way between two readings"
        );
        assert_eq!(samples.memory_peak(), Some(Bytes(500)));
    }

    #[test]
    fn a_run_without_readings_has_no_figures() {
        assert_eq!(samples(&[]).cpu(&ended(1, 2)), None);
        assert_eq!(samples(&[]).memory_peak(), None);
        assert_eq!(samples(&[used(5, 1)]).cpu(&ended(10, 11)), None, "it ended before it was read");
    }

    #[test]
    fn a_long_run_keeps_its_beginning_and_its_end() {
        let mut samples = Samples::default();
        (0..10_000).for_each(|turn| samples.add(used(turn, turn)));
        assert_eq!(samples.first.len(), FIRST_MAX);
        assert_eq!(samples.cpu(&ended(1000, 10_000)), Some(Duration::from_millis(8999)));
    }
}
