//! Largest weighted sum over shared pools: `max sum w_j x_j` with `l_j <= x_j <= u_j` and, for each pool,
//! `sum a_pj x_j <= c_p`, all `a` and `c` at least 0.
//!
//! A primal simplex with bounded variables on a dense dictionary (Chvatal, "Linear Programming", 1983,
//! chapter 8): the lower bounds are feasible, so no first phase is needed. Only pools that could be full
//! take part.

/// Smaller than this part of a pool or of a variable's unit counts as nothing.
const TINY: f64 = 1e-9;

/// Cells below this are no pivots.
const PIVOT: f64 = 1e-7;

/// One variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// Pools and what one unit takes of each.
    pub(crate) uses: Vec<(usize, f64)>,
    /// Above 0.
    pub(crate) weight: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// What stands in a row or column of the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Variable(usize),
    Slack(usize),
}

/// Rows are basic, columns nonbasic at 0 (or at their upper bound, then `flipped`).
struct Dictionary {
    rows: Vec<Name>,
    columns: Vec<Name>,
    /// Row by row: coefficients of the nonbasic ones.
    cells: Vec<f64>,
    /// Values of the basic ones.
    value: Vec<f64>,
    /// Reduced weights of the nonbasic ones.
    gain: Vec<f64>,
    /// Range of each variable above its least.
    range: Vec<f64>,
    flipped: Vec<bool>,
}

/// The best point: a value per column. The lower bounds have to fit, and are the answer where they do not.
pub(crate) fn pack(columns: &[Column], capacity: &[f64]) -> Vec<f64> {
    let left = left(columns, capacity);
    let mut wanted = vec![0.0; capacity.len()];
    for column in columns {
        column.uses.iter().for_each(|(pool, amount)| wanted[*pool] += amount * (column.most - column.least));
    }
    let stops = |(pool, amount): &(usize, f64)| *amount > 0.0 && wanted[*pool] > left[*pool];
    // Nothing stops the others.
    let stopped: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].uses.iter().any(stops)).collect();
    let mut x: Vec<f64> = columns.iter().map(|column| column.most.max(column.least)).collect();
    let among: Vec<Column> = stopped.iter().map(|at| columns[*at].clone()).collect();
    let full: Vec<usize> = (0..capacity.len()).filter(|pool| wanted[*pool] > left[*pool]).collect();
    for (at, value) in stopped.into_iter().zip(pack_full(&among, (&full, &left))) {
        x[at] = value;
    }
    within(x, columns, capacity)
}

/// Values of columns of which each draws on a full pool.
fn pack_full(columns: &[Column], (full, left): (&[usize], &[f64])) -> Vec<f64> {
    let unit: Vec<f64> = columns.iter().map(|column| most(column, left)).collect();
    let mut row_of = vec![usize::MAX; left.len()];
    full.iter().enumerate().for_each(|(row, pool)| row_of[*pool] = row);
    // Variables count in parts of what each can have, rows in parts of what is left: all cells are of one size.
    let mut dictionary = Dictionary {
        rows: full.iter().map(|pool| Name::Slack(*pool)).collect(),
        columns: (0..columns.len()).map(Name::Variable).collect(),
        cells: vec![0.0; full.len() * columns.len()],
        value: vec![1.0; full.len()],
        gain: columns.iter().zip(&unit).map(|(column, unit)| column.weight * unit).collect(),
        range: columns.iter().zip(&unit).map(|(column, unit)| range(column, *unit)).collect(),
        flipped: vec![false; columns.len()],
    };
    for (at, (column, unit)) in columns.iter().zip(&unit).enumerate() {
        for (pool, amount) in &column.uses {
            if row_of[*pool] != usize::MAX && *unit > 0.0 {
                dictionary.cells[row_of[*pool] * columns.len() + at] += amount * unit / left[*pool];
            }
        }
    }
    // Each step raises the sum or is degenerate; the bound only guards against rounding.
    for _ in 0..20 * (columns.len() + full.len()) + 20 {
        if !dictionary.step() {
            break;
        }
    }
    let above = dictionary.above();
    columns
        .iter()
        .zip(unit.iter().zip(above))
        .map(|(column, (unit, above))| column.least + unit * above)
        .collect()
}

/// What lower bounds leave of the pools.
fn left(columns: &[Column], capacity: &[f64]) -> Vec<f64> {
    let mut left = capacity.to_vec();
    for column in columns {
        column.uses.iter().for_each(|(pool, amount)| left[*pool] -= amount * column.least);
    }
    left.iter_mut().zip(capacity).for_each(|(left, capacity)| {
        if *left <= capacity * TINY {
            *left = 0.0;
        }
    });
    left
}

/// How far a variable could rise above its least if it were alone.
fn most(column: &Column, left: &[f64]) -> f64 {
    let pools = column.uses.iter().filter(|(_, amount)| *amount > 0.0);
    pools.map(|(pool, amount)| left[*pool] / amount).fold((column.most - column.least).max(0.0), f64::min)
}

/// From the least to the most, in units.
fn range(column: &Column, unit: f64) -> f64 {
    if unit > 0.0 { (column.most - column.least) / unit } else { 0.0 }
}

