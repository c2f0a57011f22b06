//! The restricted master of the relaxation: how much of each demand takes which of its columns so far.
//!
//! Works on the soft maximum `sum exp(sharpness * (load / capacity / top - 1))` over pools, whose slopes
//! are the pools' prices. One demand after another shifts flow from its dearest column to its cheapest, as
//! far as a line search along the two says; the soft maximum falls with every shift. Fractions of a
//! demand always sum to 1.

use super::congestion::{Demand, Network};
use super::shortest::ShortestPaths;

/// The least exponential: idle pools are not free, so that paths stay short. It costs the lower bound at
/// most this times the number of pools.
const IDLE: f64 = 1e-7;
/// Columns whose prices differ by less than this part count as equal.
const EQUAL: f64 = 1e-3;
/// Smaller fractions are dropped.
const LEAST: f64 = 1e-9;
/// Steps of the line search at most.
const STEPS: u32 = 20;
/// The line search ends when the two columns' prices differ by this part.
const CLOSE: f64 = 0.01;
/// How much one shift may raise an exponent, and a quarter of what any exponent may be: prices stay
/// numbers.
const REACH: f64 = 30.0;

/// A path and the part of its demand that takes it: the paper's `m_ik`, over the demand's volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) path: Vec<usize>,
    pub(crate) fraction: f64,
}

/// Columns, loads and prices.
#[derive(Debug)]
pub(crate) struct Master<'a> {
    network: Network<'a>,
    demands: &'a [Demand],
    columns: Vec<Vec<Column>>,
    loads: Vec<f64>,
    /// Slope of the soft maximum for one more unit of load on each pool, without a common factor.
    prices: Vec<f64>,
    sharpness: f64,
    /// The congestion when the prices were last set.
    top: f64,
    /// Pools of a shift's dear column that its cheap one does not use, and the other way round.
    swap: Swap,
}

#[derive(Debug, Default)]
struct Swap {
    dear: Vec<usize>,
    cheap: Vec<usize>,
}

/// What a demand's flow costs beyond its cheapest column, and what it would cost on that.
#[derive(Debug, Clone, Copy)]
struct Cost {
    excess: f64,
    least: f64,
}

impl<'a> Master<'a> {
    /// All of each demand on one path.
    pub(crate) fn new(network: Network<'a>, demands: &'a [Demand], paths: Vec<Vec<usize>>) -> Self {
        let pools = network.capacity.len();
        let mut master = Self {
            network,
            demands,
            columns: paths.into_iter().map(|path| vec![Column { path, fraction: 1.0 }]).collect(),
            loads: vec![0.0; pools],
            prices: vec![0.0; pools],
            sharpness: 1.0,
            top: 0.0,
            swap: Swap::default(),
        };
        master.add_up_loads();
        master
    }

    pub(crate) fn congestion(&self) -> f64 {
        self.network.congestion(&self.loads)
    }

    pub(crate) fn demand(&self, index: usize) -> Demand {
        self.demands[index]
    }

    pub(crate) fn prices(&self) -> &[f64] {
        &self.prices
    }

    /// `sum B_e * l_e`.
    pub(crate) fn worth(&self) -> f64 {
        self.network.capacity.iter().zip(&self.prices).map(|(capacity, price)| capacity * price).sum()
    }

    pub(crate) fn into_columns(self) -> Vec<Vec<Column>> {
        self.columns
    }

    /// Prices all pools anew at this sharpness and the present congestion, which must not be 0.
    pub(crate) fn reprice_all(&mut self, sharpness: f64) {
        self.top = self.congestion();
        self.sharpness = sharpness;
        (0..self.prices.len()).for_each(|pool| self.reprice(pool));
    }

    /// Takes the shortest path just found for a demand as a column if it is cheaper than all it has.
    pub(crate) fn offer(&mut self, index: usize, shortest: &ShortestPaths<'_>) {
        let prices = self.columns[index].iter().map(|column| self.price(&column.path));
        let cheapest = prices.fold(f64::INFINITY, f64::min);
        let to = self.demands[index].to;
        if shortest.distance(to) < cheapest * (1.0 - EQUAL)
            && let Some(path) = shortest.path(to)
        {
            self.columns[index].push(Column { path, fraction: 0.0 });
        }
    }

    /// Lets every demand shift once; the answer is the part by which flow was dearer than on its demand's
    /// cheapest columns.
    pub(crate) fn pass(&mut self) -> f64 {
        let (mut excess, mut least) = (0.0, 0.0);
        for index in 0..self.columns.len() {
            let cost = self.shift(index);
            excess += cost.excess;
            least += cost.least;
        }
        if least > 0.0 { excess / least } else { 0.0 }
    }

