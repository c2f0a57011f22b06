//! The changes of a placement that the search tries: single tasks, whole nodes, swaps. The source stays.

use super::Case;

/// A change of a placement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    /// A task to a node.
    Task(usize, usize),
    /// All tasks of a node to another; the fixed source stays where it is.
    Node(usize, usize),
    /// Two tasks change places.
    Swap(usize, usize),
}

impl Move {
    /// Writes the placement after the change to `new`; false if nothing changes.
    pub(super) fn apply(self, nodes: &[usize], first_free: usize, new: &mut Vec<usize>) -> bool {
        new.clear();
        new.extend_from_slice(nodes);
        match self {
            Self::Task(vertex, to) => new[vertex] = to,
            Self::Node(from, to) => {
                let moved = new[first_free..].iter_mut().filter(|node| **node == from);
                moved.for_each(|node| *node = to);
            }
            Self::Swap(x, y) => new.swap(x, y),
        }
        new != nodes
    }
}

/// All moves from a placement: single tasks, whole nodes, swaps.
pub(super) fn moves(case: &Case<'_>, nodes: &[usize]) -> Vec<Move> {
    let free: Vec<usize> = (0..nodes.len()).filter(|v| case.graph.fixed(*v).is_none()).collect();
    let all = 0..case.world.nodes.len();
    let one = free.iter().flat_map(|v| all.clone().map(|to| Move::Task(*v, to)));
    let mut used: Vec<usize> = free.iter().map(|v| nodes[*v]).collect();
    used.sort_unstable();
    used.dedup();
    let group = used.iter().flat_map(|from| all.clone().map(|to| Move::Node(*from, to)));
    let pairs = free.iter().flat_map(|x| free.iter().filter(move |y| x < *y).map(|y| Move::Swap(*x, *y)));
    one.chain(group).chain(pairs).collect()
}