/// The point, drawn back towards the lower bounds as far as rounding took it beyond a pool.
fn within(mut x: Vec<f64>, columns: &[Column], capacity: &[f64]) -> Vec<f64> {
    let mut least = vec![0.0; capacity.len()];
    let mut above = vec![0.0; capacity.len()];
    for (column, x) in columns.iter().zip(&mut x) {
        *x = if x.is_finite() { x.clamp(column.least, column.most.max(column.least)) } else { column.least };
        for (pool, amount) in &column.uses {
            least[*pool] += amount * column.least;
            above[*pool] += amount * (*x - column.least);
        }
    }
    let over = (0..capacity.len())
        .filter(|pool| above[*pool] > 0.0 && least[*pool] + above[*pool] > capacity[*pool]);
    let part = over.map(|pool| (capacity[pool] - least[pool]).max(0.0) / above[pool]).fold(1.0, f64::min);
    for (column, x) in columns.iter().zip(&mut x).filter(|_| part < 1.0) {
        *x = column.least + (*x - column.least) * part;
    }
    x
}

impl Dictionary {
    fn range(&self, name: Name) -> f64 {
        match name {
            Name::Variable(at) => self.range[at],
            Name::Slack(_) => f64::INFINITY,
        }
    }

    /// Raises one nonbasic variable as far as it goes; false where none gains.
    fn step(&mut self) -> bool {
        let width = self.columns.len();
        let best = (0..width).filter(|at| self.gain[*at] > TINY);
        let enter = best.max_by(|x, y| self.gain[*x].total_cmp(&self.gain[*y]).then(y.cmp(x)));
        let Some(enter) = enter else { return false };
        let (most, leave) = self.ratio(enter);
        if most.is_infinite() {
            self.gain[enter] = 0.0;
            return true;
        }
        match leave {
            None => self.flip_column(enter),
            Some((row, at_top)) => {
                if at_top {
                    self.flip_row(row);
                }
                self.pivot(row, enter);
            }
        }
        true
    }

    /// How far the nonbasic variable rises, and the row that stops it, if its own range does not. Of rows that
    /// stop it together the one with the largest cell leaves (Harris, 1973): small pivots lose digits.
    fn ratio(&self, enter: usize) -> (f64, Option<(usize, bool)>) {
        let width = self.columns.len();
        let room = |row: &usize, slack: f64| {
            let cell = self.cells[row * width + enter];
            let room = match cell {
                cell if cell > PIVOT => (self.value[*row] + slack) / cell,
                cell if cell < -PIVOT => (self.range(self.rows[*row]) - self.value[*row] + slack) / -cell,
                _ => f64::INFINITY,
            };
            (room.max(0.0), cell)
        };
        let range = self.range(self.columns[enter]);
        let most = (0..self.rows.len()).map(|row| room(&row, TINY).0).fold(f64::INFINITY, f64::min);
        if range <= most {
            return (range, None);
        }
        let stops = (0..self.rows.len()).filter(|row| room(row, 0.0).0 <= most);
        let size = |row: &usize| room(row, 0.0).1.abs();
        let leave = stops.max_by(|x, y| size(x).total_cmp(&size(y)).then(y.cmp(x)));
        leave.map_or((range, None), |row| {
            let (most, cell) = room(&row, 0.0);
            (most, Some((row, cell < 0.0)))
        })
    }

    /// The nonbasic variable goes to its other bound.
    fn flip_column(&mut self, column: usize) {
        let width = self.columns.len();
        let Name::Variable(variable) = self.columns[column] else { return };
        let range = self.range[variable];
        for row in 0..self.rows.len() {
            let cell = &mut self.cells[row * width + column];
            self.value[row] -= *cell * range;
            *cell = -*cell;
        }
        self.gain[column] = -self.gain[column];
        self.flipped[variable] = !self.flipped[variable];
    }

    /// The basic variable is counted from its upper bound down.
    fn flip_row(&mut self, row: usize) {
        let width = self.columns.len();
        let Name::Variable(variable) = self.rows[row] else { return };
        self.cells[row * width..(row + 1) * width].iter_mut().for_each(|cell| *cell = -*cell);
        self.value[row] = self.range[variable] - self.value[row];
        self.flipped[variable] = !self.flipped[variable];
    }

    /// Exchanges a basic and a nonbasic one.
    fn pivot(&mut self, row: usize, column: usize) {
        let width = self.columns.len();
        let pivot = self.cells[row * width + column];
        let mut own: Vec<f64> =
            self.cells[row * width..(row + 1) * width].iter().map(|c| c / pivot).collect();
        own[column] = 1.0 / pivot;
        let value = self.value[row] / pivot;
        for other in (0..self.rows.len()).filter(|other| *other != row) {
            let cells = &mut self.cells[other * width..(other + 1) * width];
            let factor = cells[column];
            if factor == 0.0 {
                continue;
            }
            cells.iter_mut().zip(&own).for_each(|(cell, own)| *cell -= factor * own);
            cells[column] = -factor / pivot;
            self.value[other] = (self.value[other] - factor * value).max(0.0);
        }
        let factor = self.gain[column];
        self.gain.iter_mut().zip(&own).for_each(|(gain, own)| *gain -= factor * own);
        self.gain[column] = -factor / pivot;
        self.cells[row * width..(row + 1) * width].copy_from_slice(&own);
        self.value[row] = value;
        std::mem::swap(&mut self.rows[row], &mut self.columns[column]);
    }

