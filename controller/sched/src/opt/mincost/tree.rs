//! The basis: a spanning tree rooted at `out`, with the flow of each node's arc to its parent and a price for
//! each node.
//!
//! Rows and `idle` send along their arcs, columns and `out` receive. Each arc of the tree costs exactly what its two
//! nodes' prices come to.

use super::{Costs, Flow, Optimum, Units};

const NONE: u32 = u32::MAX;

/// An arc that makes the flow cheaper by `-reduced` a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entering {
    row: usize,
    column: usize,
    cost: i64,
    reduced: f64,
}

/// A node's place in the tree, and its arc to the parent.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// The first of its children, and the siblings on either side.
    child: u32,
    next: u32,
    previous: u32,
    depth: u32,
    flow: i64,
    cost: i64,
}

const ALONE: Node =
    Node { parent: NONE, child: NONE, next: NONE, previous: NONE, depth: 0, flow: 0, cost: 0 };

/// Rows first, then columns, `idle`, `out`.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    prices: Vec<f64>,
    rows: usize,
    columns: usize,
    /// Nodes still to reprice; empty between pivots, kept for its memory.
    open: Vec<u32>,
}

impl Tree {
    /// Rows and `idle` below `out`; columns below the row that fills them at the start, else below `idle`.
    pub(super) fn new(units: Units<'_>, start: &[Flow]) -> Self {
        let (rows, columns) = (units.rows.len(), units.columns.len());
        let all = rows + columns + 2;
        let mut tree =
            Self { nodes: vec![ALONE; all], prices: vec![0.0; all], rows, columns, open: Vec::new() };
        let mut left = units.rows.to_vec();
        let mut filled: Vec<Option<Flow>> = vec![None; columns];
        let fills = |flow: &&Flow| flow.units > 0 && flow.units == units.columns[flow.column];
        for flow in start.iter().filter(fills) {
            left[flow.row] -= flow.units;
            filled[flow.column] = Some(*flow);
        }
        let (idle, out) = (tree.idle(), tree.out());
        tree.nodes[idle].flow = filled.iter().flatten().map(|flow| flow.units).sum();
        tree.attach(idle, out);
        for (row, left) in left.into_iter().enumerate() {
            tree.nodes[row].flow = left;
            tree.attach(row, out);
        }
        for (column, by) in filled.into_iter().enumerate() {
            let node = rows + column;
            tree.nodes[node].flow = units.columns[column];
            tree.nodes[node].cost = by.map_or(0, |flow| flow.cost);
            tree.attach(node, by.map_or(idle, |flow| flow.row));
        }
        start.iter().filter(|flow| flow.units == 0).for_each(|flow| tree.lean(flow));
        tree.price_all();
        tree
    }

    /// Hangs a row that has nothing left below a column, unless that is below the row.
    fn lean(&mut self, arc: &Flow) {
        let (row, column) = (arc.row, self.rows + arc.column);
        let out = self.out();
        if self.nodes[row].flow != 0 || self.nodes[row].parent as usize != out {
            return;
        }
        let mut at = column;
        while at != out {
            if at == row {
                return;
            }
            at = self.nodes[at].parent as usize;
        }
        self.detach(row);
        self.nodes[row].cost = arc.cost;
        self.attach(row, column);
    }

    /// Prices and depths of all, from the root on.
    fn price_all(&mut self) {
        let out = self.out();
        let mut open = vec![index(out)];
        while let Some(at) = open.pop() {
            let mut child = self.nodes[at as usize].child;
            while child != NONE {
                let node = child as usize;
                self.prices[node] = exact(self.nodes[node].cost) - self.prices[at as usize];
                self.nodes[node].depth = self.nodes[at as usize].depth + 1;
                open.push(child);
                child = self.nodes[node].next;
            }
        }
    }

    const fn idle(&self) -> usize {
        self.rows + self.columns
    }

    const fn out(&self) -> usize {
        self.idle() + 1
    }

    const fn sends(&self, node: usize) -> bool {
        node < self.rows || node == self.idle()
    }

    /// One for each node that sends.
    pub(super) const fn turns(&self) -> usize {
        self.rows + 1
    }

    /// The best arc of the turn's node; none where none gains.
    pub(super) fn entering(&self, turn: usize, costs: &impl Costs) -> Option<Entering> {
        let prices = &self.prices[self.rows..self.idle()];
        let (row, found) = if turn == self.rows {
            let dearest = prices.iter().enumerate().max_by(|x, y| x.1.total_cmp(y.1));
            (self.idle(), dearest.map(|(column, _)| (column, 0)))
        } else {
            (turn, costs.cheapest(turn, prices))
        };
        let price = self.prices[row];
        let mut best = Entering { row, column: self.out(), cost: 0, reduced: -price };
        if let Some((column, cost)) = found {
            let reduced = exact(cost) - price - prices[column];
            if reduced < best.reduced {
                best = Entering { row, column: self.rows + column, cost, reduced };
            }
        }
        (best.reduced < 0.0).then_some(best)
    }

    /// The one of the list that gains most by now, and takes those that no longer do off the list.
    pub(super) fn best(&self, found: &mut Vec<Entering>) -> Option<Entering> {
        for arc in found.iter_mut() {
            arc.reduced = exact(arc.cost) - self.prices[arc.row] - self.prices[arc.column];
        }
        found.retain(|arc| arc.reduced < 0.0);
        found.iter().copied().min_by(|x, y| x.reduced.total_cmp(&y.reduced))
    }

