//! Least congestion both ways: split flows with their certificate, and the best single paths found.
//!
//! The single paths start from the paper's rounding, so they are never worse. Where that leaves them well above
//! the split flows, a search from a start of its own is tried too.

use super::congestion::{Demand, Network, greedy, improve, sharpen};
use super::master::Column;
use super::relax::{GAP, Relaxed, relax};

/// Split flows and single paths for the same demands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Least {
    /// Its congestion is at most that of `paths`.
    pub(crate) relaxed: Relaxed,
    /// The relaxation, rounded as in the paper.
    pub(crate) rounded: Vec<Vec<usize>>,
    pub(crate) paths: Vec<Vec<usize>>,
}

/// Solves both; none if a demand has no path.
pub(crate) fn least_congestion(network: Network<'_>, demands: &[Demand]) -> Option<Least> {
    let mut relaxed = relax(network, demands)?;
    let rounded = relaxed.rounded();
    let paths = single_paths(network, demands, &relaxed, rounded.clone())?;
    let congestion = network.congestion(&network.loads(demands, &paths));
    // Single paths are a solution of the relaxation as well.
    if congestion < relaxed.congestion {
        let whole = |path: &Vec<usize>| vec![Column { path: path.clone(), fraction: 1.0 }];
        relaxed.columns = paths.iter().map(whole).collect();
        relaxed.congestion = congestion;
        relaxed.lower_bound = relaxed.lower_bound.min(congestion);
    }
    Some(Least { relaxed, rounded, paths })
}

fn single_paths(
    network: Network<'_>,
    demands: &[Demand],
    relaxed: &Relaxed,
    rounded: Vec<Vec<usize>>,
) -> Option<Vec<Vec<usize>>> {
    let congestion = |paths: &[Vec<usize>]| network.congestion(&network.loads(demands, paths));
    let first = sharpen(network, demands, rounded);
    if congestion(&first) <= relaxed.congestion * (1.0 + GAP) {
        return Some(first);
    }
    let second = improve(network, demands, greedy(network, demands)?);
    Some(if congestion(&second) < congestion(&first) { second } else { first })
}
