//! How often values were how large.

/// Counts by upper bounds, which never fall.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Rising.
    bounds: &'static [f64],
    /// One more than bounds: the last is of values above them all.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// A value that is no number or below zero counts as zero: sums never fall either.
    pub(crate) fn add(&mut self, value: f64) {
        let value = value.max(0.0);
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// Each bound with the number of values up to it.
    pub fn up_to(&self) -> impl Iterator<Item = (f64, u64)> {
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        self.bounds.iter().copied().zip(sums)
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_their_bound_and_above_all() {
        let mut histogram = Histogram::new(&[0.1, 1.0]);
        for value in [0.05, 0.1, 0.5, 7.0, f64::NAN, -3.0] {
            histogram.add(value);
        }
        assert_eq!(histogram.up_to().collect::<Vec<_>>(), [(0.1, 4), (1.0, 5)]);
        assert_eq!(histogram.count(), 6);
        assert!((histogram.sum() - 7.65).abs() < 1e-9);
    }
}
