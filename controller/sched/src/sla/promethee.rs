//! PROMETHEE II: the net flow of each alternative, from pairwise preferences that are never compared in pairs.
//!
//! `P_k(d)` says how far an alternative that is better by `d` in criterion `k` is preferred, 0 to 1;
//! `phi(a) = sum over k, b of w_k (P_k(a - b) - P_k(b - a)) / ((n - 1) sum of w)`. A criterion's part depends on
//! the alternative's value alone, so running sums over sorted values give it: the four bounds between which
//! preference rises only move on from one value to the next, and all is O(q n log n) for the sorting (Calders and
//! Van Assche, "PROMETHEE is not quadratic", 2018). Everything is whole numbers: equal
//! alternatives have equal flows to the last bit, and ties are ties.

/// Criteria of the ranking: satisfaction, reputation, resources, redundancy.
pub const CRITERIA: usize = 4;

/// How one criterion counts. All are maximised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Criterion {
    /// In proportion to those of the others.
    pub weight: u16,
    /// Differences up to this are none.
    pub indifference: u16,
    /// Differences from this on are full preference, between the two it rises linearly; at or below
    /// `indifference` every difference above that is full. 0 and 0 is the usual function.
    pub preference: u16,
}

/// Alternatives of equal values, so many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alternative {
    pub values: [i32; CRITERIA],
    pub count: u32,
}

/// Distinct values of one criterion in order, with running counts and sums.
struct Column {
    values: Vec<i64>,
    counts: Vec<i128>,
    sums: Vec<i128>,
    /// Of each alternative, where its value is.
    ranks: Vec<usize>,
}

/// Where in a column preference begins and is full, for one value.
#[derive(Default)]
struct Bounds {
    /// Values before it are worse by more than indifference; of those, by preference and more.
    worse: usize,
    much_worse: usize,
    /// Values from it on are better by more than indifference; of those, by preference and more.
    better: usize,
    much_better: usize,
}

/// `phi` of each alternative, times `(n - 1) sum of w` and a factor that is the same for all.
#[must_use]
pub fn net_flows(alternatives: &[Alternative], criteria: &[Criterion; CRITERIA]) -> Vec<i128> {
    let common = criteria.iter().map(Criterion::steps).fold(1, lcm);
    let mut flows = vec![0; alternatives.len()];
    for (at, criterion) in criteria.iter().enumerate() {
        let column = Column::of(alternatives, at);
        let factor = i128::from(criterion.weight) * (common / criterion.steps());
        let of_values = column.flows(criterion);
        for (flow, rank) in flows.iter_mut().zip(column.ranks) {
            *flow += factor * of_values[rank];
        }
    }
    flows
}

impl Criterion {
    /// The denominator of its preferences. At most 2^16, so that four criteria's flows over a hundred million
    /// alternatives stay below 2^127.
    fn steps(&self) -> i128 {
        i128::from(self.preference.saturating_sub(self.indifference)).max(1)
    }
}

impl Column {
    fn of(alternatives: &[Alternative], criterion: usize) -> Self {
        // One number each, the value above the index: the quickest to sort.
        let key = |(at, one): (u32, &Alternative)| {
            u64::from(ascending(one.values[criterion])) << 32 | u64::from(at)
        };
        let mut sorted: Vec<u64> = (0..).zip(alternatives).map(key).collect();
        sorted.sort_unstable();
        let ranks = vec![0; alternatives.len()];
        let mut column = Self { values: Vec::new(), counts: vec![0], sums: vec![0], ranks };
        let (mut count, mut sum) = (0, 0);
        for key in sorted {
            let at = lower(key);
            let Alternative { values, count: of } = alternatives[at];
            let value = i64::from(values[criterion]);
            count += i128::from(of);
            sum += i128::from(of) * i128::from(value);
            if column.values.last() == Some(&value) {
                column.counts.pop();
                column.sums.pop();
            } else {
                column.values.push(value);
            }
            column.counts.push(count);
            column.sums.push(sum);
            column.ranks[at] = column.values.len() - 1;
        }
        column
    }

    /// Of each value: preference over all others less theirs over it, times the criterion's steps.
    fn flows(&self, criterion: &Criterion) -> Vec<i128> {
        let mut bounds = Bounds::default();
        let flow = |value: &i64| {
            bounds.move_on(&self.values, *value, criterion);
            self.flow(*value, &bounds, criterion)
        };
        self.values.iter().map(flow).collect()
    }

