//! Rates over a window: each report's value holds for the time since the report before.

use std::collections::VecDeque;

/// Longer stretches are not kept, whatever window is asked for.
const KEPT_MS: u64 = 60_000;

/// One reported value, and the time it is the mean of.
#[derive(Debug, Clone, Copy)]
struct Sample {
    end_ms: u64,
    length_ms: u64,
    rate: f64,
    backlogged: bool,
}

/// The mean over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub(crate) rate: f64,
    /// Part of the time at whose end the class had a backlog, 0 to 1.
    pub(crate) backlogged: f64,
    /// Time that samples cover.
    pub(crate) covered_ms: u64,
}

/// The samples of one flow or container.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// The first report is behind us: it may count what happened before.
    begun: bool,
    samples: VecDeque<Sample>,
}

impl Series {
    /// Adds what was reported at `end_ms` for the `length_ms` before it. The first report only begins.
    pub(crate) fn add(&mut self, (end_ms, length_ms): (u64, u64), rate: f64, backlogged: bool) {
        if !std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.samples.push_back(Sample { end_ms, length_ms, rate, backlogged });
        while self.samples.front().is_some_and(|oldest| oldest.end_ms + KEPT_MS < end_ms) {
            self.samples.pop_front();
        }
    }

    /// The mean of the last `window_ms`; samples count as far as they reach into it.
    #[expect(clippy::cast_precision_loss, reason = "a minute of milliseconds")]
    pub(crate) fn mean(&self, now_ms: u64, window_ms: u64) -> Option<Mean> {
        let from_ms = now_ms.saturating_sub(window_ms);
        let (mut covered_ms, mut sum, mut backlogged) = (0, 0.0, 0.0);
        for sample in &self.samples {
            let begin_ms = sample.end_ms.saturating_sub(sample.length_ms).max(from_ms);
            let length_ms = sample.end_ms.saturating_sub(begin_ms);
            covered_ms += length_ms;
            sum += sample.rate * length_ms as f64;
            backlogged += if sample.backlogged { length_ms as f64 } else { 0.0 };
        }
        let total = covered_ms as f64;
        (covered_ms > 0).then(|| Mean { rate: sum / total, backlogged: backlogged / total, covered_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn a_mean_weighs_by_time_and_ends_at_the_window() {
        let mut series = Series::default();
        series.add((0, 10_000), 9e9, false);
        assert_eq!(series.mean(0, 10_000), None, "the first report may count what was before");
        series.add((10_000, 10_000), 100.0, false);
        series.add((12_000, 2_000), 400.0, true);
        let all = series.mean(12_000, 12_000).unwrap();
        assert!(close(all.rate, (100.0 * 10.0 + 400.0 * 2.0) / 12.0) && all.covered_ms == 12_000);
        let late = series.mean(12_000, 4_000).unwrap();
        assert!(close(late.rate, 250.0) && close(late.backlogged, 0.5) && late.covered_ms == 4_000);
        assert_eq!(series.mean(80_000, 10_000), None, "what is old says nothing");
    }
}
