//! One fixed path between each pair of nodes: what the search judges placements by.

use super::Case;
use crate::route::tree;
use crate::world::World;

/// Pools of the fixed path to each node; none where no path leads.
type Row = Vec<Option<Vec<usize>>>;

/// Fixed paths between all nodes, a row for each first node as it is asked for.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Option<Row>>,
    /// Length of a hop; the inverse widths of all links add up to half of one.
    hop: f64,
}

impl Table {
    /// Paths of fewest hops; the wider of equally short ones.
    pub(super) fn shortest(world: &World<'_>) -> Self {
        Self { rows: vec![None; world.nodes.len()], hop: 1.0 }
    }

    /// Paths whose inverse widths add up to least: wide and short.
    pub(super) fn widest(world: &World<'_>) -> Self {
        Self { hop: 0.0, ..Self::shortest(world) }
    }

    /// Items a second that the fixed paths carry, and the bits an item summed over hops.
    pub(super) fn carried(
        &mut self,
        case: &Case<'_>,
        capacity: &[f64],
        nodes: &[usize],
    ) -> Option<(f64, f64)> {
        let mut loads = vec![0.0; capacity.len()];
        let mut bit_hops = 0.0;
        for edge in &case.graph.edges {
            let (from, to) = (nodes[edge.from], nodes[edge.to]);
            if from != to {
                let bits = case.wire_bits(edge);
                for pool in self.path(case, capacity, (from, to))? {
                    loads[*pool] += bits;
                    bit_hops += bits;
                }
            }
        }
        let used = loads.iter().zip(capacity).filter(|(load, _)| **load > 0.0);
        Some((used.map(|(load, capacity)| capacity / load).fold(f64::INFINITY, f64::min), bit_hops))
    }

    /// Pools of the path between two nodes.
    pub(super) fn path(
        &mut self,
        case: &Case<'_>,
        capacity: &[f64],
        (from, to): (usize, usize),
    ) -> Option<&Vec<usize>> {
        let hop = self.hop;
        let row = self.rows[from].get_or_insert_with(|| {
            let graph = &case.world.graph;
            let open = capacity.iter().filter(|capacity| **capacity > 0.0);
            let all = open.map(|capacity| 1.0 / capacity).sum::<f64>() * 2.0;
            let tree = tree(graph, from, |arc| hop + 1.0 / capacity[arc.pool] / all);
            let pools = |node| Some(graph.pools(&tree.path(graph, node)?).collect());
            (0..graph.out.len()).map(pools).collect()
        });
        row[to].as_ref()
    }
}
