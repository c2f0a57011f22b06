//! Capacities and speeds that plans may lean on, from what nodes report of the moment.
//!
//! In: what both ends of a link say, each node's core speed, and what starved flows showed a link to carry.
//! Out: steady values. A link counts as nothing while one of its ends says that it is down, unless an end is
//! offline: then it keeps what it had, and a node that comes back finds its links as they were.

use crate::replan::Direction;
use crate::replan::steady::Steady;
use edgeloom_common::ids::NodeId;
use edgeloom_common::units::BitRate;
use std::collections::BTreeMap;

/// How long a rate that starved flows showed is taken for the capacity: their node measures it anew only
/// when the link is quiet.
const SHOWN_MS: u64 = 600_000;

/// All steady values.
#[derive(Debug, Default)]
pub(crate) struct Capacities {
    links: BTreeMap<Direction, Steady>,
    speeds: BTreeMap<NodeId, Steady>,
    /// What flows showed a link to carry, and until when it counts.
    shown: BTreeMap<Direction, (f64, u64)>,
}

impl Capacities {
    /// Looks at one direction of a link: wire capacity in bits a second, 0 while it is down.
    pub(crate) fn look_at_link(&mut self, direction: Direction, capacity: BitRate, now_ms: u64) {
        let shown = self.shown.get(&direction).filter(|(_, until_ms)| now_ms < *until_ms);
        let value = shown.map_or(capacity.as_f64(), |(rate, _)| rate.min(capacity.as_f64()));
        let steady = self.links.entry(direction).or_insert_with(|| Steady::new(value));
        steady.look(value, now_ms);
    }

    /// One end of the link is not there, so nothing is known of the link.
    pub(crate) fn excuse_link(&mut self, direction: &Direction) {
        if let Some(steady) = self.links.get_mut(direction) {
            steady.excuse();
        }
    }

    pub(crate) fn look_at_speed(&mut self, node: &NodeId, speed: f64, now_ms: u64) {
        match self.speeds.get_mut(node) {
            Some(steady) => drop(steady.look(speed, now_ms)),
            None => drop(self.speeds.insert(node.clone(), Steady::new(speed))),
        }
    }

    /// Flows with packets waiting got no more than this over the link.
    pub(crate) fn show(&mut self, direction: Direction, rate_bps: f64, now_ms: u64) {
        self.shown.retain(|_, (_, until_ms)| now_ms < *until_ms);
        self.shown.insert(direction, (rate_bps, now_ms + SHOWN_MS));
    }

    /// The steady capacity; none while the link is not known or carries nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a bit rate")]
    pub(crate) fn link(&self, from: &NodeId, to: &NodeId) -> Option<BitRate> {
        let told = self.links.get(&(from.clone(), to.clone()))?.told();
        (told >= 1.0).then_some(BitRate(told as u64))
    }

    /// What was told of a link before it fell to nothing, in bits a second.
    pub(crate) fn before(&self, from: &NodeId, to: &NodeId) -> f64 {
        self.links.get(&(from.clone(), to.clone())).map_or(0.0, Steady::before)
    }

    pub(crate) fn speed(&self, node: &NodeId) -> Option<f64> {
        self.speeds.get(node).map(Steady::told)
    }

    /// Every direction that is known, with its capacity in bits a second.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&Direction, f64)> {
        self.links.iter().map(|(direction, steady)| (direction, steady.told()))
    }

    pub(crate) fn speeds(&self) -> impl Iterator<Item = (&NodeId, f64)> {
        self.speeds.iter().map(|(node, steady)| (node, steady.told()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starved_flows_show_counts_until_it_is_old() {
        let direction: Direction = ("n1".parse().unwrap(), "n2".parse().unwrap());
        let mut capacities = Capacities::default();
        let look = |capacities: &mut Capacities, now_ms| {
            capacities.look_at_link(direction.clone(), BitRate(20_000_000), now_ms);
            capacities.link(&direction.0, &direction.1)
        };
        assert_eq!(look(&mut capacities, 0), Some(BitRate(20_000_000)));
        capacities.show(direction.clone(), 8e6, 0);
        look(&mut capacities, 1_000);
        assert_eq!(look(&mut capacities, 6_000), Some(BitRate(8_000_000)));
        look(&mut capacities, SHOWN_MS + 1_000);
        assert_eq!(look(&mut capacities, SHOWN_MS + 11_000), Some(BitRate(20_000_000)));
    }
}
