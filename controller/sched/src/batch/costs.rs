//! What the paper's two schedulers pay for a container on a machine, as integers.
//!
//! Staying out costs 0, the worst. Every arc costs one less than its formula, so that a container without demands,
//! or a machine without load, is still better than waiting.

use super::vectors::ONE;
use super::{RESOURCES, Vector};
use crate::opt::mincost::Costs;

/// So many candidates are compared at a time.
const STRETCH: usize = 32;

/// A machine as a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) free: Vector,
    /// Parts of what is free.
    pub(super) parts: Vector,
    /// Sum of used parts.
    pub(super) load: i64,
}

/// Containers of equal demand that may run on the same machines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) demand: Vector,
    pub(super) parts: Vector,
    /// Index into the candidates.
    pub(super) class: usize,
}

/// Which of the formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Formula {
    /// `-(D_i . V_j)`, `V_j` what the machine has available.
    DotProduct,
    /// `-(load of m_j)`.
    MostLoaded,
}

/// Rows, columns and which may meet.
#[derive(Debug)]
pub(super) struct Arcs {
    pub(super) formula: Formula,
    pub(super) rows: Vec<Row>,
    pub(super) columns: Vec<Column>,
    /// Columns that each class may use, ascending.
    pub(super) candidates: Vec<Vec<u32>>,
    /// Of each class: its candidates' numbers side by side, so that looking through them is quick.
    sides: Vec<Side>,
}

/// Candidates' parts, resource by resource, and their loads times [`ONE`]; filled up to whole stretches.
#[derive(Debug)]
struct Side {
    parts: [Vec<f64>; RESOURCES],
    load: Vec<f64>,
}

impl Arcs {
    /// Lays the candidates' numbers side by side.
    pub(super) fn new(
        formula: Formula,
        rows: Vec<Row>,
        columns: Vec<Column>,
        candidates: Vec<Vec<u32>>,
    ) -> Self {
        let side = |class: &Vec<u32>| {
            let found = |of: &dyn Fn(&Column) -> i64| {
                let found = class.iter().map(|at| exact(of(&columns[*at as usize])));
                let mut found: Vec<f64> = found.collect();
                found.resize(class.len().next_multiple_of(STRETCH), 0.0);
                found
            };
            let parts = std::array::from_fn(|resource| found(&|column| column.parts[resource]));
            Side { parts, load: found(&|column| column.load * ONE) }
        };
        let sides = candidates.iter().map(side).collect();
        Self { formula, rows, columns, candidates, sides }
    }

    /// Cost of the arc; none: there is none.
    pub(super) fn between(&self, row: usize, column: usize) -> Option<i64> {
        let (wanted, found) = (&self.rows[row], &self.columns[column]);
        let seen =
            u32::try_from(column).is_ok_and(|at| self.candidates[wanted.class].binary_search(&at).is_ok());
        let open = seen && super::fits(&found.free, &wanted.demand);
        open.then(|| cost(self.formula, &wanted.parts, found))
    }
}

/// Of a container of such demand, in parts, on a machine where it fits.
pub(super) fn cost(formula: Formula, demand: &Vector, column: &Column) -> i64 {
    match formula {
        Formula::DotProduct => -1 - demand.iter().zip(column.parts).map(|(d, v)| d * v).sum::<i64>(),
        Formula::MostLoaded => -1 - column.load * ONE,
    }
}

/// A candidate, and its cost less its price.
pub(super) type Reduced = (f64, u32);

impl Arcs {
    /// The `K` candidates with room whose costs less their prices are least, the least first; where there are fewer,
    /// infinity fills up.
    pub(super) fn least<const K: usize>(&self, row: usize, prices: &[f64]) -> [Reduced; K] {
        let wanted = &self.rows[row];
        let Side { parts: [cpu, memory, storage], load } = &self.sides[wanted.class];
        let [d_cpu, d_memory, d_storage] = wanted.parts.map(exact);
        match self.formula {
            Formula::MostLoaded => self.least_of(wanted, prices, ([1.0], [load])),
            Formula::DotProduct if d_storage == 0.0 => {
                self.least_of(wanted, prices, ([d_cpu, d_memory], [cpu, memory]))
            }
            Formula::DotProduct => {
                self.least_of(wanted, prices, ([d_cpu, d_memory, d_storage], [cpu, memory, storage]))
            }
        }
    }

    /// Costs are the sum of weights times sides, with a minus, less 1. Whether a stretch of candidates holds a better one at
    /// all is seen without a look at their room.
    fn least_of<const K: usize, const N: usize>(
        &self,
        wanted: &Row,
        prices: &[f64],
        (weights, sides): ([f64; N], [&[f64]; N]),
    ) -> [Reduced; K] {
        let candidates = &self.candidates[wanted.class];
        // All columns in order, or some that have to be looked up.
        let all = candidates.len() == prices.len();
        let sides = sides.map(|side| side.as_chunks().0);
        let mut least = [(f64::INFINITY, 0); K];
        let mut reduced = [0.0; STRETCH];
        for (number, columns) in candidates.chunks(STRETCH).enumerate() {
            let ready = prices.get(number * STRETCH..).and_then(<[f64]>::first_chunk).filter(|_| all);
            let prices = ready.copied().unwrap_or_else(|| looked_up(columns, prices));
            if !any_below(least[K - 1].0, (weights, sides.map(|side| &side[number]), &prices), &mut reduced) {
                continue;
            }
            for (found, column) in reduced.iter().zip(columns) {
                let free = &self.columns[*column as usize].free;
                if *found < least[K - 1].0 && super::fits(free, &wanted.demand) {
                    keep(&mut least, (*found, *column));
                }
            }
        }
        least
    }
}

/// In its place among the least, the last of which goes.
fn keep<const K: usize>(least: &mut [Reduced; K], found: Reduced) {
    let at = least.iter().position(|known| found.0 < known.0).unwrap_or(K);
    least[at..].rotate_right(1);
    least[at] = found;
}

/// Prices of a stretch; what it lacks costs more than anything.
fn looked_up(columns: &[u32], prices: &[f64]) -> [f64; STRETCH] {
    let mut found = [f64::NEG_INFINITY; STRETCH];
    found.iter_mut().zip(columns).for_each(|(to, column)| *to = prices[*column as usize]);
    found
}

/// Writes the reduced costs of a stretch; whether any is below `least`. Straight and of a fixed length, so that it becomes
/// vector instructions.
fn any_below<const N: usize>(
    least: f64,
    (weights, sides, prices): ([f64; N], [&[f64; STRETCH]; N], &[f64; STRETCH]),
    reduced: &mut [f64; STRETCH],
) -> bool {
    let mut any = false;
    for (at, (to, price)) in reduced.iter_mut().zip(prices).enumerate() {
        let mut cost = -1.0 - price;
        for (weight, side) in weights.iter().zip(&sides) {
            cost -= weight * side[at];
        }
        *to = cost;
        any |= cost < least;
    }
    any
}

impl Costs for Arcs {
    fn cheapest(&self, row: usize, prices: &[f64]) -> Option<(usize, i64)> {
        let [(reduced, column)] = self.least(row, prices);
        let column = column as usize;
        let cost = || cost(self.formula, &self.rows[row].parts, &self.columns[column]);
        reduced.is_finite().then(|| (column, cost()))
    }
}

/// Parts are at most [`ONE`], and loads a few of them.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53, and a product of two parts has 34 bits")]
fn exact(parts: i64) -> f64 {
    parts as f64
}
