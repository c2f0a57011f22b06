//! Algorithm 2, JRBA: paths and rates for the flows of a placement.
//!
//! Relaxation, rounding to the path with the largest `m_ik`, then Eq. 15 with `B_l`:
//! `b_i = min over links of B_l * V_i / sum of V_j routed through l`. What Eq. 15 leaves idle stays idle
//! here, as in the paper: a later job finds it. The `edgeloom` profile searches for better paths instead of
//! rounding (`paths`) and hands out what is left (`share`).

use super::params::LEAST_RATE_BPS;
use super::{Case, Routed};
use crate::opt::congestion::{Demand, Network};
use crate::opt::relax::relax_and_round;

/// Paths and rates over the residual bandwidth; none if a flow has no path with bandwidth left.
pub(crate) fn jrba(case: &Case<'_>, nodes: &[usize]) -> Option<Vec<Routed>> {
    let residual = open(case.ledger.residual(case.world));
    let flows = case.flows(nodes);
    let demands = demands(case, nodes, &flows);
    let network = Network { graph: &case.world.graph, capacity: &residual };
    let (paths, rates) = route_and_share(network, &demands)?;
    let each = flows.into_iter().zip(paths).zip(rates);
    let routed: Vec<Routed> = each.map(|((edge, path), rate)| Routed { edge, path, rate }).collect();
    routed.iter().all(|flow| flow.rate >= 1.0).then_some(routed)
}

/// The paper's path of each demand and its rate by Eq. 15 with `B_l`, in the capacity's unit a second;
/// infinite where the two ends are one node. None if a demand has no path.
pub(crate) fn route_and_share(
    network: Network<'_>,
    demands: &[Demand],
) -> Option<(Vec<Vec<usize>>, Vec<f64>)> {
    let paths = relax_and_round(network, demands)?;
    let loads = network.loads(demands, &paths);
    let rate = |(demand, path): (&Demand, &Vec<usize>)| {
        let pools = network.graph.pools(path).filter(|_| demand.volume > 0.0);
        let shares = pools.map(|pool| network.capacity[pool] * demand.volume / loads[pool]);
        shares.fold(f64::INFINITY, f64::min)
    };
    let rates = demands.iter().zip(&paths).map(rate).collect();
    Some((paths, rates))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Arc, Graph};

    /// Links of 10 from 0 to 1, of 4 from 1 to 2, and a closed one from 2 to 3.
    fn line() -> (Graph, Vec<f64>) {
        let mut graph = Graph::new(4);
        for pool in 0..3 {
            graph.add(Arc { from: pool, to: pool + 1, pool });
        }
        (graph, vec![10.0, 4.0, 0.0])
    }

    fn demand(from: usize, to: usize, volume: f64) -> Demand {
        Demand { from, to, volume }
    }

    #[test]
    fn links_are_shared_in_proportion_to_volume_and_the_narrowest_share_counts() {
        let (graph, capacity) = line();
        let network = Network { graph: &graph, capacity: &capacity };
        let demands = [demand(0, 1, 2.0), demand(0, 1, 1.0), demand(0, 2, 2.0), demand(3, 3, 1.0)];
        let (paths, rates) = route_and_share(network, &demands).unwrap();
        assert_eq!(paths, vec![vec![0], vec![0], vec![0, 1], vec![]]);
        assert_eq!(rates, vec![4.0, 2.0, 4.0, f64::INFINITY]);
    }

    #[test]
    fn one_demand_without_a_way_leaves_no_routing_at_all() {
        let (graph, capacity) = line();
        let network = Network { graph: &graph, capacity: &capacity };
        assert_eq!(route_and_share(network, &[demand(0, 1, 1.0), demand(0, 3, 1.0)]), None);
    }
}