    /// Sends as much as can be around the cycle that the arc closes, and lets an arc go that is empty then.
    pub(super) fn pivot(&mut self, arc: Entering) {
        let (row, column) = (arc.row, arc.column);
        let join = self.join(row, column);
        // Of all arcs that stop the flow the last one leaves, going round from the join along the entering arc:
        // that keeps the tree strongly feasible.
        let (mut amount, mut leaving, mut by_row) = (i64::MAX, join, true);
        let mut at = row;
        while at != join {
            if self.sends(at) && self.nodes[at].flow < amount {
                (amount, leaving) = (self.nodes[at].flow, at);
            }
            at = self.nodes[at].parent as usize;
        }
        at = column;
        while at != join {
            if !self.sends(at) && self.nodes[at].flow <= amount {
                (amount, leaving, by_row) = (self.nodes[at].flow, at, false);
            }
            at = self.nodes[at].parent as usize;
        }
        debug_assert_ne!(leaving, join, "rows and columns take turns on a cycle, so some arc stops the flow");
        self.shift(row, join, -amount);
        self.shift(column, join, amount);
        let (top, below) = if by_row { (row, column) } else { (column, row) };
        self.hang((top, below), leaving, (amount, arc.cost));
        self.reprice(top, arc.reduced);
    }

    /// Where the ways of two nodes to the root meet.
    fn join(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            if self.nodes[a].depth >= self.nodes[b].depth {
                a = self.nodes[a].parent as usize;
            } else {
                b = self.nodes[b].parent as usize;
            }
        }
        a
    }

    /// So much more along the arcs of those that send, so much less along the others'.
    fn shift(&mut self, from: usize, join: usize, amount: i64) {
        let mut at = from;
        while at != join {
            self.nodes[at].flow += if self.sends(at) { amount } else { -amount };
            at = self.nodes[at].parent as usize;
        }
    }

    /// Turns the part below the leaving arc round, so that `top` is its root, and hangs it up with the entering arc.
    fn hang(&mut self, (top, below): (usize, usize), leaving: usize, entering: (i64, i64)) {
        let (mut at, mut parent, mut arc) = (top, below, entering);
        loop {
            let Node { parent: next, flow, cost, .. } = self.nodes[at];
            self.detach(at);
            (self.nodes[at].flow, self.nodes[at].cost) = arc;
            self.attach(at, parent);
            if at == leaving {
                return;
            }
            (parent, at, arc) = (at, next as usize, (flow, cost));
        }
    }

    /// Prices and depths of `top` and all below it.
    fn reprice(&mut self, top: usize, change: f64) {
        let side = self.sends(top);
        let mut open = std::mem::take(&mut self.open);
        open.push(index(top));
        while let Some(at) = open.pop() {
            let at = at as usize;
            self.prices[at] += if self.sends(at) == side { change } else { -change };
            self.nodes[at].depth = self.nodes[self.nodes[at].parent as usize].depth + 1;
            let mut child = self.nodes[at].child;
            while child != NONE {
                open.push(child);
                child = self.nodes[child as usize].next;
            }
        }
        self.open = open;
    }

    fn attach(&mut self, at: usize, parent: usize) {
        let Node { child, depth, .. } = self.nodes[parent];
        if child != NONE {
            self.nodes[child as usize].previous = index(at);
        }
        self.nodes[parent].child = index(at);
        let node = &mut self.nodes[at];
        (node.parent, node.next, node.previous, node.depth) = (index(parent), child, NONE, depth + 1);
    }

    fn detach(&mut self, at: usize) {
        let Node { parent, next, previous, .. } = self.nodes[at];
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if previous == NONE {
            self.nodes[parent as usize].child = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
    }

    /// The tree's flow, for reading.
    pub(super) fn optimum(&self) -> Optimum {
        let arc = |at: usize| {
            let Node { parent, flow: units, cost, .. } = self.nodes[at];
            let parent = parent as usize;
            let (row, node) = if self.sends(at) { (at, parent) } else { (parent, at) };
            let column = node.checked_sub(self.rows).filter(|column| *column < self.columns)?;
            (units > 0 && row < self.rows).then_some(Flow { row, column, units, cost })
        };
        let mut flows: Vec<Flow> = (0..self.idle()).filter_map(arc).collect();
        flows.sort_by_key(|flow| (flow.column, flow.row));
        Optimum {
            cost: flows.iter().map(|flow| flow.units * flow.cost).sum(),
            flows,
            row_prices: self.prices[..self.rows].iter().copied().map(whole).collect(),
            column_prices: self.prices[self.rows..self.idle()].iter().copied().map(whole).collect(),
            unused_price: -whole(self.prices[self.idle()]),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rows and columns are far fewer than 2^32")]
fn index(node: usize) -> u32 {
    node as u32
}

/// Costs and prices are whole numbers that stay below 2^53.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
pub(super) fn exact(cost: i64) -> f64 {
    debug_assert!(cost.abs() < 1 << 53, "a cost leaves what is exact");
    cost as f64
}

#[expect(clippy::cast_possible_truncation, reason = "prices are whole numbers below 2^53")]
fn whole(price: f64) -> i64 {
    debug_assert!(price.abs() < f64::powi(2.0, 53), "a price leaves what is exact");
    price as i64
}
