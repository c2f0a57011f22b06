//! Paths of the `edgeloom` profile: as short as the throughput allows.
//!
//! Each hop costs latency, the relay's CPU and capacity that other jobs may want. The flows take the fewest
//! hops as long as what the job needs (wire bits an item times the items a second that source and processors
//! allow) fits each link with headroom. Only where it does not, the least congested paths are searched
//! for; they say what the network can carry, and are then shortened wherever that costs no throughput.

use super::jrba::{demands, network_limit};
use super::params::HEADROOM;
use super::predict::compute_limit;
use super::{Case, Routed};
use crate::opt::congestion::{Demand, Network, greedy, improve};
use crate::opt::fewest_hops::{fit, shorten, traffic};

/// Paths for the flows of a placement over the given capacities; rates are left at 0. None if a flow has no
/// path at all.
pub(crate) fn paths(case: &Case<'_>, nodes: &[usize], capacity: &[f64]) -> Option<Vec<Routed>> {
    let edges = case.flows(nodes);
    let demands = demands(case, nodes, &edges);
    let limit = compute_limit(case, nodes).items_per_s;
    let roomy = budget(capacity, HEADROOM / limit);
    let short = fit(Network { graph: &case.world.graph, capacity: &roomy }, &demands);
    let paths = match short {
        Some(paths) => paths,
        None => within_throughput(Network { graph: &case.world.graph, capacity }, &demands, limit)?,
    };
    let routed = edges.into_iter().zip(paths).map(|(edge, path)| Routed { edge, path, rate: 0.0 });
    Some(routed.collect())
}

/// The least congested paths, shortened as far as the throughput they reach stays, with headroom where
/// they leave any.
fn within_throughput(network: Network<'_>, demands: &[Demand], limit: f64) -> Option<Vec<Vec<usize>>> {
    let least = improve(network, demands, greedy(network, demands)?);
    let carried = 1.0 / network.congestion(&network.loads(demands, &least));
    let needed = limit.min(carried);
    // Bits an item that each link may take, as a part of its capacity.
    let share = (HEADROOM / needed).max(1.0 / carried);
    let capacity = budget(network.capacity, share);
    let bounded = Network { capacity: &capacity, ..network };
    let shortened = shorten(bounded, demands, least);
    let anew = fit(bounded, demands).map(|paths| shorten(bounded, demands, paths));
    let better = anew.filter(|paths| traffic(demands, paths) < traffic(demands, &shortened));
    Some(better.unwrap_or(shortened))
}

fn budget(capacity: &[f64], share: f64) -> Vec<f64> {
    capacity.iter().map(|capacity| capacity * share).collect()
}

/// Items a second that a routed placement reaches.
pub(crate) fn reached(case: &Case<'_>, nodes: &[usize], flows: &[Routed], capacity: &[f64]) -> f64 {
    network_limit(case, flows, capacity).min(compute_limit(case, nodes).items_per_s)
}