    fn flow(&self, value: i64, bounds: &Bounds, criterion: &Criterion) -> i128 {
        let Bounds { worse, much_worse, better, much_better } = *bounds;
        let all = self.values.len();
        if criterion.preference <= criterion.indifference {
            return self.count(0, worse) - self.count(better, all);
        }
        let (value, q) = (i128::from(value), i128::from(criterion.indifference));
        let gain = self.count(much_worse, worse) * (value - q) - self.sum(much_worse, worse);
        let loss = self.sum(better, much_better) - self.count(better, much_better) * (value + q);
        criterion.steps() * (self.count(0, much_worse) - self.count(much_better, all)) + gain - loss
    }

    fn count(&self, from: usize, to: usize) -> i128 {
        self.counts[to] - self.counts[from]
    }

    fn sum(&self, from: usize, to: usize) -> i128 {
        self.sums[to] - self.sums[from]
    }
}

impl Bounds {
    /// From those of a smaller value to those of this one.
    fn move_on(&mut self, values: &[i64], value: i64, criterion: &Criterion) {
        let (q, p) = (i64::from(criterion.indifference), i64::from(criterion.preference));
        pass(&mut self.worse, values, |other| other < value - q);
        pass(&mut self.better, values, |other| other <= value + q);
        if p > q {
            pass(&mut self.much_worse, values, |other| other <= value - p);
            pass(&mut self.much_better, values, |other| other < value + p);
        }
    }
}

fn pass(at: &mut usize, values: &[i64], passed: impl Fn(i64) -> bool) {
    while values.get(*at).is_some_and(|other| passed(*other)) {
        *at += 1;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn lower(key: u64) -> usize {
    key as u32 as usize
}

/// In the same order, without a sign.
const fn ascending(value: i32) -> u32 {
    value.cast_unsigned() ^ (1 << 31)
}

fn lcm(x: i128, y: i128) -> i128 {
    let (mut a, mut b) = (x, y);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    x / a * y
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, pair by pair.
    fn pairwise(alternatives: &[Alternative], criteria: &[Criterion; CRITERIA]) -> Vec<i128> {
        let common = criteria.iter().map(Criterion::steps).fold(1, lcm);
        let preference = |criterion: &Criterion, d: i64| {
            let (q, p) = (i128::from(criterion.indifference), i128::from(criterion.preference));
            let d = i128::from(d);
            if d <= q {
                0
            } else if d > p || p <= q {
                criterion.steps()
            } else {
                d - q
            }
        };
        let over = |a: &Alternative, b: &Alternative| -> i128 {
            let parts = criteria.iter().enumerate().map(|(k, criterion)| {
                let d = i64::from(a.values[k]) - i64::from(b.values[k]);
                i128::from(criterion.weight) * common / criterion.steps() * preference(criterion, d)
            });
            parts.sum()
        };
        let flow = |a: &Alternative| {
            alternatives.iter().map(|b| (over(a, b) - over(b, a)) * i128::from(b.count)).sum::<i128>()
        };
        alternatives.iter().map(flow).collect()
    }

    fn any_criterion() -> impl Strategy<Value = Criterion> {
        let parts = (0u16..5, 0u16..4, 0u16..7);
        parts.prop_map(|(weight, indifference, preference)| Criterion { weight, indifference, preference })
    }

    fn any_alternatives(values: std::ops::Range<i32>) -> impl Strategy<Value = Vec<Alternative>> {
        let one = ([values.clone(), values.clone(), values.clone(), values], 1u32..4);
        let one = one.prop_map(|(values, count)| Alternative { values, count });
        proptest::collection::vec(one, 0..40)
    }

    proptest! {
        #[test]
        fn flows_are_those_of_the_pairwise_form(
            few in any_alternatives(1..4),
            many in any_alternatives(-20..20),
            criteria in [any_criterion(), any_criterion(), any_criterion(), any_criterion()],
        ) {
            for alternatives in [few, many] {
                prop_assert_eq!(net_flows(&alternatives, &criteria), pairwise(&alternatives, &criteria));
            }
        }

        #[test]
        fn flows_sum_to_nothing(alternatives in any_alternatives(-9..9), criterion in any_criterion()) {
            let flows = net_flows(&alternatives, &[criterion; CRITERIA]);
            let sum: i128 = flows.iter().zip(&alternatives).map(|(flow, one)| flow * i128::from(one.count)).sum();
            prop_assert_eq!(sum, 0);
        }
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let extreme = |value: i32| Alternative { values: [value; CRITERIA], count: u32::MAX };
        let all = [extreme(i32::MIN), extreme(0), extreme(i32::MAX)];
        let criterion = |preference: u16| Criterion { weight: u16::MAX, indifference: 0, preference };
        let criteria = [u16::MAX, u16::MAX - 1, u16::MAX - 2, 1].map(criterion);
        let flows = net_flows(&all[..2], &criteria);
        assert!(flows[0] < 0 && flows[0] == -flows[1]);
    }
}
