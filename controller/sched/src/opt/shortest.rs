//! Shortest paths, many at a time: Dijkstra over arcs laid out by the node they leave, with all storage
//! reused.
//!
//! Lengths belong to pools and must not be negative; an infinite one closes its arcs, and arcs on pools
//! without capacity are left out from the start. A run ends as soon as the wanted nodes are settled. Equal
//! lengths are settled in the order of node numbers, so that equal input gives equal paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::congestion::Network;

/// An arc as Dijkstra needs it.
#[derive(Debug, Clone, Copy)]
struct Hop {
    to: u32,
    pool: u32,
    arc: u32,
}

/// No arc, or no node.
const NONE: u32 = u32::MAX;

/// The arcs of a network by the node they leave, and the state of the last run.
#[derive(Debug)]
pub(crate) struct ShortestPaths<'a> {
    network: Network<'a>,
    hops: Vec<Hop>,
    /// `hops[first[node]..first[node + 1]]` leave the node.
    first: Vec<usize>,
    distance: Vec<f64>,
    arc_into: Vec<u32>,
    settled: Vec<bool>,
    wanted: Vec<bool>,
    /// Bits of a distance that is not negative sort like the distance.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'a> ShortestPaths<'a> {
    /// Lays out the open arcs.
    pub(crate) fn new(network: Network<'a>) -> Self {
        let graph = network.graph;
        let nodes = graph.out.len();
        let narrow = |number: usize| u32::try_from(number).expect("a graph has fewer than 2^32 parts");
        let mut hops = Vec::with_capacity(graph.arcs.len());
        let mut first = vec![0];
        for out in &graph.out {
            let open = out.iter().map(|index| (*index, graph.arcs[*index]));
            let open = open.filter(|(_, arc)| network.capacity[arc.pool] > 0.0);
            hops.extend(open.map(|(index, arc)| Hop {
                to: narrow(arc.to),
                pool: narrow(arc.pool),
                arc: narrow(index),
            }));
            first.push(hops.len());
        }
        Self {
            network,
            hops,
            first,
            distance: vec![f64::INFINITY; nodes],
            arc_into: vec![NONE; nodes],
            settled: vec![false; nodes],
            wanted: vec![false; nodes],
            queue: BinaryHeap::new(),
        }
    }

    /// Finds the shortest paths from `root` to the wanted nodes under a length for each pool.
    pub(crate) fn run(
        &mut self,
        root: usize,
        wanted: impl Iterator<Item = usize>,
        length: impl Fn(usize) -> f64,
    ) {
        let mut missing = self.reset(wanted);
        self.distance[root] = 0.0;
        self.queue.push(Reverse((0, u32::try_from(root).expect("nodes are counted in 32 bits"))));
        while let Some(Reverse((_, node))) = self.queue.pop() {
            let node = node as usize;
            if std::mem::replace(&mut self.settled[node], true) {
                continue;
            }
            if std::mem::take(&mut self.wanted[node]) {
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
            let here = self.distance[node];
            for hop in &self.hops[self.first[node]..self.first[node + 1]] {
                let to = hop.to as usize;
                let distance = here + length(hop.pool as usize);
                if distance < self.distance[to] {
                    self.distance[to] = distance;
                    self.arc_into[to] = hop.arc;
                    self.queue.push(Reverse((distance.to_bits(), hop.to)));
                }
            }
        }
    }

    /// Forgets the last run; counts the nodes that are wanted now.
    fn reset(&mut self, wanted: impl Iterator<Item = usize>) -> usize {
        self.distance.fill(f64::INFINITY);
        self.arc_into.fill(NONE);
        self.settled.fill(false);
        self.wanted.fill(false);
        self.queue.clear();
        wanted.filter(|node| !std::mem::replace(&mut self.wanted[*node], true)).count()
    }

    /// The length of the way to a wanted node; infinite where none leads.
    pub(crate) fn distance(&self, to: usize) -> f64 {
        self.distance[to]
    }

    /// The arcs from the root to a wanted node, first hop first; none if no way leads there.
    pub(crate) fn path(&self, to: usize) -> Option<Vec<usize>> {
        if !self.distance[to].is_finite() {
            return None;
        }
        let mut path = Vec::new();
        let mut at = to;
        while self.arc_into[at] != NONE {
            let arc = self.arc_into[at] as usize;
            path.push(arc);
            at = self.network.graph.arcs[arc].from;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Arc, Graph, tree};

    #[test]
    fn runs_on_one_state_agree_with_trees_built_anew() {
        let mut graph = Graph::new(6);
        let ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (0, 3), (4, 2)];
        for (pool, (a, b)) in ends.into_iter().enumerate() {
            graph.add(Arc { from: a, to: b, pool });
            graph.add(Arc { from: b, to: a, pool });
        }
        let lengths = [3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0];
        let capacity = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0];
        let mut shortest = ShortestPaths::new(Network { graph: &graph, capacity: &capacity });
        let open = |arc: &Arc| if arc.pool == 5 { f64::INFINITY } else { lengths[arc.pool] };
        for root in 0..6 {
            let anew = tree(&graph, root, open);
            for to in 0..6 {
                shortest.run(root, std::iter::once(to), |pool| lengths[pool]);
                assert_eq!(shortest.distance(to), anew.distance(to));
                assert_eq!(shortest.path(to), anew.path(&graph, to));
            }
        }
    }
}
