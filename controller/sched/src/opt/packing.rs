//! Largest weighted sum over shared pools: `max sum w_j x_j` with `l_j <= x_j <= u_j` and, for each pool,
//! `sum a_pj x_j <= c_p`, all `a` and `c` at least 0.
//!
//! A primal simplex with bounded variables on a dense dictionary (Chvatal, "Linear Programming", 1983,
//! chapter 8): the lower bounds are feasible, so no first phase is needed. Only pools that could be full
//! take part. The answer carries the dual price of each pool: what one more unit of it is worth.

/// Smaller than this counts as nothing, relative to the largest weight and capacity.
const TINY: f64 = 1e-9;

/// One variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// Pools and what one unit takes of each.
    pub(crate) uses: Vec<(usize, f64)>,
    pub(crate) weight: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// The best point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Packed {
    pub(crate) x: Vec<f64>,
    /// Per pool; 0 where it is not full.
    pub(crate) price: Vec<f64>,
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

/// Solves; the lower bounds have to fit, and are the answer where they do not.
pub(crate) fn pack(columns: &[Column], capacity: &[f64]) -> Packed {
    let mut left = capacity.to_vec();
    let mut wanted = vec![0.0; capacity.len()];
    for column in columns {
        for (pool, amount) in &column.uses {
            left[*pool] -= amount * column.least;
            wanted[*pool] += amount * (column.most - column.least);
        }
    }
    let full: Vec<usize> = (0..capacity.len()).filter(|pool| wanted[*pool] > left[*pool].max(0.0)).collect();
    // Rows count in parts of their pool, so that bits and processor seconds are of one size.
    let scale = |pool: usize| capacity[pool].max(f64::MIN_POSITIVE);
    let mut row_of = vec![usize::MAX; capacity.len()];
    full.iter().enumerate().for_each(|(row, pool)| row_of[*pool] = row);
    let mut dictionary = Dictionary {
        rows: full.iter().map(|pool| Name::Slack(*pool)).collect(),
        columns: (0..columns.len()).map(Name::Variable).collect(),
        cells: vec![0.0; full.len() * columns.len()],
        value: full.iter().map(|pool| left[*pool].max(0.0) / scale(*pool)).collect(),
        gain: columns.iter().map(|column| column.weight).collect(),
        range: columns.iter().map(|column| column.most - column.least).collect(),
        flipped: vec![false; columns.len()],
    };
    for (at, column) in columns.iter().enumerate() {
        for (pool, amount) in &column.uses {
            if row_of[*pool] != usize::MAX {
                dictionary.cells[row_of[*pool] * columns.len() + at] += amount / scale(*pool);
            }
        }
    }
    // Each step raises the sum or is degenerate; the bound only guards against rounding.
    for _ in 0..20 * (columns.len() + full.len()) + 20 {
        if !dictionary.step() {
            break;
        }
    }
    dictionary.answer(columns, capacity)
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
        let mut most = self.range(self.columns[enter]);
        let mut leave = None;
        for row in 0..self.rows.len() {
            let cell = self.cells[row * width + enter];
            let room = if cell > TINY {
                self.value[row] / cell
            } else if cell < -TINY {
                (self.range(self.rows[row]) - self.value[row]) / -cell
            } else {
                continue;
            };
            if room < most - TINY || (leave.is_none() && room <= most) {
                (most, leave) = (room.max(0.0), Some((row, cell < 0.0)));
            }
        }
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

    fn answer(&self, columns: &[Column], capacity: &[f64]) -> Packed {
        let mut x: Vec<f64> = columns.iter().map(|column| column.least).collect();
        let mut price = vec![0.0; capacity.len()];
        let mut above = vec![0.0; columns.len()];
        for (name, value) in self.rows.iter().zip(&self.value) {
            if let Name::Variable(at) = name {
                above[*at] = *value;
            }
        }
        for (at, x) in x.iter_mut().enumerate() {
            *x += if self.flipped[at] { self.range[at] - above[at] } else { above[at] };
        }
        for (name, gain) in self.columns.iter().zip(&self.gain) {
            if let Name::Slack(pool) = name {
                price[*pool] = (-gain).max(0.0) / capacity[*pool].max(f64::MIN_POSITIVE);
            }
        }
        Packed { x, price }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(uses: &[(usize, f64)], weight: f64, least: f64, most: f64) -> Column {
        Column { uses: uses.to_vec(), weight, least, most }
    }

    #[test]
    fn the_cheaper_use_of_a_pool_wins_above_the_floors() {
        // One pool of 10: x takes 1, y takes 4 a unit; y keeps its floor of 1, x gets the other 6.
        let columns = [column(&[(0, 1.0)], 1.0, 0.0, 100.0), column(&[(0, 4.0)], 1.0, 1.0, 100.0)];
        let packed = pack(&columns, &[10.0]);
        assert!((packed.x[0] - 6.0).abs() < 1e-9 && (packed.x[1] - 1.0).abs() < 1e-9, "{packed:?}");
        assert!((packed.price[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn upper_bounds_hold_and_pass_the_rest_on() {
        let columns = [column(&[(0, 1.0)], 1.0, 0.0, 2.0), column(&[(0, 1.0), (1, 1.0)], 1.0, 0.0, 9.0)];
        let packed = pack(&columns, &[8.0, 5.0]);
        assert!((packed.x[0] - 2.0).abs() < 1e-9 && (packed.x[1] - 5.0).abs() < 1e-9, "{packed:?}");
        assert_eq!(packed.price[0], 0.0);
    }
}
