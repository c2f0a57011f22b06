//! Placement by search: the fastest placements from several starts, then the cheapest that are as fast.
//!
//! Throughputs within `EQUAL` of the best count as equal. Between those, fewer missing image bytes win, then
//! less traffic (bits an item times hops, over all flows), then the throughput, then the nodes' names. What
//! the search judges over fixed paths is routed in earnest before the last choice.

use super::allocation::allocate;
use super::baseline::{Ranking, whole_job};
use super::climb::{Climb, Score, Summit};
use super::fixed_paths::Tables;
use super::params::{EQUAL, SUMMED};
use super::paths::{paths, reached};
use super::predict::compute_limit;
use super::starts::{near, packed};
use super::{Case, Placed, Routed, Stuck};
use crate::images::PullCosts;

/// A placement with its paths; rates are still open.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) placed: Placed,
    pub(crate) flows: Vec<Routed>,
}

/// The best placement found, or Algorithm 1's reason why there is none.
pub(crate) fn candidates(
    case: &Case<'_>,
    capacity: &[f64],
    pulls: &PullCosts,
    tables: &mut Tables<'_>,
) -> Result<Vec<Found>, Stuck> {
    let first = allocate(case, SUMMED, pulls);
    let whole = whole_job(case, Ranking::LargestFreeShare).ok();
    let starts = first.as_ref().ok().cloned().into_iter().chain(whole).chain(packed(case));
    let mut climb = Climb::new(case, capacity, pulls, tables);
    let summits: Vec<Summit> = starts.filter_map(|start| climb.fastest(&start)).collect();
    let mut routed: Vec<(Score, Found)> = Vec::new();
    for summit in summits_of(case, &mut climb, summits, pulls) {
        let nodes = &summit.placed.nodes;
        let Some(flows) = paths(case, nodes, capacity) else { continue };
        let hops = |flow: &Routed| flow.path.iter().map(|_| case.wire_bits(&flow.edge)).sum::<f64>();
        let score = Score {
            items_per_s: pulls.over_horizon(reached(case, nodes, &flows, capacity), (case.world, nodes)),
            bit_hops: flows.iter().map(hops).sum(),
            ..summit.score
        };
        routed.push((score, Found { placed: summit.placed, flows }));
    }
    match (routed.is_empty(), first) {
        (false, _) => Ok(ranked(routed)),
        (true, Err(stuck)) => Err(stuck),
        (true, Ok(placed)) => Err(super::online::no_bandwidth(case, &placed.nodes)),
    }
}

/// The summits made cheaper, and the placement near the inputs made cheaper. A summit that the network
/// bounds stays a candidate itself: routed in earnest it may be faster than the fixed paths say.
fn summits_of(
    case: &Case<'_>,
    climb: &mut Climb<'_, '_, '_>,
    summits: Vec<Summit>,
    pulls: &PullCosts,
) -> Vec<Summit> {
    let top = summits.iter().map(|summit| summit.score.items_per_s).fold(0.0, f64::max);
    let floor = top * (1.0 - EQUAL);
    let start = near(case, floor, pulls);
    let near = start.and_then(|placed| {
        let score = climb.score(&placed.nodes, 0.0)?;
        Some(Summit { placed, score })
    });
    let mut all: Vec<Summit> = Vec::new();
    let mut seen: Vec<Vec<usize>> = Vec::new();
    for summit in summits.into_iter().chain(near) {
        if seen.contains(&summit.placed.nodes) {
            continue;
        }
        seen.push(summit.placed.nodes.clone());
        let nodes = &summit.placed.nodes;
        let limit = pulls.over_horizon(compute_limit(case, nodes).items_per_s, (case.world, nodes));
        if summit.score.items_per_s < limit {
            all.push(summit.clone());
        }
        let floor = summit.score.items_per_s.min(floor);
        all.push(climb.cheapest(summit, floor));
    }
    let mut routed: Vec<Vec<usize>> = Vec::new();
    all.retain(|summit| {
        let new = !routed.contains(&summit.placed.nodes);
        routed.push(summit.placed.nodes.clone());
        new
    });
    all
}

/// The cheapest of those that are as fast as the fastest come first, then the others.
fn ranked(mut routed: Vec<(Score, Found)>) -> Vec<Found> {
    let top = routed.iter().map(|(score, _)| score.items_per_s).fold(0.0, f64::max);
    let slower = |score: &Score| score.items_per_s < top * (1.0 - EQUAL);
    routed.sort_by(|x, y| {
        let cost = x.0.compare_cost(&y.0).then(x.0.compare(&y.0));
        slower(&x.0).cmp(&slower(&y.0)).then(cost).then_with(|| x.1.placed.nodes.cmp(&y.1.placed.nodes))
    });
    routed.into_iter().map(|(_, found)| found).collect()
}

/// From where a job is to where no single move raises its throughput; none if that is where it is.
pub(crate) fn onward(
    case: &Case<'_>,
    capacity: &[f64],
    (start, pulls): (Placed, &PullCosts),
    tables: &mut Tables<'_>,
) -> Option<Found> {
    let summit = Climb::new(case, capacity, pulls, tables).fastest(&start)?;
    let flows = paths(case, &summit.placed.nodes, capacity)?;
    Some(Found { placed: summit.placed, flows })
}
