//! Fewest hops within capacity: one path for each demand so that the sum of `volume * hops` is small while
//! no pool carries more than its capacity.
//!
//! Where `congestion` spreads load as far as it can, this spends as little of the links as the capacity
//! allows: a longer path is taken only where the shorter ones are full. Among paths of equally many hops the
//! emptier one is taken. Solvers start from nothing or from any routing that fits.

use super::congestion::{Demand, Network, largest_first};
use crate::route::{Arc, tree};

/// Passes over all demands; each pass but the last shortens at least one path.
const PASSES: usize = 8;
/// What a full pool may seem to carry too much, from rounding.
const SLACK: f64 = 1e-9;

/// Each demand, the largest first, on the shortest path that still has room. None if one finds no path.
pub(crate) fn fit(network: Network<'_>, demands: &[Demand]) -> Option<Vec<Vec<usize>>> {
    let mut paths = vec![Vec::new(); demands.len()];
    let mut loads = vec![0.0; network.capacity.len()];
    for index in largest_first(demands) {
        let path = shortest(network, &demands[index], &loads)?;
        network.graph.pools(&path).for_each(|pool| loads[pool] += demands[index].volume);
        paths[index] = path;
    }
    Some(paths)
}

/// Moves single demands to shorter paths with room until a pass moves none.
pub(crate) fn shorten(network: Network<'_>, demands: &[Demand], start: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut paths = start;
    for _ in 0..PASSES {
        let mut moved = false;
        let mut loads = network.loads(demands, &paths);
        for index in largest_first(demands) {
            let demand = &demands[index];
            network.graph.pools(&paths[index]).for_each(|pool| loads[pool] -= demand.volume);
            let shorter = shortest(network, demand, &loads).filter(|path| path.len() < paths[index].len());
            if let Some(path) = shorter {
                paths[index] = path;
                moved = true;
            }
            network.graph.pools(&paths[index]).for_each(|pool| loads[pool] += demand.volume);
        }
        if !moved {
            break;
        }
    }
    paths
}

/// Sum over demands of volume times hops.
pub(crate) fn traffic(demands: &[Demand], paths: &[Vec<usize>]) -> f64 {
    let each = demands.iter().zip(paths);
    each.map(|(demand, path)| path.iter().map(|_| demand.volume).sum::<f64>()).sum()
}

/// The path of fewest hops whose pools all have room; the emptier of equally short ones.
fn shortest(network: Network<'_>, demand: &Demand, loads: &[f64]) -> Option<Vec<usize>> {
    #[expect(clippy::cast_precision_loss, reason = "few nodes")]
    let nodes = network.graph.out.len() as f64;
    let length = |arc: &Arc| {
        let (load, capacity) = (loads[arc.pool] + demand.volume, network.capacity[arc.pool]);
        if capacity <= 0.0 || load > capacity * (1.0 + SLACK) {
            return f64::INFINITY;
        }
        // Fewer than `nodes` arcs, each at most 1 full: fullness never outweighs a hop.
        1.0 + load / capacity / (nodes + 1.0)
    };
    tree(network.graph, demand.from, length).path(network.graph, demand.to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Graph;

    /// From 0 to 2 straight (capacity 10) or by 1 (capacity 20 each).
    fn straight_or_around() -> (Graph, Vec<f64>) {
        let mut graph = Graph::new(3);
        for (pool, (from, to)) in [(0, 2), (0, 1), (1, 2)].into_iter().enumerate() {
            graph.add(Arc { from, to, pool });
        }
        (graph, vec![10.0, 20.0, 20.0])
    }

    fn demand(volume: f64) -> Demand {
        Demand { from: 0, to: 2, volume }
    }

    #[test]
    fn the_straight_way_is_taken_until_it_is_full() {
        let (graph, capacity) = straight_or_around();
        let network = Network { graph: &graph, capacity: &capacity };
        let demands = [demand(4.0), demand(6.0), demand(1.0)];
        assert_eq!(fit(network, &demands), Some(vec![vec![0], vec![0], vec![1, 2]]));
        assert_eq!(fit(network, &[demand(21.0)]), None);
    }

    #[test]
    fn a_detour_without_need_is_shortened() {
        let (graph, capacity) = straight_or_around();
        let network = Network { graph: &graph, capacity: &capacity };
        let demands = [demand(6.0), demand(5.0)];
        let paths = shorten(network, &demands, vec![vec![1, 2], vec![1, 2]]);
        assert_eq!(paths, vec![vec![0], vec![1, 2]]);
        assert!((traffic(&demands, &paths) - 16.0).abs() < 1e-12);
    }
}
