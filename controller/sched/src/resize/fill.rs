//! One node's cores among the containers that are sized by their class.
//!
//! Everybody has its least; what is then left is divided by priority, formula 1 of "SLA classes" over those that
//! can still take more, and whoever has all that it can take leaves the rest to the others.

/// What one container may get, in thousandths of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) least: i64,
    pub(super) most: i64,
    /// What numbers of cores are multiples of.
    pub(super) unit: i64,
    pub(super) priority: i64,
}

/// What each gets of so much room; nobody gets less than its least, whatever there is.
pub(super) fn fill(claims: &[Claim], room: i64) -> Vec<i64> {
    let mut given: Vec<i64> = claims.iter().map(|claim| claim.least).collect();
    let mut left = room - given.iter().sum::<i64>();
    let mut open: Vec<usize> = (0..claims.len()).filter(|at| claims[*at].most > given[*at]).collect();
    while left > 0 && !open.is_empty() {
        let sum: i64 = open.iter().map(|at| claims[*at].priority).sum();
        let part = |at: usize| claims[at].priority.saturating_mul(left) / sum.max(1);
        let full = |at: &usize| given[*at] + part(*at) >= claims[*at].most;
        let (sated, hungry): (Vec<usize>, Vec<usize>) = open.iter().copied().partition(full);
        if sated.is_empty() {
            let parts: Vec<(usize, i64)> = open.iter().map(|at| (*at, part(*at))).collect();
            for (at, part) in parts {
                left -= raise(claims[at], &mut given[at], part);
            }
            break;
        }
        for at in sated {
            left -= claims[at].most - given[at];
            given[at] = claims[at].most;
        }
        open = hungry;
    }
    hand_out_rest(claims, &mut given, left);
    given
}

/// Adds so much, rounded down to whole units; says how much that was.
fn raise(claim: Claim, given: &mut i64, part: i64) -> i64 {
    let before = *given;
    *given = ((before + part) / claim.unit * claim.unit).clamp(before, claim.most);
    *given - before
}

/// What rounding left, a unit each, the highest priority first.
fn hand_out_rest(claims: &[Claim], given: &mut [i64], mut left: i64) {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(claims[*at].priority));
    for at in order {
        let next = (given[at] / claims[at].unit + 1) * claims[at].unit;
        let step = next.min(claims[at].most) - given[at];
        if step > 0 && step <= left {
            given[at] += step;
            left -= step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(least: i64, most: i64, priority: i64) -> Claim {
        Claim { least: least * 1000, most: most * 1000, unit: 1000, priority }
    }

    #[test]
    fn the_rest_goes_by_priority_and_nobody_exceeds_its_most() {
        let claims = [claim(7, 9, 3), claim(4, 6, 2), claim(1, 3, 1)];
        assert_eq!(fill(&claims, 12_000), [7000, 4000, 1000]);
        assert_eq!(fill(&claims, 15_000), [9000, 5000, 1000]);
        assert_eq!(fill(&claims, 99_000), [9000, 6000, 3000]);
        assert_eq!(fill(&[], 5000), [0; 0]);
    }

    #[test]
    fn who_is_sated_leaves_its_part_to_the_others() {
        let claims = [claim(1, 2, 3), claim(1, 9, 1), claim(1, 9, 1)];
        assert_eq!(fill(&claims, 9000), [2000, 4000, 3000]);
    }

    #[test]
    fn the_least_is_kept_where_there_is_too_little() {
        assert_eq!(fill(&[claim(4, 6, 2), claim(1, 3, 1)], 3000), [4000, 1000]);
    }

    #[test]
    fn nothing_is_given_that_is_not_there() {
        for room in 0..20_000 {
            let claims = [claim(1, 3, 1), claim(1, 9, 3), Claim { unit: 1, ..claim(0, 4, 2) }];
            let given = fill(&claims, room);
            assert!(given.iter().sum::<i64>() <= room.max(2000), "{room}: {given:?}");
        }
    }
}
