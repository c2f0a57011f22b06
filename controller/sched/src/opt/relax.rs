//! JRBA's relaxation, Eq. 7 to 12: the least congestion when each demand may split over paths.
//!
//! In: a network and demands. Out: for each demand a few paths with the fraction `m_ik` that takes each,
//! their congestion, and a lower bound that no routing, split or not, comes under; the two are within
//! [`GAP`] of each other unless the rounds run out. This is maximum concurrent flow. It is solved by
//! generating columns (paths), never by listing them all: shortest paths under the prices of the pools give
//! new columns and, by weak duality, the bound; then demand after demand shifts flow to its cheaper columns
//! (`master`). Prices are the slope of a soft maximum that grows sharper as the gap closes.

use std::collections::BTreeMap;

use super::congestion::{Demand, Network};
use super::master::{Column, Master};
use super::shortest::ShortestPaths;

/// The part of the lower bound by which the congestion may exceed it.
pub(crate) const GAP: f64 = 0.01;
/// Rounds of column generation at most.
const ROUNDS: u32 = 300;
/// Passes over the columns a round at most; new columns are worth more than an exact optimum over old ones.
const PASSES: u32 = 10;
/// Passes end when flow is dearer than it could be by less than this part of the gap.
const SETTLED: f64 = 0.1;
/// The soft maximum grows sharper only once flow is dearer by less than this part of the gap: shifts over
/// sharp prices are small.
const READY: f64 = 0.3;
/// The sharpness of the first rounds.
const SHARPNESS: f64 = 20.0;
/// Sharpness times gap: a soft maximum over `n` pools that count is `ln n / sharpness` above the maximum.
const SHARP_ENOUGH: f64 = 6.0;
/// The start's length of an idle pool beside that of the fullest.
const IDLE: f64 = 0.01;

/// A solution of the relaxation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Relaxed {
    /// For each demand its paths; fractions sum to 1.
    pub(crate) columns: Vec<Vec<Column>>,
    /// The largest load over capacity under `columns`.
    pub(crate) congestion: f64,
    /// No routing has a smaller congestion.
    pub(crate) lower_bound: f64,
}

impl Relaxed {
    /// The paper's rounding: each demand's path with the largest `m_ik`; the shorter, then the lower one of
    /// equals.
    pub(crate) fn rounded(&self) -> Vec<Vec<usize>> {
        let largest = |columns: &Vec<Column>| {
            let most = columns.iter().max_by(|x, y| {
                let shorter = y.path.len().cmp(&x.path.len());
                x.fraction.total_cmp(&y.fraction).then(shorter).then_with(|| y.path.cmp(&x.path))
            });
            most.map(|column| column.path.clone()).unwrap_or_default()
        };
        self.columns.iter().map(largest).collect()
    }
}

/// The relaxation, then the paper's rounding; none if a demand has no path.
pub(crate) fn relax_and_round(network: Network<'_>, demands: &[Demand]) -> Option<Vec<Vec<usize>>> {
    relax(network, demands).map(|relaxed| relaxed.rounded())
}

/// Solves the relaxation; none if a demand has no path over pools with capacity.
pub(crate) fn relax(network: Network<'_>, demands: &[Demand]) -> Option<Relaxed> {
    let groups = by_source(demands);
    let mut shortest = ShortestPaths::new(network);
    let start = start(network, demands, &groups, &mut shortest)?;
    let mut master = Master::new(network, demands, start);
    let (mut lower_bound, mut sharpness, mut spread): (f64, f64, f64) = (0.0, SHARPNESS, 0.0);
    for _ in 0..ROUNDS {
        let congestion = master.congestion();
        if congestion <= lower_bound * (1.0 + GAP) || congestion <= 0.0 {
            break;
        }
        master.reprice_all(sharpness);
        lower_bound = lower_bound.max(generate(&mut master, &groups, &mut shortest));
        let gap = congestion / lower_bound - 1.0;
        if spread < gap * READY {
            sharpness = (SHARP_ENOUGH / gap).clamp(sharpness, sharpness * 2.0);
            master.reprice_all(sharpness);
        }
        for _ in 0..PASSES {
            spread = master.pass();
            if spread < gap * SETTLED {
                break;
            }
        }
        master.tidy();
    }
    let congestion = master.congestion();
    // At the optimum the two differ by rounding alone, either way.
    Some(Relaxed { columns: master.into_columns(), congestion, lower_bound: lower_bound.min(congestion) })
}

/// Demands by the node they leave: one tree serves a group.
fn by_source(demands: &[Demand]) -> BTreeMap<usize, Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, demand) in demands.iter().enumerate() {
        groups.entry(demand.from).or_default().push(index);
    }
    groups
}

/// A path for each demand: group after group around what is loaded already.
fn start(
    network: Network<'_>,
    demands: &[Demand],
    groups: &BTreeMap<usize, Vec<usize>>,
    shortest: &mut ShortestPaths<'_>,
) -> Option<Vec<Vec<usize>>> {
    let mut found = vec![Vec::new(); demands.len()];
    let mut used = vec![0.0; network.capacity.len()];
    let mut top = f64::MIN_POSITIVE;
    for (root, group) in groups {
        let length = |pool: usize| {
            let relative: f64 = used[pool] / top;
            (IDLE + relative.powi(4)) / network.capacity[pool]
        };
        shortest.run(*root, group.iter().map(|index| demands[*index].to), length);
        for index in group {
            let path = shortest.path(demands[*index].to)?;
            for pool in network.graph.pools(&path) {
                used[pool] += demands[*index].volume.max(0.0) / network.capacity[pool];
                top = top.max(used[pool]);
            }
            found[*index] = path;
        }
    }
    Some(found)
}

/// Adds each demand's shortest path under the prices where it is cheaper than all it has; the answer is the
/// lower bound `sum V_i * dist_l(i) / sum B_e * l_e` of these prices.
fn generate(
    master: &mut Master<'_>,
    groups: &BTreeMap<usize, Vec<usize>>,
    shortest: &mut ShortestPaths<'_>,
) -> f64 {
    let mut distance = 0.0;
    for (root, group) in groups {
        let prices = master.prices();
        let wanted = group.iter().map(|index| master.demand(*index).to);
        shortest.run(*root, wanted, |pool| prices[pool]);
        for index in group {
            let Demand { to, volume, .. } = master.demand(*index);
            if volume > 0.0 {
                distance += volume * shortest.distance(to);
                master.offer(*index, shortest);
            }
        }
    }
    distance / master.worth()
}
