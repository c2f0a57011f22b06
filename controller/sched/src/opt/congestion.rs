//! Least congestion: one path for each demand so that the largest `load / capacity` over all pools is
//! small.
//!
//! This is JRBA's problem: with `TH` the largest load over capacity, each demand gets `volume / TH`. The
//! search lets one demand after another take its best path under the potential `sum (load/capacity)^k`,
//! which falls with every move; `k` grows, so that the sum becomes the largest term. Dijkstra's lengths
//! are the exact rise of the potential. The relaxation sends small shares of each demand the same way.

use std::collections::BTreeMap;

use crate::route::{Arc, Graph, tree};

/// Exponents of the potential, one pass each.
const EXPONENTS: [f64; 10] = [4.0, 8.0, 16.0, 16.0, 32.0, 32.0, 64.0, 64.0, 128.0, 128.0];
/// Shares in which the relaxation sends each demand.
const SHARES: usize = 40;
/// Exponent of the relaxation's potential.
const RELAXED_EXPONENT: f64 = 8.0;
/// Added to each relative length, so that idle arcs are not free and ways stay short.
const HOP: f64 = 1e-9;

/// Something to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Demand {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) volume: f64,
}

/// A graph with the capacity of its pools; pools of no capacity are closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) capacity: &'a [f64],
}

impl Network<'_> {
    /// Load of each pool under these paths.
    pub(crate) fn loads(&self, demands: &[Demand], paths: &[Vec<usize>]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacity.len()];
        for (demand, path) in demands.iter().zip(paths) {
            self.graph.pools(path).for_each(|pool| loads[pool] += demand.volume);
        }
        loads
    }

    /// The largest load over capacity: JRBA's `TH`.
    pub(crate) fn congestion(&self, loads: &[f64]) -> f64 {
        let used = loads.iter().zip(self.capacity).filter(|(load, _)| **load > 0.0);
        used.map(|(load, capacity)| load / capacity).fold(0.0, f64::max)
    }

    /// The path of least rise of the potential for one more demand.
    fn best(&self, demand: &Demand, loads: &[f64], potential: Potential) -> Option<Vec<usize>> {
        let length = |arc: &Arc| {
            let capacity = self.capacity[arc.pool];
            if capacity <= 0.0 {
                return f64::INFINITY;
            }
            potential.rise(loads[arc.pool] / capacity, demand.volume / capacity) + HOP
        };
        tree(self.graph, demand.from, length).path(self.graph, demand.to)
    }
}

/// `(x / scale)^k`, kept in range by the scale.
#[derive(Debug, Clone, Copy)]
struct Potential {
    scale: f64,
    exponent: f64,
}

impl Potential {
    fn rise(self, before: f64, more: f64) -> f64 {
        let after = ((before + more) / self.scale).min(1e3);
        after.powf(self.exponent).min(1e200) - (before / self.scale).powf(self.exponent)
    }
}

/// A start: each demand, the largest first, on the path of least rise. None if one has no path at all.
pub(crate) fn greedy(network: Network<'_>, demands: &[Demand]) -> Option<Vec<Vec<usize>>> {
    let mut paths = vec![Vec::new(); demands.len()];
    let mut loads = vec![0.0; network.capacity.len()];
    for index in largest_first(demands) {
        let demand = &demands[index];
        let scale = network.congestion(&loads).max(f64::MIN_POSITIVE);
        let scale = if scale > f64::MIN_POSITIVE { scale } else { first_scale(network, demand) };
        let path = network.best(demand, &loads, Potential { scale, exponent: 4.0 })?;
        network.graph.pools(&path).for_each(|pool| loads[pool] += demand.volume);
        paths[index] = path;
    }
    Some(paths)
}

