//! Which source entries may change in one step without overbooking a link, whatever is applied first.
//!
//! A flow in change may be found in its old or its new state, so it is counted at the larger of both on
//! every link. What a link may carry is the larger of its sums before and after the whole change.

use crate::barrier::{TRICKLE, find};
use crate::documents::Documents;
use edgeloom_common::desired::FlowSpec;
use edgeloom_common::ids::{FlowId, NodeId};
use edgeloom_common::units::BitRate;
use std::collections::BTreeMap;

type Direction = (NodeId, NodeId);
type Sums = BTreeMap<Direction, BTreeMap<FlowId, u64>>;

/// Rates by link and flow.
#[derive(Debug)]
pub(crate) struct Booking<'a> {
    published: &'a Documents,
    wanted: &'a Documents,
    bound: BTreeMap<Direction, u64>,
    booked: Sums,
}

impl<'a> Booking<'a> {
    /// For a step to `wanted` on the way to `last`, which counts as after the change.
    pub(crate) fn new(published: &'a Documents, wanted: &'a Documents, last: &Documents) -> Self {
        let (booked, after) = (sums(published), sums(last));
        let mut bound = totals(&booked);
        for (direction, total) in totals(&after) {
            let larger = bound.entry(direction).or_default();
            *larger = total.max(*larger);
        }
        Self { published, wanted, bound, booked }
    }

    /// The new source entries that fit now, in the order of their ids. A flow that changes its way for
    /// which only a part of its rate is free goes with that part.
    pub(crate) fn allowed(&mut self, ready: impl Fn(&FlowSpec) -> bool) -> Vec<(NodeId, FlowSpec)> {
        let mut found = Vec::new();
        for (node, flow) in sources(self.wanted) {
            let old = find(self.published.get(node), &flow.id);
            if old == Some(flow) || !ready(flow) {
                continue;
            }
            let free = self.free(flow);
            let wanted = flow.rate.unwrap_or_default();
            let least = if old.is_some_and(|old| old.path == flow.path) {
                old.and_then(|old| old.rate)
            } else {
                None
            };
            let floor = least.unwrap_or_default().max(TRICKLE).min(wanted);
            let rate = wanted.min(BitRate(free)).max(floor);
            let moves = old.is_none_or(|old| old.path != flow.path || old.key != flow.key);
            // A new flow waits for all of its rate; one that moves goes with what is free.
            let goes = match old {
                None => free >= wanted.0,
                Some(old) => {
                    (moves && free >= floor.0.min(TRICKLE.0))
                        || old.rate < Some(rate)
                        || (moves && old.rate <= Some(TRICKLE))
                }
            };
            if goes {
                let entry = FlowSpec { rate: Some(rate), ..flow.clone() };
                self.book(&entry);
                found.push((node.clone(), entry));
            }
        }
        found
    }

    /// What every link of the flow's way has left for it.
    fn free(&self, flow: &FlowSpec) -> u64 {
        let left = |direction: Direction| {
            let others: u64 = self.booked.get(&direction).map_or(0, |rates| {
                rates.iter().filter(|(id, _)| **id != flow.id).map(|(_, rate)| rate).sum()
            });
            self.bound.get(&direction).copied().unwrap_or(0).saturating_sub(others)
        };
        directions(flow).map(left).min().unwrap_or(0)
    }

    fn book(&mut self, flow: &FlowSpec) {
        for direction in directions(flow) {
            let rate = self.booked.entry(direction).or_default().entry(flow.id.clone()).or_default();
            *rate = (*rate).max(flow.rate.unwrap_or_default().0);
        }
    }
}

fn directions(flow: &FlowSpec) -> impl Iterator<Item = Direction> + '_ {
    flow.path.windows(2).map(|hop| (hop[0].clone(), hop[1].clone()))
}

/// Entries that have a rate, which are those of first nodes.
pub(crate) fn sources(documents: &Documents) -> Vec<(&NodeId, &FlowSpec)> {
    let mut found: Vec<_> = documents
        .iter()
        .flat_map(|(node, document)| document.flows.iter().map(move |flow| (node, flow)))
        .filter(|(_, flow)| flow.rate.is_some())
        .collect();
    found.sort_by(|x, y| x.1.id.cmp(&y.1.id));
    found
}

fn sums(documents: &Documents) -> Sums {
    let mut sums = Sums::new();
    for (_, flow) in sources(documents) {
        for direction in directions(flow) {
            sums.entry(direction).or_default().insert(flow.id.clone(), flow.rate.unwrap_or_default().0);
        }
    }
    sums
}

fn totals(sums: &Sums) -> BTreeMap<Direction, u64> {
    sums.iter().map(|(direction, rates)| (direction.clone(), rates.values().sum())).collect()
}
