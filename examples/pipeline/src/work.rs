//! Burning the declared work: so much CPU an item over all, receiving and sending included, as a measured
//! program's work would be. What the other threads took since the item before is burnt that much less.

use crate::noise::Noise;
use edgeloom_common::work::{ITERATIONS_PER_SECOND, spin};
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

/// A slice that tells how fast this core is, before the first item.
const FIRST_SLICE: u64 = ITERATIONS_PER_SECOND / 10_000;

/// The compute thread's work, item after item.
#[derive(Debug)]
pub(crate) struct Work {
    /// Iterations an item, before noise.
    declared: u64,
    noise: Noise,
    /// All iterations so far, and the CPU time that they took: the speed of this core.
    spun: u64,
    spun_time: Duration,
    /// Process CPU time that is accounted for.
    settled: Duration,
    /// Iterations that the other threads' CPU time stands for and that are still to be left out.
    credit: u64,
}

impl Work {
    /// Work of so many reference-core nanoseconds an item, more or less.
    pub(crate) fn new(work_ns: u64, noise: Noise) -> Self {
        let mut work = Self {
            declared: iterations(work_ns),
            noise,
            spun: 0,
            spun_time: Duration::ZERO,
            settled: Duration::ZERO,
            credit: 0,
        };
        work.spin(FIRST_SLICE);
        work.settled = cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID);
        work
    }

    /// Burns one item's work.
    pub(crate) fn burn(&mut self) {
        let wanted = self.noise.applied_to(self.declared);
        let left_out = self.credit.min(wanted);
        self.credit -= left_out;
        let own = self.spin(wanted - left_out);
        let now = cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID);
        let others = now.saturating_sub(self.settled).saturating_sub(own);
        self.settled = now;
        self.credit += self.iterations_in(others);
    }

    /// Spins and answers with the CPU time that it took.
    fn spin(&mut self, iterations: u64) -> Duration {
        let before = cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID);
        black_box(spin(black_box(iterations)));
        let took = cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(before);
        self.spun += iterations;
        self.spun_time += took;
        took
    }

    /// How many iterations this core does in so much time.
    fn iterations_in(&self, time: Duration) -> u64 {
        let turns = u128::from(self.spun) * time.as_nanos();
        let turns = turns.checked_div(self.spun_time.as_nanos()).unwrap_or(0);
        u64::try_from(turns).unwrap_or(u64::MAX)
    }
}

/// Iterations of the kernel for so many nanoseconds of a reference core.
fn iterations(work_ns: u64) -> u64 {
    let turns = u128::from(work_ns) * u128::from(ITERATIONS_PER_SECOND) / 1_000_000_000;
    u64::try_from(turns).unwrap_or(u64::MAX)
}

/// A clock that does not read counts nothing: the stage then burns all it declared.
fn cpu_time(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_time_becomes_iterations() {
        assert_eq!(iterations(1_000_000_000), ITERATIONS_PER_SECOND);
        assert_eq!(iterations(0), 0);
    }

    #[test]
    fn what_others_took_is_left_out_later_and_once() {
        let mut work = Work::new(1_000_000, Noise::new("a", 0.0));
        work.credit = work.declared + 10;
        let before = work.spun;
        work.burn();
        assert_eq!(work.spun, before, "all of the item was left out");
        assert!(work.credit >= 10);
    }

    #[test]
    fn without_work_nothing_is_burnt() {
        let mut work = Work::new(0, Noise::new("a", 0.2));
        let before = work.spun;
        work.burn();
        assert_eq!(work.spun, before);
    }
}
