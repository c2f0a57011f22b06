//! A routing problem of any size, for the benchmark of JRBA's search.

use crate::opt::bound::lower_bound;
use crate::opt::congestion::{Demand, Network, greedy, improve};
use crate::route::{Arc, Graph};

/// How large a random routing problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JrbaSize {
    pub nodes: usize,
    pub flows: usize,
    pub seed: u64,
}

/// Routes random flows over a random connected graph of mean degree 3 and answers with the congestion
/// found and a lower bound that no routing, split or not, can pass.
#[must_use]
pub fn jrba_congestion(size: JrbaSize) -> (f64, f64) {
    let mut draw = Draw(size.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (graph, capacity) = random_graph(size.nodes, &mut draw);
    let demand = |draw: &mut Draw| {
        let from = draw.below(size.nodes);
        let to = (from + 1 + draw.below(size.nodes - 1)) % size.nodes;
        Demand { from, to, volume: 0.02 + 0.58 * draw.unit() }
    };
    let demands: Vec<Demand> = (0..size.flows).map(|_| demand(&mut draw)).collect();
    let network = Network { graph: &graph, capacity: &capacity };
    let start = greedy(network, &demands).unwrap_or_default();
    let paths = improve(network, &demands, start);
    let loads = network.loads(&demands, &paths);
    (network.congestion(&loads), lower_bound(network, &demands, &loads))
}

fn random_graph(nodes: usize, draw: &mut Draw) -> (Graph, Vec<f64>) {
    let mut graph = Graph::new(nodes);
    let mut capacity = Vec::new();
    let mut join = |a: usize, b: usize, width: f64| {
        let pool = capacity.len();
        capacity.push(width);
        graph.add(Arc { from: a, to: b, pool });
        graph.add(Arc { from: b, to: a, pool });
    };
    for node in 1..nodes {
        join(node, draw.below(node), 0.4 + 1.2 * draw.unit());
    }
    for _ in 0..nodes / 2 {
        let a = draw.below(nodes);
        join(a, (a + 1 + draw.below(nodes - 1)) % nodes, 0.4 + 1.2 * draw.unit());
    }
    (graph, capacity)
}

/// Marsaglia's xorshift64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a usize")]
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_comes_within_a_few_percent_of_the_bound() {
        let (found, bound) = jrba_congestion(JrbaSize { nodes: 70, flows: 500, seed: 1 });
        assert!(bound <= found * (1.0 + 1e-9), "{found} under the bound {bound}");
        assert!(found <= bound * 1.05, "{found} against {bound}");
    }
}
