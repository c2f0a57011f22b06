//! Summaries of samples, and how far they can be trusted.

/// Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean; 0 of nothing.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "samples are few")]
pub fn mean(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / samples.len() as f64 }
}

/// The geometric mean of samples, each counted as at least `floor`.
pub(crate) fn geometric_mean(samples: &[f64], floor: f64) -> f64 {
    let logarithms: Vec<f64> = samples.iter().map(|sample| sample.max(floor).ln()).collect();
    mean(&logarithms).exp()
}

/// The mean of the `count` least samples.
pub(crate) fn mean_of_least(samples: &[f64], count: usize) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    mean(&sorted[..count.min(sorted.len())])
}

/// The least sample that this part of all do not exceed; 0 of nothing.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "samples are few, and a part of them is no more"
)]
pub(crate) fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (part * sorted.len() as f64).ceil().max(1.0) as usize - 1;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// Half the width of the 95% interval of the mean; none of fewer than two samples.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "samples are few")]
pub fn ci95(samples: &[f64]) -> Option<f64> {
    let freedom = samples.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let center = mean(samples);
    let variance = samples.iter().map(|sample| (sample - center).powi(2)).sum::<f64>() / freedom as f64;
    let quantile = STUDENT.get(freedom - 1).copied().unwrap_or(1.96);
    Some(quantile * (variance / samples.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_known_sample_is_right() {
        // Mean 3, sample deviation sqrt(2.5), 4 degrees of freedom: 2.776 * sqrt(0.5).
        let half = ci95(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((half - 1.963).abs() < 1e-3, "{half}");
        assert_eq!(ci95(&[1.0]), None);
    }

    #[test]
    fn quantiles_are_samples() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!([0.0, 0.5, 0.8, 0.99].map(|part| quantile(&samples, part)), [1.0, 3.0, 4.0, 5.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn least_and_geometric_means_are_right() {
        assert_eq!(mean_of_least(&[5.0, 1.0, 3.0], 2), 2.0);
        assert!((geometric_mean(&[1.0, 4.0], 1e-6) - 2.0).abs() < 1e-12);
    }
}