    /// Drops columns without flow and adds the loads up anew, free of drift.
    pub(crate) fn tidy(&mut self) {
        for columns in self.columns.iter_mut().filter(|columns| columns.len() > 1) {
            columns.retain(|column| column.fraction > LEAST);
            let sum: f64 = columns.iter().map(|column| column.fraction).sum();
            columns.iter_mut().for_each(|column| column.fraction /= sum);
        }
        self.add_up_loads();
    }

    /// Moves flow of a demand from its dearest column in use to its cheapest.
    fn shift(&mut self, index: usize) -> Cost {
        let (mut dear, mut cheap) = ((0, -1.0), (0, f64::INFINITY));
        let mut used = 0.0;
        for (at, column) in self.columns[index].iter().enumerate() {
            let price = self.price(&column.path);
            used += column.fraction * price;
            if column.fraction > 0.0 && price > dear.1 {
                dear = (at, price);
            }
            if price < cheap.1 {
                cheap = (at, price);
            }
        }
        let volume = self.demands[index].volume.max(0.0);
        if dear.1 - cheap.1 > dear.1 * EQUAL {
            self.find_swap(index, dear.0, cheap.0);
            let fraction = self.line_search(volume, self.columns[index][dear.0].fraction);
            self.columns[index][dear.0].fraction -= fraction;
            self.columns[index][cheap.0].fraction += fraction;
            self.apply_swap(volume * fraction);
        }
        Cost { excess: volume * (used - cheap.1).max(0.0), least: volume * cheap.1 }
    }

    fn find_swap(&mut self, index: usize, dear: usize, cheap: usize) {
        let graph = self.network.graph;
        let (dear, cheap) = (&self.columns[index][dear].path, &self.columns[index][cheap].path);
        let on = |path: &[usize], pool: usize| graph.pools(path).any(|other| other == pool);
        self.swap.dear.clear();
        self.swap.dear.extend(graph.pools(dear).filter(|pool| !on(cheap, *pool)));
        self.swap.cheap.clear();
        self.swap.cheap.extend(graph.pools(cheap).filter(|pool| !on(dear, *pool)));
    }

    fn apply_swap(&mut self, volume: f64) {
        let swap = std::mem::take(&mut self.swap);
        for pool in &swap.dear {
            self.loads[*pool] -= volume;
            self.reprice(*pool);
        }
        for pool in &swap.cheap {
            self.loads[*pool] += volume;
            self.reprice(*pool);
        }
        self.swap = swap;
    }

    /// The fraction to shift: up to where the two columns cost the same, at most all of the dear one.
    ///
    /// Newton's method, kept in a bracket, on `ln(dear) - ln(cheap)`, which is nearly a line.
    fn line_search(&self, volume: f64, all: f64) -> f64 {
        let pace = self.sharpness * volume / self.top;
        let widths = self.swap.cheap.iter().map(|pool| self.network.capacity[*pool]);
        let narrowest = widths.fold(f64::INFINITY, f64::min);
        let (mut low, mut high) = (0.0, all.min(REACH * narrowest / pace));
        let mut at = high;
        for _ in 0..STEPS {
            let (dear, dear_slope) = self.along(&self.swap.dear, -at * pace, pace);
            let (cheap, cheap_slope) = self.along(&self.swap.cheap, at * pace, pace);
            let value = (dear / cheap).ln();
            if value >= 0.0 {
                low = at;
            } else {
                high = at;
            }
            if low >= high || value.abs() < CLOSE {
                return at;
            }
            let next = at + value / (dear_slope / dear + cheap_slope / cheap);
            at = if next > low && next < high { next } else { 0.5 * (low + high) };
        }
        low
    }

    /// The price of some pools after their exponents move by `by / capacity`, and its slope for a step of
    /// `pace`.
    fn along(&self, pools: &[usize], by: f64, pace: f64) -> (f64, f64) {
        pools.iter().fold((0.0, 0.0), |(price, slope), pool| {
            let capacity = self.network.capacity[*pool];
            let moved = self.prices[*pool] * (by / capacity).exp();
            (price + moved, slope + moved * pace / capacity)
        })
    }

    fn price(&self, path: &[usize]) -> f64 {
        self.network.graph.pools(path).map(|pool| self.prices[pool]).sum()
    }

    fn reprice(&mut self, pool: usize) {
        let capacity = self.network.capacity[pool];
        if capacity > 0.0 {
            let excess = self.loads[pool] / capacity / self.top - 1.0;
            self.prices[pool] = (self.sharpness * excess).min(REACH * 4.0).exp().max(IDLE) / capacity;
        }
    }

    fn add_up_loads(&mut self) {
        self.loads.fill(0.0);
        for (demand, columns) in self.demands.iter().zip(&self.columns) {
            for column in columns {
                let volume = demand.volume.max(0.0) * column.fraction;
                self.network.graph.pools(&column.path).for_each(|pool| self.loads[pool] += volume);
            }
        }
    }
}
