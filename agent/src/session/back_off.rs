//! Pauses between attempts to connect.

use std::time::Duration;

const BACK_OFF_MIN: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// Exponential pauses between attempts, each cut by up to a half at random so that the nodes of a
/// cluster do not come back all at once.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    attempts: u32,
}

impl BackOff {
    pub(super) fn next_pause(&mut self) -> Duration {
        let doubled = BACK_OFF_MIN.saturating_mul(1 << self.attempts.min(16));
        self.attempts = self.attempts.saturating_add(1);
        doubled.min(BACK_OFF_MAX) * fastrand::u32(500..=1000) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_bound_and_no_further() {
        let mut back_off = BackOff::default();
        let pauses: Vec<Duration> = (0..200).map(|_| back_off.next_pause()).collect();
        assert!(pauses[0] >= BACK_OFF_MIN / 2 && pauses[0] <= BACK_OFF_MIN);
        assert!(pauses[10..].iter().all(|pause| *pause >= BACK_OFF_MAX / 2 && *pause <= BACK_OFF_MAX));
    }
}
