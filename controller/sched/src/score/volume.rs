//! VolumeBinding: the tighter volumes fit, the higher the score.

use super::BEST;

/// What is asked of a class of storage, and what the node has of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub(super) requested: u64,
    pub(super) capacity: u64,
}

/// A point of the function from use in hundredths to score.
pub(super) type Point = (i64, i64);

/// The default: as full as it gets.
pub(super) const TIGHT: [Point; 2] = [(0, 0), (100, BEST)];

/// The rounded mean over the classes; 0 without any.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "scores are small")]
pub(super) fn volume_binding(classes: &[Class], shape: &[Point]) -> i64 {
    if classes.is_empty() {
        return 0;
    }
    let sum: i64 = classes.iter().map(|class| one(*class, shape)).sum();
    (sum as f64 / classes.len() as f64).round() as i64
}

fn one(class: Class, shape: &[Point]) -> i64 {
    if class.capacity == 0 || class.requested > class.capacity {
        return at(shape, 100);
    }
    let used = u128::from(class.requested) * 100 / u128::from(class.capacity);
    at(shape, i64::try_from(used).unwrap_or(100))
}

/// Linear between points, level outside.
fn at(shape: &[Point], used: i64) -> i64 {
    let mut below: Option<Point> = None;
    for point in shape {
        if used <= point.0 {
            return match below {
                None => point.1,
                Some((from, score)) => score + (point.1 - score) * (used - from) / (point.0 - from),
            };
        }
        below = Some(*point);
    }
    below.map_or(0, |(_, score)| score)
}
