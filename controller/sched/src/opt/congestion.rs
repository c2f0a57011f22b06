//! Least congestion: one path for each demand so that the largest `load / capacity` over all pools is
//! small.
//!
//! This is JRBA's problem: with `TH` the largest load over capacity, each demand gets `volume / TH`. The
//! search lets one demand after another take its best path under the potential `sum (load/capacity)^k`,
//! which falls with every move; `k` grows, so that the sum becomes the largest term. Dijkstra's lengths
//! are the exact rise of the potential. `relax` says how far from the best the result can be.

use super::shortest::ShortestPaths;
use crate::route::Graph;

/// Exponents of the potential as powers of two, one pass each.
const DOUBLINGS: [u32; 6] = [2, 3, 4, 5, 6, 7];
/// Doublings of the exponent while demands are added one by one.
const GREEDY_DOUBLINGS: u32 = 2;
/// Added to each relative length, so that idle arcs are not free and ways stay short.
const HOP: f64 = 1e-9;
/// The largest relative load that the potential tells apart: its 128th power is still a number.
const MOST: f64 = 1e2;
/// See [`Potential::hot`].
const COUNTS: f64 = 3.0;
/// Where in `DOUBLINGS` a good start begins.
const SHARP: usize = 2;

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
}

/// `(x / scale)^(2^doublings)`, kept in range by the scale.
#[derive(Debug, Clone, Copy)]
struct Potential {
    scale: f64,
    doublings: u32,
}

impl Potential {
    fn rise(self, before: f64, more: f64) -> f64 {
        self.power((before + more) / self.scale) - self.power(before / self.scale)
    }

    /// The relative load below which a pool adds less than about `e^-COUNTS` of the fullest one's part.
    fn hot(self) -> f64 {
        1.0 - COUNTS / f64::from(1_u32 << self.doublings)
    }

    fn power(self, relative: f64) -> f64 {
        let mut power = relative.min(MOST);
        for _ in 0..self.doublings {
            power *= power;
        }
        power
    }
}

/// The loads that a routing under construction puts on the pools.
struct Routing<'a> {
    network: Network<'a>,
    loads: Vec<f64>,
    search: ShortestPaths<'a>,
}

impl<'a> Routing<'a> {
    fn of(network: Network<'a>, loads: Vec<f64>) -> Self {
        Self { network, loads, search: ShortestPaths::new(network) }
    }

    /// The path of least rise of the potential for one more demand.
    fn best(&mut self, demand: &Demand, potential: Potential) -> Option<Vec<usize>> {
        let length = |pool: usize| {
            let capacity = self.network.capacity[pool];
            potential.rise(self.loads[pool] / capacity, demand.volume / capacity) + HOP
        };
        self.search.run(demand.from, std::iter::once(demand.to), length);
        self.search.path(demand.to)
    }

    fn add(&mut self, path: &[usize], volume: f64) {
        self.network.graph.pools(path).for_each(|pool| self.loads[pool] += volume);
    }

    /// Moves a demand to its best path if it is on a pool whose load counts in the potential.
    fn reroute(&mut self, demand: &Demand, path: &mut Vec<usize>, potential: Potential) {
        if self.fullest(path) < potential.scale * potential.hot() {
            return;
        }
        self.add(path, -demand.volume);
        if let Some(better) = self.best(demand, potential) {
            *path = better;
        }
        self.add(path, demand.volume);
    }

    /// Load over capacity of the fullest pool of a path.
    fn fullest(&self, path: &[usize]) -> f64 {
        let relative =
            self.network.graph.pools(path).map(|pool| self.loads[pool] / self.network.capacity[pool]);
        relative.fold(0.0, f64::max)
    }
}

/// A start: each demand, the largest first, on the path of least rise. None if one has no path at all.
pub(crate) fn greedy(network: Network<'_>, demands: &[Demand]) -> Option<Vec<Vec<usize>>> {
    let mut paths = vec![Vec::new(); demands.len()];
    let mut routing = Routing::of(network, vec![0.0; network.capacity.len()]);
    let mut scale: f64 = 0.0;
    for index in largest_first(demands) {
        let demand = &demands[index];
        if scale <= 0.0 {
            scale = first_scale(network, demand);
        }
        let path = routing.best(demand, Potential { scale, doublings: GREEDY_DOUBLINGS })?;
        routing.add(&path, demand.volume);
        scale = scale.max(routing.fullest(&path));
        paths[index] = path;
    }
    Some(paths)
}

/// Moves single demands to better paths, pass after pass; the best routing met is returned.
pub(crate) fn improve(network: Network<'_>, demands: &[Demand], start: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    search(network, demands, start, &DOUBLINGS)
}

/// `improve` for a start that is good already: passes that look at the fullest pools only.
pub(crate) fn sharpen(network: Network<'_>, demands: &[Demand], start: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    search(network, demands, start, &DOUBLINGS[SHARP..])
}

fn search(
    network: Network<'_>,
    demands: &[Demand],
    start: Vec<Vec<usize>>,
    doublings: &[u32],
) -> Vec<Vec<usize>> {
    let mut paths = start;
    let mut routing = Routing::of(network, network.loads(demands, &paths));
    let mut best = (network.congestion(&routing.loads), paths.clone());
    let order = largest_first(demands);
    for doublings in doublings {
        let scale = network.congestion(&routing.loads);
        if scale <= 0.0 {
            break;
        }
        let potential = Potential { scale, doublings: *doublings };
        for index in &order {
            routing.reroute(&demands[*index], &mut paths[*index], potential);
        }
        routing.loads = network.loads(demands, &paths);
        let congestion = network.congestion(&routing.loads);
        if congestion < best.0 * (1.0 - 1e-9) {
            best = (congestion, paths.clone());
        }
    }
    best.1
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
    use super::super::relax::{relax, relax_and_round};
    use super::*;
    use crate::route::Arc;

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
        let bound = relax(network, &demands).expect("both have a path").lower_bound;
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
