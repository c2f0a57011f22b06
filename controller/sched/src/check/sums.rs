//! The rules that look at all jobs together: what nodes and links have to give.

use std::collections::BTreeSet;

use super::Violation;
use crate::filter::{Amount, Fit, shortage};
use crate::ledger::{HeldJobs, Ledger};
use crate::plan::JobPlan;
use crate::world::World;

/// Requested CPU, memory and storage stay within what each node has.
pub(super) fn nodes_hold(world: &World<'_>, held: &HeldJobs<'_>, plans: &[&JobPlan]) -> Vec<Violation> {
    let ledger = Ledger::of(world, held.values());
    let touched: BTreeSet<usize> =
        plans.iter().flat_map(|plan| plan.placement.values()).filter_map(|node| world.index(node)).collect();
    let over = touched.into_iter().filter_map(|node| {
        let has = Amount::from(world.nodes[node]);
        let mut asked = has;
        asked -= ledger.free[node];
        let text = shortage(&has, &asked, Fit::AtLeast)?;
        Some(Violation::Node { node: world.name(node).clone(), text })
    });
    over.collect()
}

/// The rates on each link direction (both together on a half-duplex link) stay within its share.
pub(super) fn links_hold(world: &World<'_>, held: &HeldJobs<'_>, plans: &[&JobPlan]) -> Vec<Violation> {
    let ledger = Ledger::of(world, held.values());
    let mut touched = BTreeSet::new();
    for flow in plans.iter().flat_map(|plan| &plan.flows) {
        touched.extend(world.pools_of(&flow.path));
    }
    let mut violations = Vec::new();
    for arc in &world.graph.arcs {
        let (given, capacity) = (ledger.reserved[arc.pool], world.capacity[arc.pool]);
        // Half a bit: the capacity's share may be no whole number, and its product is rounded.
        if given > capacity + 0.5 && touched.remove(&arc.pool) {
            violations.push(Violation::Link {
                from: world.name(arc.from).clone(),
                to: world.name(arc.to).clone(),
                given: crate::streaming::whole_bits(given).0,
                capacity: crate::streaming::whole_bits(capacity).0,
            });
        }
    }
    violations
}
