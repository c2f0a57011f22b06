//! The core speed over the last minutes, from samples.
//!
//! In: the reference run and one sample every few seconds. Out: the speed to tell, which stays as it is
//! while the estimate is near it: whoever places tasks by it is not to be woken by noise.

use std::collections::VecDeque;

/// Two minutes of a sample each two seconds: longer than a burst, shorter than a job.
const SAMPLES_MAX: usize = 60;
/// The reference run is long but may have caught a quiet moment: it counts as this many samples, until
/// newer ones displace it.
const REFERENCE_SAMPLES: usize = 10;
/// One of this many samples is left out at either end: a clock rate just changing, an interrupt.
const TRIMMED_ONE_OF: usize = 10;
/// What the estimate may differ from the told speed.
const STEADY_WITHIN: f64 = 0.03;

/// A rolling estimate of the core speed.
#[derive(Debug, Clone)]
pub struct Tracker {
    samples: VecDeque<f64>,
    told: f64,
}

impl Tracker {
    /// Begins with the result of the reference run.
    #[must_use]
    pub fn new(reference: f64) -> Self {
        Self { samples: VecDeque::from([reference; REFERENCE_SAMPLES]), told: reference }
    }

    /// Takes a sample in; one that is no speed is left out.
    pub fn add(&mut self, sample: f64) {
        if !sample.is_finite() || sample <= 0.0 {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let estimate = trimmed_mean(self.samples.iter().copied().collect());
        if self.told * STEADY_WITHIN < (estimate - self.told).abs() {
            self.told = estimate;
        }
    }

    /// The speed to tell.
    #[must_use]
    pub fn core_speed(&self) -> f64 {
        self.told
    }
}

/// The mean without the least and the greatest values.
#[expect(clippy::cast_precision_loss, reason = "at most SAMPLES_MAX values")]
fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let trimmed = values.len() / TRIMMED_ONE_OF;
    let kept = &values[trimmed..values.len() - trimmed];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < right * STEADY_WITHIN
    }

    fn fed(reference: f64, samples: impl IntoIterator<Item = f64>) -> Tracker {
        let mut tracker = Tracker::new(reference);
        samples.into_iter().for_each(|sample| tracker.add(sample));
        tracker
    }

    #[test]
    fn without_samples_the_reference_run_is_told() {
        assert!((Tracker::new(2.5).core_speed() - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_lasting_change_is_followed_within_the_window() {
        assert!(close(fed(1.0, [0.85; SAMPLES_MAX]).core_speed(), 0.85));
        let back = (0..SAMPLES_MAX).map(|_| 0.85).chain((0..SAMPLES_MAX).map(|_| 1.0));
        assert!(close(fed(1.0, back).core_speed(), 1.0));
    }

    #[test]
    fn half_the_change_is_seen_once_samples_outweigh_the_reference_run() {
        let speed = fed(1.0, [0.8; REFERENCE_SAMPLES + 1]).core_speed();
        assert!(speed < 0.93 && 0.8 < speed, "{speed}");
    }

    #[test]
    fn noise_below_the_bound_changes_nothing_told() {
        let noise = (0..10 * SAMPLES_MAX).map(|index| if index % 2 == 0 { 0.9 } else { 1.1 });
        assert!((fed(1.0, noise).core_speed() - 1.0).abs() < 1e-9);
        assert!((fed(1.0, [1.02; 10 * SAMPLES_MAX]).core_speed() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn few_wild_samples_are_left_out() {
        let wild = (0..10 * SAMPLES_MAX).map(|index| if index % 15 == 0 { 0.001 } else { 1.0 });
        assert!((fed(1.0, wild).core_speed() - 1.0).abs() < 1e-9);
        assert!((fed(1.0, [f64::NAN, 0.0, -1.0, f64::INFINITY]).core_speed() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_slow_drift_is_told_before_it_exceeds_the_bound_for_long() {
        let mut tracker = Tracker::new(1.0);
        let mut told = vec![tracker.core_speed()];
        for step in 0..600 {
            tracker.add(1.0 - f64::from(step) * 0.0005);
            if tracker.core_speed().to_bits() != told[told.len() - 1].to_bits() {
                told.push(tracker.core_speed());
            }
        }
        assert!(told.len() < 15, "{told:?}");
        assert!(close(tracker.core_speed(), 0.7 + 30.0 * 0.0005), "{told:?}");
    }
}
