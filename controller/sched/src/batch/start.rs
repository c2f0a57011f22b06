//! Where the solver begins: a flow near the optimum, and for each row the column that it would go to next.
//!
//! For dot products an auction (Bertsekas, "The auction algorithm", 1988): each unit bids for the column that is worth most to it
//! at the prices so far, and raises the price by what the second best is worse and a step more; steps shrink
//! from phase to phase. For loads, which are the same for every row, the most loaded columns go first, each to the
//! largest row that fits. Either only saves pivots, and may leave out what it likes: the solver proves its optimum.

use super::Vector;
use super::costs::{Arcs, Formula};
use super::rounds::Problem;
use crate::opt::mincost::Flow;

/// The first phase's step is that part of the largest worth, each further one's that part of the one before.
const FIRST: f64 = 4.0;
const SMALLER: f64 = 6.0;
const PHASES: usize = 4;
/// A phase begins with prices that are lower by so many steps of the one before: that one overshot.
const EASED: f64 = 3.0;
/// A phase ends after so many bids a unit; scarce columns would be bid for without end.
const BIDS: usize = 16;

/// Flows of one unit each, and where a row hangs below a column, flows of none.
pub(super) fn start(problem: &Problem) -> Vec<Flow> {
    match problem.arcs.formula {
        Formula::DotProduct => Auction::new(problem).flows(),
        Formula::MostLoaded => most_loaded(problem),
    }
}

fn most_loaded(Problem { arcs, members, machines }: &Problem) -> Vec<Flow> {
    let sum = |parts: &Vector| parts.iter().sum::<i64>();
    let mut rows: Vec<(usize, usize)> = members.iter().map(Vec::len).enumerate().collect();
    rows.sort_by_key(|(row, _)| (-sum(&arcs.rows[*row].parts), *row));
    let mut columns: Vec<usize> = (0..machines.len()).collect();
    columns.sort_by_key(|column| (-arcs.columns[*column].load, *column));
    let mut start = Vec::new();
    for column in columns {
        let found = rows.iter().enumerate();
        let mut found = found.filter_map(|(at, (row, _))| Some((at, *row, arcs.between(*row, column)?)));
        let Some((at, row, cost)) = found.next() else { continue };
        start.push(Flow { row, column, units: 1, cost });
        rows[at].1 -= 1;
        if rows[at].1 == 0 {
            rows.remove(at);
        }
    }
    start
}

struct Auction<'a> {
    arcs: &'a Arcs,
    /// The row of each unit.
    units: Vec<usize>,
    /// Of each column: none is above 0, and the unit that holds it.
    prices: Vec<f64>,
    holders: Vec<Option<usize>>,
    /// What a column can be worth to anyone.
    most: f64,
}

impl<'a> Auction<'a> {
    fn new(Problem { arcs, members, machines }: &'a Problem) -> Self {
        let row = |(row, units): (usize, &Vec<usize>)| std::iter::repeat_n(row, units.len());
        let prices = vec![0.0; machines.len()];
        let worth = |row: usize| {
            let [(cost, _)] = arcs.least(row, &prices);
            if cost.is_finite() { -cost } else { 0.0 }
        };
        let most = (0..members.len()).map(worth).fold(0.0, f64::max);
        let units = members.iter().enumerate().flat_map(row).collect();
        Self { arcs, units, prices, holders: vec![None; machines.len()], most }
    }

    fn flows(mut self) -> Vec<Flow> {
        let mut step = self.most / FIRST;
        for phase in 0..PHASES {
            if phase > 0 {
                self.prices.iter_mut().for_each(|price| *price = (*price + EASED * step).min(0.0));
                step /= SMALLER;
            }
            self.phase(step);
        }
        let held = self.holders.iter().enumerate().filter_map(|(column, unit)| Some((column, (*unit)?)));
        let flow = |(row, column): (usize, usize), units: i64| {
            self.arcs.between(row, column).map(|cost| Flow { row, column, units, cost })
        };
        let mut flows: Vec<Flow> =
            held.clone().filter_map(|(column, unit)| flow((self.units[unit], column), 1)).collect();
        flows.extend(held.filter_map(|(_, unit)| flow((self.units[unit], self.next(unit)?), 0)));
        flows
    }

    /// Every unit bids until it holds a column.
    fn phase(&mut self, step: f64) {
        self.holders.fill(None);
        let mut open: Vec<usize> = (0..self.units.len()).rev().collect();
        for _ in 0..BIDS * self.units.len() {
            let Some(unit) = open.pop() else { return };
            let [(best, column), (second, _)] = self.arcs.least(self.units[unit], &self.prices);
            let column = column as usize;
            // Nothing fits, or what does costs more than anything is worth.
            if best.is_infinite() || self.prices[column] < -self.most {
                continue;
            }
            let ahead = if second.is_finite() { second - best } else { 0.0 };
            self.prices[column] -= ahead + step;
            open.extend(self.holders[column].replace(unit));
        }
    }

    /// The best column that its row holds nothing of.
    fn next(&self, unit: usize) -> Option<usize> {
        let row = self.units[unit];
        let others = |column: &usize| self.holders[*column].is_none_or(|holder| self.units[holder] != row);
        let two: [_; 2] = self.arcs.least(row, &self.prices);
        two.into_iter().filter(|(cost, _)| cost.is_finite()).map(|(_, column)| column as usize).find(others)
    }
}
