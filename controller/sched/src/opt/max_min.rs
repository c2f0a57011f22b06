//! Weighted max-min fairness by progressive filling: all levels rise together, each at its weight's pace,
//! until a pool is full or a limit is met; those that are stopped stay, the others go on.

/// One that draws on pools: a unit of its level takes `uses[i].1` of pool `uses[i].0`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Consumer {
    pub(crate) uses: Vec<(usize, f64)>,
    pub(crate) weight: f64,
    pub(crate) limit: f64,
}

/// The level of each consumer. One that uses no pool gets its limit.
pub(crate) fn fill(consumers: &[Consumer], capacity: &[f64]) -> Vec<f64> {
    let mut left = capacity.to_vec();
    let mut level = vec![0.0; consumers.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, consumer) in consumers.iter().enumerate() {
        if consumer.uses.is_empty() {
            level[index] = consumer.limit;
        } else if consumer.weight > 0.0 && consumer.limit > 0.0 {
            open.push(index);
        }
    }
    while !open.is_empty() {
        let pace = paces(consumers, &open, capacity.len());
        let step = step(consumers, &open, &level, &left, &pace);
        for index in &open {
            level[*index] += step * consumers[*index].weight;
        }
        for (pool, pace) in pace.iter().enumerate() {
            left[pool] -= step * pace;
        }
        let still = |index: &usize| {
            let consumer = &consumers[*index];
            let full =
                consumer.uses.iter().any(|(pool, _)| left[*pool] <= capacity[*pool].max(1e-300) * 1e-12);
            !full && level[*index] < consumer.limit * (1.0 - 1e-12)
        };
        let before = open.len();
        open.retain(still);
        if open.len() == before {
            break;
        }
    }
    level
}

/// How fast each pool empties while these consumers rise.
fn paces(consumers: &[Consumer], open: &[usize], pools: usize) -> Vec<f64> {
    let mut pace = vec![0.0; pools];
    for index in open {
        for (pool, share) in &consumers[*index].uses {
            pace[*pool] += share * consumers[*index].weight;
        }
    }
    pace
}

/// How far all may rise until the first is stopped.
fn step(consumers: &[Consumer], open: &[usize], level: &[f64], left: &[f64], pace: &[f64]) -> f64 {
    let by_pool =
        left.iter().zip(pace).filter(|(_, pace)| **pace > 0.0).map(|(left, pace)| left.max(0.0) / pace);
    let by_limit =
        open.iter().map(|index| (consumers[*index].limit - level[*index]) / consumers[*index].weight);
    by_pool.chain(by_limit).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumer(uses: &[usize], limit: f64) -> Consumer {
        Consumer { uses: uses.iter().map(|pool| (*pool, 1.0)).collect(), weight: 1.0, limit }
    }

    #[test]
    fn the_textbook_line_of_two_links_is_shared_fairly() {
        let all =
            [consumer(&[0, 1], f64::INFINITY), consumer(&[0], f64::INFINITY), consumer(&[1], f64::INFINITY)];
        assert_eq!(fill(&all, &[10.0, 4.0]), vec![2.0, 8.0, 2.0]);
    }

    #[test]
    fn what_a_limited_one_leaves_goes_to_the_others() {
        let all = [consumer(&[0], 1.0), consumer(&[0], f64::INFINITY)];
        assert_eq!(fill(&all, &[10.0]), vec![1.0, 9.0]);
    }

    #[test]
    fn an_empty_pool_gives_nothing_and_no_pool_gives_the_limit() {
        assert_eq!(fill(&[consumer(&[0], 5.0), consumer(&[], 7.0)], &[0.0]), vec![0.0, 7.0]);
    }
}
