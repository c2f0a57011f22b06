//! Step 1, selection: the queue in the order of net flows.
//!
//! Whoever has the same values has the same flow, so the queue is kept as one line a combination of values:
//! there are 81 of them at most where all values are services, however many wait. Flows are found anew
//! whenever somebody has left, as the paper's endless loop does.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::params::{Order, Rules};
use super::promethee::{Alternative, CRITERIA, net_flows};

/// Values of one that waits.
pub type Values = [i32; CRITERIA];

/// Who waits, by number in the order of arrival.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    rules: &'a Rules,
    lines: BTreeMap<Values, Vec<usize>>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(rules: &'a Rules, values: impl Iterator<Item = Values>) -> Self {
        // A tree of what is sorted already is built in one go.
        let mut sorted: Vec<(Values, usize)> =
            values.enumerate().map(|(number, values)| (values, number)).collect();
        sorted.sort_unstable();
        let line =
            |equal: &[(Values, usize)]| (equal[0].0, equal.iter().map(|(_, number)| *number).collect());
        let lines = sorted.chunk_by(|x, y| x.0 == y.0).map(line).collect();
        Self { rules, lines }
    }

    /// All that wait, the next one first.
    pub(super) fn order(&self) -> impl Iterator<Item = usize> + '_ {
        let alternative = |(values, line): (&Values, &Vec<usize>)| Alternative {
            values: *values,
            count: u32::try_from(line.len()).unwrap_or(u32::MAX),
        };
        let alternatives: Vec<Alternative> = self.lines.iter().map(alternative).collect();
        let flows = match self.rules.order {
            Order::NetFlow => net_flows(&alternatives, &self.rules.criteria),
            Order::Arrival => vec![0; alternatives.len()],
        };
        // The highest flow is taken, of equal ones who came first.
        let mut ranked: Vec<(i128, &Vec<usize>)> = flows.into_iter().zip(self.lines.values()).collect();
        ranked.sort_unstable_by_key(|(flow, _)| Reverse(*flow));
        let mut ranked = ranked.into_iter().peekable();
        let equal = std::iter::from_fn(move || {
            let (flow, line) = ranked.next()?;
            let mut numbers = line.clone();
            while let Some((_, line)) = ranked.next_if(|(other, _)| *other == flow) {
                numbers.extend(line);
            }
            numbers.sort_unstable();
            Some(numbers)
        });
        equal.flatten()
    }

    /// Takes one out.
    pub(super) fn leave(&mut self, number: usize, values: &Values) {
        let Some(line) = self.lines.get_mut(values) else { return };
        line.retain(|other| *other != number);
        if line.is_empty() {
            self.lines.remove(values);
        }
    }
}

/// The order in which a queue of such values, given in the order of arrival, would be served.
#[must_use]
pub fn ranking(values: &[Values], rules: &Rules) -> Vec<usize> {
    Queue::new(rules, values.iter().copied()).order().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_class_goes_first_and_equals_in_the_order_of_arrival() {
        let rules = Rules::PAPER;
        let queue = [[1; 4], [3; 4], [2; 4], [3; 4], [1; 4]];
        assert_eq!(ranking(&queue, &rules), [1, 3, 2, 0, 4]);
        assert_eq!(ranking(&queue, &Rules { order: Order::Arrival, ..rules }), [0, 1, 2, 3, 4]);
        assert!(ranking(&[], &rules).is_empty());
    }

    #[test]
    fn equal_flows_of_different_classes_are_a_tie() {
        // Mirror images: what one has in satisfaction the other has in resources.
        let rules = Rules::PAPER;
        assert_eq!(ranking(&[[1, 1, 3, 1], [3, 1, 1, 1]], &rules), [0, 1]);
        let mut weighted = rules;
        weighted.criteria[0].weight = 2;
        assert_eq!(ranking(&[[1, 1, 3, 1], [3, 1, 1, 1]], &weighted), [1, 0]);
    }

    #[test]
    fn who_leaves_changes_the_flows_of_those_who_stay() {
        let rules = Rules::PAPER;
        // Worse less better ones: 2 - 2 = 0, 0 + 2 = 2, -2 + 0 = -2.
        let values = [[3, 1, 1, 1], [2, 3, 1, 1], [1, 2, 1, 1]];
        assert_eq!(ranking(&values, &rules), [1, 0, 2]);
        let mut queue = Queue::new(&rules, values.into_iter());
        queue.leave(1, &values[1]);
        assert_eq!(queue.order().collect::<Vec<_>>(), [0, 2]);
        queue.leave(0, &values[0]);
        queue.leave(2, &values[2]);
        assert_eq!(queue.order().count(), 0);
    }
}
