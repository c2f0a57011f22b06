//! Routing problems of any size, for the benchmark of JRBA's solvers.

use crate::opt::congestion::{Demand, Network};
use crate::opt::least::least_congestion;
use crate::opt::relax::relax;
use crate::route::{Arc, Graph};

/// The random graphs are.
const CONNECTED: &str = "a spanning tree joins all nodes";

/// How large a random routing problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JrbaSize {
    pub nodes: usize,
    pub flows: usize,
    pub seed: u64,
}

/// How well a routing problem was solved: congestions, the largest load over capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JrbaResult {
    /// One path a flow, by search.
    pub single_path: f64,
    /// One path a flow, by the paper's rounding of the relaxation.
    pub rounded: f64,
    /// Flows may split.
    pub relaxed: f64,
    /// No routing, split or not, comes under this.
    pub lower_bound: f64,
}

/// Random flows over a random connected graph of mean degree 3, half-duplex links.
#[derive(Debug, Clone)]
pub struct JrbaProblem {
    graph: Graph,
    capacity: Vec<f64>,
    demands: Vec<Demand>,
}

impl JrbaProblem {
    /// Draws a problem: the same seed, the same problem.
    #[must_use]
    pub fn random(size: JrbaSize) -> Self {
        let mut draw = Draw(size.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (graph, capacity) = random_graph(size.nodes, &mut draw);
        let demand = |draw: &mut Draw| {
            let from = draw.below(size.nodes);
            let to = (from + 1 + draw.below(size.nodes - 1)) % size.nodes;
            Demand { from, to, volume: 0.02 + 0.58 * draw.unit() }
        };
        let demands = (0..size.flows).map(|_| demand(&mut draw)).collect();
        Self { graph, capacity, demands }
    }

    /// The relaxation alone: its congestion and the lower bound that certifies it.
    #[must_use]
    pub fn relax(&self) -> (f64, f64) {
        let relaxed = relax(self.network(), &self.demands).expect(CONNECTED);
        (relaxed.congestion, relaxed.lower_bound)
    }

    /// Relaxation, rounding and single paths.
    #[must_use]
    pub fn solve(&self) -> JrbaResult {
        let network = self.network();
        let least = least_congestion(network, &self.demands).expect(CONNECTED);
        let of = |paths: &[Vec<usize>]| network.congestion(&network.loads(&self.demands, paths));
        JrbaResult {
            single_path: of(&least.paths),
            rounded: of(&least.rounded),
            relaxed: least.relaxed.congestion,
            lower_bound: least.relaxed.lower_bound,
        }
    }

    fn network(&self) -> Network<'_> {
        Network { graph: &self.graph, capacity: &self.capacity }
    }
}

/// Draws a routing problem and solves it every way.
#[must_use]
pub fn jrba_congestion(size: JrbaSize) -> JrbaResult {
    JrbaProblem::random(size).solve()
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
    use crate::opt::relax::GAP;

    #[test]
    fn single_paths_are_mostly_within_two_percent_of_the_bound_and_never_worse_than_rounding() {
        let results: Vec<JrbaResult> =
            (1..=21).map(|seed| jrba_congestion(JrbaSize { nodes: 70, flows: 500, seed })).collect();
        for result in &results {
            let JrbaResult { single_path, rounded, relaxed, lower_bound } = *result;
            assert!(lower_bound <= relaxed && relaxed <= single_path && single_path <= rounded, "{result:?}");
            assert!(relaxed <= lower_bound * (1.0 + GAP), "{result:?}");
        }
        let mut over: Vec<f64> =
            results.iter().map(|result| result.single_path / result.lower_bound).collect();
        over.sort_by(f64::total_cmp);
        assert!(over[over.len() / 2] <= 1.02, "{over:?}");
    }
}
