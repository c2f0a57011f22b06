//! How far from the best a routing can be: weak duality of the concurrent flow program gives a lower bound
//! on the congestion from any arc lengths.

use std::collections::BTreeMap;

use super::congestion::{Demand, Network};
use crate::route::{Arc, Tree, tree};

/// Rounds of the lower bound's weights.
const BOUND_ROUNDS: u32 = 80;

/// `sum V_i * dist_l(i) / sum B_e * l_e`: no routing, split or not, has a smaller congestion.
///
/// The lengths start from the loads of a routing and then grow, by multiplicative weights, where the
/// demands' shortest paths under them meet.
pub(crate) fn lower_bound(network: Network<'_>, demands: &[Demand], loads: &[f64]) -> f64 {
    let congestion = network.congestion(loads);
    let relative = |loads: &[f64], top: f64, pool: usize| match network.capacity[pool] {
        capacity if capacity > 0.0 => loads[pool] / capacity / top,
        _ => 0.0,
    };
    let pools = 0..network.capacity.len();
    let start =
        |pool| relative(loads, congestion, pool).powi(16).max(1e-30) / network.capacity[pool].max(1e-300);
    let mut lengths: Vec<f64> = pools.clone().map(start).collect();
    let mut best: f64 = 0.0;
    for round in 0..BOUND_ROUNDS {
        let (bound, loads) = dual(network, demands, &lengths);
        best = best.max(bound);
        let top = network.congestion(&loads);
        let pace = 1.0 / (1.0 + f64::from(round) / 8.0);
        for pool in pools.clone() {
            lengths[pool] *= (pace * relative(&loads, top, pool)).exp();
        }
    }
    best
}

/// The dual value of some lengths, and the loads when all demands take their shortest paths.
fn dual(network: Network<'_>, demands: &[Demand], lengths: &[f64]) -> (f64, Vec<f64>) {
    let mut trees: BTreeMap<usize, Tree> = BTreeMap::new();
    let mut loads = vec![0.0; lengths.len()];
    let mut distance = 0.0;
    for demand in demands {
        let length = |arc: &Arc| {
            if network.capacity[arc.pool] > 0.0 { lengths[arc.pool] } else { f64::INFINITY }
        };
        let tree = trees.entry(demand.from).or_insert_with(|| tree(network.graph, demand.from, length));
        distance += demand.volume * tree.distance(demand.to);
        let path = tree.path(network.graph, demand.to).unwrap_or_default();
        network.graph.pools(&path).for_each(|pool| loads[pool] += demand.volume);
    }
    let volume: f64 = network.capacity.iter().zip(lengths).map(|(capacity, length)| capacity * length).sum();
    (distance / volume, loads)
}
