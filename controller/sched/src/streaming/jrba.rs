//! Algorithm 2, JRBA: paths and rates for the flows of a placement.
//!
//! Relaxation, rounding to the path with the largest `m_ik`, then Eq. 15 with `B_l`:
//! `b_i = min over links of B_l * V_i / sum of V_j routed through l`. What Eq. 15 leaves idle stays idle
//! here, as in the paper: a later job finds it. The `edgeloom` profile searches for better paths instead of
//! rounding (`paths`) and hands out what is left (`share`).

use super::params::LEAST_RATE_BPS;
use super::{Case, Routed};
use crate::opt::congestion::{Demand, Network, relax_and_round};

/// Paths and rates over the residual bandwidth; none if a flow has no path with bandwidth left.
pub(crate) fn jrba(case: &Case<'_>, nodes: &[usize]) -> Option<Vec<Routed>> {
    let residual = open(case.ledger.residual(case.world));
    let flows = case.flows(nodes);
    let demands = demands(case, nodes, &flows);
    let network = Network { graph: &case.world.graph, capacity: &residual };
    let paths = relax_and_round(network, &demands)?;
    let loads = network.loads(&demands, &paths);
    let mut routed = Vec::new();
    for ((edge, path), demand) in flows.into_iter().zip(paths).zip(&demands) {
        let shares = case.world.graph.pools(&path).map(|pool| residual[pool] * demand.volume / loads[pool]);
        let rate = shares.fold(f64::INFINITY, f64::min);
        routed.push(Routed { edge, path, rate });
    }
    routed.iter().all(|flow| flow.rate >= 1.0).then_some(routed)
}

/// Items a second that these paths carry over the given capacities: `1 / TH`.
pub(crate) fn network_limit(case: &Case<'_>, flows: &[Routed], capacity: &[f64]) -> f64 {
    let mut loads = vec![0.0; capacity.len()];
    for flow in flows {
        let bits = case.wire_bits(&flow.edge);
        case.world.graph.pools(&flow.path).for_each(|pool| loads[pool] += bits);
    }
    let network = Network { graph: &case.world.graph, capacity };
    1.0 / network.congestion(&loads)
}

/// Closes pools that have too little left.
pub(crate) fn open(mut capacity: Vec<f64>) -> Vec<f64> {
    capacity.iter_mut().filter(|left| **left < LEAST_RATE_BPS).for_each(|left| *left = 0.0);
    capacity
}

/// What the flows of a placement have to send, in wire bits an item.
pub(crate) fn demands(case: &Case<'_>, nodes: &[usize], flows: &[crate::job_graph::Edge]) -> Vec<Demand> {
    let one = |edge: &crate::job_graph::Edge| Demand {
        from: nodes[edge.from],
        to: nodes[edge.to],
        volume: case.wire_bits(edge),
    };
    flows.iter().map(one).collect()
}
