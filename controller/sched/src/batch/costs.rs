//! What the paper's two schedulers pay for a container on a machine, as integers.
//!
//! Staying out costs 0, the worst. Every arc costs one less than its formula, so that a container without demands,
//! or a machine without load, is still better than waiting.

use super::vectors::ONE;
use super::{RESOURCES, Vector};
use crate::opt::mincost::Costs;

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

/// Candidates' parts, resource by resource, and their loads.
#[derive(Debug)]
struct Side {
    parts: [Vec<i64>; RESOURCES],
    load: Vec<i64>,
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
            let found =
                |of: &dyn Fn(&Column) -> i64| class.iter().map(|at| of(&columns[*at as usize])).collect();
            let parts = std::array::from_fn(|resource| found(&|column| column.parts[resource]));
            Side { parts, load: found(&|column| column.load) }
        };
        let sides = candidates.iter().map(side).collect();
        Self { formula, rows, columns, candidates, sides }
    }

    /// None: no arc.
    pub(super) fn cost(&self, row: usize, column: usize) -> Option<i64> {
        let (wanted, found) = (&self.rows[row], &self.columns[column]);
        super::fits(&found.free, &wanted.demand).then(|| cost(self.formula, &wanted.parts, found))
    }
}

/// Of a container of such demand, in parts, on a machine where it fits.
pub(super) fn cost(formula: Formula, demand: &Vector, column: &Column) -> i64 {
    match formula {
        Formula::DotProduct => -1 - demand.iter().zip(column.parts).map(|(d, v)| d * v).sum::<i64>(),
        Formula::MostLoaded => -1 - column.load * ONE,
    }
}

impl Arcs {
    /// The candidate with room whose cost less its price is least; `worth` is the cost without its sign, candidate by
    /// candidate.
    fn least(&self, wanted: &Row, prices: &[i64], worth: impl Iterator<Item = i64>) -> Option<(usize, i64)> {
        let mut best = (i64::MAX, None);
        let mut look = |column: usize, price: i64, worth: i64| {
            let reduced = -1 - worth - price;
            if reduced < best.0 && super::fits(&self.columns[column].free, &wanted.demand) {
                best = (reduced, Some(column));
            }
        };
        let candidates = &self.candidates[wanted.class];
        if candidates.len() == prices.len() {
            // All columns, in order: nothing has to be looked up.
            prices.iter().enumerate().zip(worth).for_each(|((at, price), worth)| look(at, *price, worth));
        } else {
            candidates
                .iter()
                .zip(worth)
                .for_each(|(at, worth)| look(*at as usize, prices[*at as usize], worth));
        }
        let column = best.1?;
        Some((column, best.0 + prices[column]))
    }
}

impl Costs for Arcs {
    fn cheapest(&self, row: usize, prices: &[i64]) -> Option<(usize, i64)> {
        let wanted = &self.rows[row];
        let Side { parts: [cpu, memory, storage], load } = &self.sides[wanted.class];
        let [d_cpu, d_memory, d_storage] = wanted.parts;
        let two = || cpu.iter().zip(memory).map(|(cpu, memory)| d_cpu * cpu + d_memory * memory);
        match self.formula {
            Formula::MostLoaded => self.least(wanted, prices, load.iter().map(|load| load * ONE)),
            Formula::DotProduct if d_storage == 0 => self.least(wanted, prices, two()),
            Formula::DotProduct => {
                let third = storage.iter().map(|storage| d_storage * storage);
                self.least(wanted, prices, two().zip(third).map(|(two, third)| two + third))
            }
        }
    }
}
