//! Growing pauses between attempts: 1 s, 2 s, ... 60 s, each shortened by up to a quarter at random, so
//! that ten tasks that failed together do not start together.

use std::time::Duration;

/// The first pause.
pub(crate) const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
/// A container that ran this long counts as healthy: its next end begins at [`FIRST`] again.
pub(crate) const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// The attempts of one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure and returns the pause before the next attempt. `jitter` is in `0.0..1.0`.
    pub(crate) fn failed(&mut self, jitter: f64) -> Duration {
        // 2^6 s is beyond the longest pause already.
        let doubled = FIRST * (1 << self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        doubled.min(LONGEST).mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0))
    }

    /// Begins anew.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// A number in `0.0..1.0` that differs between tasks and moments: the hasher's keys are random.
#[must_use]
pub(crate) fn jitter() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let bits = RandomState::new().hash_one(0_u8) >> 40;
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
    let share = bits as f64 / f64::from(1_u32 << 24);
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..8).map(|_| backoff.failed(0.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        backoff.succeeded();
        assert_eq!(backoff.failed(0.0), FIRST);
    }

    #[test]
    fn jitter_takes_at_most_a_quarter() {
        assert_eq!(Backoff::default().failed(1.0), FIRST.mul_f64(0.75));
        assert!((0..100).all(|_| (0.0..1.0).contains(&jitter())));
    }
}
