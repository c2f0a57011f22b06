//! Minimum-cost flow from rows to columns, exact: rows hold units that go to columns or stay out for nothing,
//! columns take a bounded number of them, and what a unit costs is asked for, not stored.
//!
//! A network simplex. The basis is a spanning tree of the rows, the columns and two more nodes: `idle` fills what
//! columns have left, `out` takes what finds no column. So no arc has a bound, and there is always a basis. It is
//! kept strongly feasible (Cunningham, "A network simplex method", 1976): arcs without flow point to the root, so
//! no basis comes twice. Entering arcs are looked for row by row, the cheapest of each; that no row has one left
//! proves the optimum over all arcs, since [`Costs`] answers for all of them.
//!
//! In: units, costs as integers, a start. Out: the flow, and the prices that prove it. Prices are sums of costs along the
//! tree. On the way they are kept as `f64`, which is exact for whole numbers up to 2^53 and which processors compare
//! several at a time; so nodes times the largest cost must stay below that.

#[cfg(test)]
mod tests;
mod tree;

use tree::{Entering, Tree};

/// So many arcs are gathered before the best of them goes first; measured.
const LIST: usize = 16;

/// What arcs cost.
pub(crate) trait Costs {
    /// The column whose cost less its price is least for this row, and that cost with the price still on it.
    /// None: no arc leads from the row to any column.
    fn cheapest(&self, row: usize, prices: &[f64]) -> Option<(usize, i64)>;
}

/// Units that go from a row to a column, at `cost` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) units: i64,
    pub(crate) cost: i64,
}

/// How many units there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units<'a> {
    /// Of each row.
    pub(crate) rows: &'a [i64],
    /// That each column takes at most.
    pub(crate) columns: &'a [i64],
}

/// An optimum, and why it is one: a cost less its row's and its column's price is nowhere negative, and nothing
/// where units go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Optimum {
    /// By column, then by row; what is not here stays out.
    pub(crate) flows: Vec<Flow>,
    pub(crate) cost: i64,
    /// None is above 0, the cost of staying out.
    pub(crate) row_prices: Vec<i64>,
    pub(crate) column_prices: Vec<i64>,
    /// Of a column that has units left.
    pub(crate) unused_price: i64,
}

/// The flow of least cost. `start` holds flows to begin with, at most one a column and within the units; those that do
/// not fill their column are left aside. A flow of no units tells where its row would go next: that arc is in the
/// first basis if nothing of the row is left and no cycle comes of it. A good start saves pivots.
pub(crate) fn least_cost(units: Units<'_>, costs: &impl Costs, start: &[Flow]) -> Optimum {
    let mut tree = Tree::new(units, start);
    let turns = tree.turns();
    let mut turn = 0;
    let mut found: Vec<Entering> = Vec::with_capacity(LIST);
    loop {
        // Looks further from where it stopped, until there is a list, or nothing was found all around.
        for _ in 0..turns {
            found.extend(tree.entering(turn, costs));
            turn = if turn + 1 == turns { 0 } else { turn + 1 };
            if found.len() >= LIST {
                break;
            }
        }
        if found.is_empty() {
            return tree.optimum();
        }
        while let Some(arc) = tree.best(&mut found) {
            tree.pivot(arc);
        }
    }
}
