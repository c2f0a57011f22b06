//! From raw counts to 0..100.

use super::BEST;

/// `100 * raw / largest`; all 0 if none is above 0.
pub(super) fn by_largest(raw: &[i64]) -> Vec<i64> {
    let most = raw.iter().copied().max().unwrap_or(0);
    raw.iter().map(|raw| if most == 0 { 0 } else { BEST * raw / most }).collect()
}

/// `100 - 100 * raw / largest`: fewer is better.
pub(super) fn by_largest_reversed(raw: &[i64]) -> Vec<i64> {
    by_largest(raw).into_iter().map(|score| BEST - score).collect()
}

/// `100 * (raw - least) / (most - least)`; all 0 where they are equal.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "within 0..100")]
pub(super) fn by_range(raw: &[i64]) -> Vec<i64> {
    let (least, most) = (raw.iter().min().copied().unwrap_or(0), raw.iter().max().copied().unwrap_or(0));
    let width = (most - least) as f64;
    let score = |raw: &i64| if most > least { (100.0 * ((raw - least) as f64 / width)) as i64 } else { 0 };
    raw.iter().map(score).collect()
}