/// Moves single demands to better paths until no pass helps; the best routing met is returned.
pub(crate) fn improve(network: Network<'_>, demands: &[Demand], start: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut paths = start;
    let mut loads = network.loads(demands, &paths);
    let mut best = (network.congestion(&loads), paths.clone());
    let order = largest_first(demands);
    for exponent in EXPONENTS {
        let scale = network.congestion(&loads);
        if scale <= 0.0 {
            break;
        }
        for index in &order {
            let demand = &demands[*index];
            network.graph.pools(&paths[*index]).for_each(|pool| loads[pool] -= demand.volume);
            if let Some(path) = network.best(demand, &loads, Potential { scale, exponent }) {
                paths[*index] = path;
            }
            network.graph.pools(&paths[*index]).for_each(|pool| loads[pool] += demand.volume);
        }
        loads = network.loads(demands, &paths);
        let congestion = network.congestion(&loads);
        if congestion < best.0 * (1.0 - 1e-9) {
            best = (congestion, paths.clone());
        }
    }
    best.1
}

/// The relaxation of Eq. 7 to 12 in shares, then the paper's rounding: the path with the largest `m_ik`.
pub(crate) fn relax_and_round(network: Network<'_>, demands: &[Demand]) -> Option<Vec<Vec<usize>>> {
    let mut loads = vec![0.0; network.capacity.len()];
    let mut shares: Vec<BTreeMap<Vec<usize>, u32>> = vec![BTreeMap::new(); demands.len()];
    for _ in 0..SHARES {
        for index in largest_first(demands) {
            let share = Demand { volume: demands[index].volume / shares_f64(), ..demands[index] };
            let scale = network.congestion(&loads).max(first_scale(network, &share));
            let path = network.best(&share, &loads, Potential { scale, exponent: RELAXED_EXPONENT })?;
            network.graph.pools(&path).for_each(|pool| loads[pool] += share.volume);
            *shares[index].entry(path).or_default() += 1;
        }
    }
    let rounded = shares.into_iter().map(|paths| {
        let most =
            paths.into_iter().max_by(|(p, x), (q, y)| x.cmp(y).then(q.len().cmp(&p.len())).then(q.cmp(p)));
        most.map(|(path, _)| path).unwrap_or_default()
    });
    Some(rounded.collect())
}

#[expect(clippy::cast_precision_loss, reason = "a small constant")]
const fn shares_f64() -> f64 {
    SHARES as f64
}

/// Congestion of one demand on the widest pool: a scale while nothing is loaded.
fn first_scale(network: Network<'_>, demand: &Demand) -> f64 {
    let widest = network.capacity.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    (demand.volume / widest).max(f64::MIN_POSITIVE)
}

/// The order in which demands are routed.
pub(crate) fn largest_first(demands: &[Demand]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|x, y| demands[*y].volume.total_cmp(&demands[*x].volume).then(x.cmp(y)));
    order
}

#[cfg(test)]
mod tests {
    use super::super::bound::lower_bound;
    use super::*;

    /// Two ways from 0 to 3: by 1 with capacity 10, by 2 with capacity 6.
    fn two_ways() -> (Graph, Vec<f64>) {
        let mut graph = Graph::new(4);
        for (pool, (from, to)) in [(0, 1), (1, 3), (0, 2), (2, 3)].into_iter().enumerate() {
            graph.add(Arc { from, to, pool });
        }
        (graph, vec![10.0, 10.0, 6.0, 6.0])
    }

    #[test]
    fn two_demands_take_a_way_each_and_the_larger_the_wider() {
        let (graph, capacity) = two_ways();
        let network = Network { graph: &graph, capacity: &capacity };
        let demands = [Demand { from: 0, to: 3, volume: 2.0 }, Demand { from: 0, to: 3, volume: 1.0 }];
        let start = relax_and_round(network, &demands).expect("both have a path");
        let paths = improve(network, &demands, start);
        assert_eq!(paths, vec![vec![0, 1], vec![2, 3]]);
        let loads = network.loads(&demands, &paths);
        let bound = lower_bound(network, &demands, &loads);
        assert!(bound <= network.congestion(&loads) + 1e-12 && bound > 0.17, "{bound}");
    }

    #[test]
    fn a_closed_pool_is_no_way() {
        let (graph, _) = two_ways();
        let network = Network { graph: &graph, capacity: &[10.0, 0.0, 6.0, 6.0] };
        let demands = [Demand { from: 0, to: 3, volume: 2.0 }];
        assert_eq!(greedy(network, &demands), Some(vec![vec![2, 3]]));
        let shut = Network { graph: &graph, capacity: &[10.0, 0.0, 6.0, 0.0] };
        assert_eq!(greedy(shut, &demands), None);
    }
}
