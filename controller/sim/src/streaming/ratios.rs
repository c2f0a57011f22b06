//! How much better than another profile: ratios paired by seed, so that a lucky cluster helps neither.

use serde::Serialize;

use super::report::Summary;
use crate::statistics::{ci95, mean};

/// What is compared counts as at least this: items a second, and seconds.
const LEAST_ITEMS_PER_S: f64 = 1e-6;
const LEAST_WAIT_S: f64 = 1e-3;

/// A profile's metrics over those of the profile that it is compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratios {
    pub mean: Ratio,
    pub geomean: Ratio,
    pub worst5: Ratio,
    pub wait: Ratio,
}

/// The mean over seeds of one seed's ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    pub mean: f64,
    /// Half the width of the 95% interval; none with one seed.
    pub ci95: Option<f64>,
    /// The ratio of the two means: single seeds with next to nothing below the line do not rule it.
    pub of_means: f64,
}

impl Ratios {
    /// Of summaries of the same seeds in the same order.
    pub(super) fn of(own: &Summary, other: &Summary) -> Self {
        Self {
            mean: Ratio::of(&own.mean, &other.mean, LEAST_ITEMS_PER_S),
            geomean: Ratio::of(&own.geomean, &other.geomean, LEAST_ITEMS_PER_S),
            worst5: Ratio::of(&own.worst5, &other.worst5, LEAST_ITEMS_PER_S),
            wait: Ratio::of(&own.wait_s, &other.wait_s, LEAST_WAIT_S),
        }
    }
}

impl Ratio {
    /// Of samples of the same seeds in the same order, each counted as at least `least`.
    #[must_use]
    pub fn of(own: &[f64], other: &[f64], least: f64) -> Self {
        let ratio = |(own, other): (&f64, &f64)| own.max(least) / other.max(least);
        let ratios: Vec<f64> = own.iter().zip(other).map(ratio).collect();
        Self { mean: mean(&ratios), ci95: ci95(&ratios), of_means: ratio((&mean(own), &mean(other))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_seed_by_seed() {
        // 2/1 and 3/6: mean 1.25, where the means' ratio is 5/7; the interval is 12.706 * 1.5/2.
        let ratio = Ratio::of(&[2.0, 3.0], &[1.0, 6.0], 1e-6);
        assert_eq!(ratio.mean, 1.25);
        assert!((ratio.of_means - 5.0 / 7.0).abs() < 1e-12);
        assert!((ratio.ci95.unwrap() - 12.706 * 0.75).abs() < 1e-9);
    }

    #[test]
    fn nothing_over_nothing_is_one() {
        assert_eq!(Ratio::of(&[0.0], &[0.0], 1e-3).mean, 1.0);
    }
}
