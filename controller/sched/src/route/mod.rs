//! Paths over a directed graph of plain numbers.
//!
//! Arcs draw on pools of capacity: one pool an arc on a full-duplex link, one for both arcs of a
//! half-duplex link, so that every rule about links is a rule about pools. Paths are lists of arcs, free
//! of loops, and the same input gives the same path: ties go to fewer hops, then to the lower index.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arc {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) pool: usize,
}

/// Nodes `0..nodes` and the arcs that leave each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) arcs: Vec<Arc>,
    pub(crate) out: Vec<Vec<usize>>,
}

impl Graph {
    /// A graph without arcs.
    pub(crate) fn new(nodes: usize) -> Self {
        Self { arcs: Vec::new(), out: vec![Vec::new(); nodes] }
    }

    /// Adds one arc; arcs added in a fixed order keep ties fixed.
    pub(crate) fn add(&mut self, arc: Arc) {
        self.out[arc.from].push(self.arcs.len());
        self.arcs.push(arc);
    }

    /// The pools that a path draws on.
    pub(crate) fn pools<'a>(&'a self, path: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        path.iter().map(|arc| self.arcs[*arc].pool)
    }
}

/// Shortest paths from one node.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    arc_into: Vec<Option<usize>>,
    distance: Vec<f64>,
}

impl Tree {
    /// The length of the way to a node; infinite where none leads.
    pub(crate) fn distance(&self, to: usize) -> f64 {
        self.distance[to]
    }

    /// The arcs from the tree's root to a node, first hop first.
    pub(crate) fn path(&self, graph: &Graph, to: usize) -> Option<Vec<usize>> {
        if !self.distance[to].is_finite() {
            return None;
        }
        let mut path = Vec::new();
        let mut at = to;
        while let Some(arc) = self.arc_into[at] {
            path.push(arc);
            at = graph.arcs[arc].from;
        }
        path.reverse();
        Some(path)
    }
}

/// An entry of Dijkstra's queue; the smallest comes out first.
struct Reached {
    distance: f64,
    hops: u32,
    node: usize,
}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = other.distance.total_cmp(&self.distance);
        key.then(other.hops.cmp(&self.hops)).then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Reached {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Reached {}

/// Dijkstra from `root`; `length` gives each arc a positive length, or infinity to close it.
pub(crate) fn tree(graph: &Graph, root: usize, length: impl Fn(&Arc) -> f64) -> Tree {
    let nodes = graph.out.len();
    let mut tree = Tree { arc_into: vec![None; nodes], distance: vec![f64::INFINITY; nodes] };
    let mut hops = vec![u32::MAX; nodes];
    let mut settled = vec![false; nodes];
    let mut queue = BinaryHeap::new();
    tree.distance[root] = 0.0;
    hops[root] = 0;
    queue.push(Reached { distance: 0.0, hops: 0, node: root });
    while let Some(reached) = queue.pop() {
        if std::mem::replace(&mut settled[reached.node], true) {
            continue;
        }
        for index in &graph.out[reached.node] {
            let arc = &graph.arcs[*index];
            let distance = reached.distance + length(arc);
            let steps = reached.hops + 1;
            let nearer = distance < tree.distance[arc.to]
                || (distance == tree.distance[arc.to] && steps < hops[arc.to]);
            if nearer && distance.is_finite() && !settled[arc.to] {
                tree.distance[arc.to] = distance;
                tree.arc_into[arc.to] = Some(*index);
                hops[arc.to] = steps;
                queue.push(Reached { distance, hops: steps, node: arc.to });
            }
        }
    }
    tree
}

/// The path with the fewest hops from `root` to every node.
pub(crate) fn hop_tree(graph: &Graph, root: usize) -> Tree {
    tree(graph, root, |_| 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0-1-3 and 0-2-3, both directions, a pool an arc.
    fn square() -> Graph {
        let mut graph = Graph::new(4);
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1), (2, 3), (3, 2)] {
            let pool = graph.arcs.len();
            graph.add(Arc { from, to, pool });
        }
        graph
    }

    #[test]
    fn ties_go_to_the_lower_node() {
        let graph = square();
        assert_eq!(hop_tree(&graph, 0).path(&graph, 3), Some(vec![0, 4]));
    }

    #[test]
    fn a_closed_arc_is_walked_around_and_a_closed_node_is_not_reached() {
        let graph = square();
        let around = tree(&graph, 0, |arc| if arc.to == 1 { f64::INFINITY } else { 1.0 });
        assert_eq!(around.path(&graph, 3), Some(vec![2, 6]));
        assert_eq!(around.path(&graph, 1), None);
    }
}