    /// The variables' values, in parts of their units.
    fn above(&self) -> Vec<f64> {
        let mut above = vec![0.0; self.range.len()];
        for (name, value) in self.rows.iter().zip(&self.value) {
            if let Name::Variable(at) = name {
                above[*at] = *value;
            }
        }
        for (at, above) in above.iter_mut().enumerate().filter(|(at, _)| self.flipped[*at]) {
            *above = self.range[at] - *above;
        }
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use microlp::{ComparisonOp, OptimizationDirection, Problem};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn column(uses: &[(usize, f64)], weight: f64, least: f64, most: f64) -> Column {
        Column { uses: uses.to_vec(), weight, least, most }
    }

    #[test]
    fn the_cheaper_use_of_a_pool_wins_above_the_floors() {
        // One pool of 10: x takes 1, y takes 4 a unit; y keeps its floor of 1, x gets the other 6.
        let columns = [column(&[(0, 1.0)], 1.0, 0.0, 100.0), column(&[(0, 4.0)], 1.0, 1.0, 100.0)];
        let packed = pack(&columns, &[10.0]);
        assert!((packed[0] - 6.0).abs() < 1e-9 && (packed[1] - 1.0).abs() < 1e-9, "{packed:?}");
    }

    #[test]
    fn upper_bounds_hold_and_pass_the_rest_on() {
        let columns = [column(&[(0, 1.0)], 1.0, 0.0, 2.0), column(&[(0, 1.0), (1, 1.0)], 1.0, 0.0, 9.0)];
        let packed = pack(&columns, &[8.0, 5.0]);
        assert!((packed[0] - 2.0).abs() < 1e-9 && (packed[1] - 5.0).abs() < 1e-9, "{packed:?}");
    }

    /// Columns over five pools, of sizes that differ by six orders of magnitude.
    fn instance() -> impl Strategy<Value = (Vec<Column>, Vec<f64>)> {
        let size = || (-2.0..4.0_f64).prop_map(|exponent| 10.0_f64.powf(exponent));
        let uses = prop::collection::btree_map(0..5_usize, size(), 1..4);
        let one = (uses, 0.5..1.0_f64, 0.0..1.0_f64, size());
        let capacity = prop::collection::vec(size(), 5);
        (prop::collection::vec(one, 1..12), capacity).prop_map(|(columns, capacity)| {
            let share = 1.0 / columns.len() as f64;
            let column = |(uses, weight, floor, most): (BTreeMap<usize, f64>, f64, f64, f64)| {
                let uses: Vec<(usize, f64)> = uses.into_iter().collect();
                let alone = uses.iter().map(|(pool, amount)| capacity[*pool] * share / amount);
                let least = alone.fold(most, f64::min) * floor;
                Column { uses, weight, least, most }
            };
            (columns.into_iter().map(column).collect(), capacity.clone())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_pool_is_over_and_no_other_point_is_better((columns, capacity) in instance()) {
            let packed = pack(&columns, &capacity);
            let mut problem = Problem::new(OptimizationDirection::Maximize);
            let mut used = vec![0.0; capacity.len()];
            let mut rows: Vec<Vec<(microlp::Variable, f64)>> = vec![Vec::new(); capacity.len()];
            let mut sum = 0.0;
            for (column, x) in columns.iter().zip(&packed) {
                prop_assert!(*x >= column.least && *x <= column.most, "{} of {:?}", x, column);
                // The oracle has no scaling of its own: its variables count in parts of what pools allow.
                let alone = column.uses.iter().map(|(pool, amount)| capacity[*pool] / amount);
                let range = alone.fold(column.most - column.least, f64::min);
                let most = (column.most - column.least) / range;
                let variable = problem.add_var(column.weight * range, (0.0, most));
                sum += column.weight * (x - column.least);
                for (pool, amount) in &column.uses {
                    used[*pool] += amount * x;
                    rows[*pool].push((variable, amount * range / capacity[*pool]));
                }
            }
            for (pool, row) in rows.iter().enumerate() {
                let least: f64 = columns.iter().flat_map(|column| column.uses.iter().map(move |(at, amount)| (at, amount * column.least)))
                    .filter(|(at, _)| **at == pool).map(|(_, least)| least).sum();
                prop_assert!(used[pool] <= capacity[pool] * (1.0 + 1e-12), "pool {}: {} of {}", pool, used[pool], capacity[pool]);
                problem.add_constraint(row.as_slice(), ComparisonOp::Le, 1.0 - least / capacity[pool]);
            }
            let best = problem.solve().unwrap().into_solution().unwrap().objective();
            prop_assert!(sum >= best * (1.0 - 1e-6) - 1e-9, "{} of {}", sum, best);
        }
    }
}
