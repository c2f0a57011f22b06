//! Baselines of the paper: LR and BR put the whole job on one node, TP shares links equally.
//!
//! LR takes the node with the largest free share; BR the node after whose choice the used shares of all
//! nodes have the least standard deviation. A node's share is that of its scarcer resource, CPU or memory;
//! CPU counts only if the job requests any. The source stays where it is.

use super::params::LEAST_RATE_BPS;
use super::{Case, Placed, Stuck};
use crate::filter::{Amount, Fit, refusal};
use crate::ledger::Ledger;
use crate::opt::congestion::{Demand, Network};
use crate::route::hop_tree;

/// How a whole-job baseline ranks nodes: the least is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranking {
    /// LR.
    LargestFreeShare,
    /// BR.
    LeastDeviation,
}

/// The whole job on one node.
pub(crate) fn whole_job(case: &Case<'_>, ranking: Ranking) -> Result<Placed, Stuck> {
    let mut ledger = case.ledger.clone();
    let mut nodes = Vec::new();
    let mut reasons = Vec::new();
    let has_source = case.graph.job.source.is_some();
    if has_source {
        let refusals = case.refusals(0, &ledger, Fit::AtLeast);
        let Some(node) = refusals.iter().position(Option::is_none) else {
            return Err(stuck(0, refusals));
        };
        ledger.hold(case.graph, 0, node);
        nodes.push(node);
        reasons.push(format!("source -> {}: the source's own node", case.world.name(node)));
    }
    let first = usize::from(has_source);
    let all = 0..case.world.nodes.len();
    let refusals: Vec<Option<String>> = all.map(|node| refuse_whole(case, &ledger, first, node)).collect();
    let need = total(case, first);
    let fitting = (0..refusals.len()).filter(|node| refusals[*node].is_none());
    let ranked = fitting.map(|node| (rank(case, &ledger, (node, need), ranking), node));
    let Some((_, node)) = ranked.min_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1))) else {
        return Err(stuck(first.min(case.graph.vertices.len() - 1), refusals));
    };
    let mut line = format!("all tasks -> {}: {}", case.world.name(node), words(ranking));
    for (other, refusal) in refusals.iter().enumerate() {
        if let Some(text) = refusal {
            line.push_str(&format!("; {} refused: {text}", case.world.name(other)));
        }
    }
    reasons.push(line);
    nodes.resize(case.graph.vertices.len(), node);
    Ok(Placed { nodes, reasons })
}

fn words(ranking: Ranking) -> &'static str {
    match ranking {
        Ranking::LargestFreeShare => "the largest free share",
        Ranking::LeastDeviation => "used shares deviate least",
    }
}

fn stuck(vertex: usize, refusals: Vec<Option<String>>) -> Stuck {
    Stuck { vertex, refusals: refusals.into_iter().map(Option::unwrap_or_default).collect() }
}

/// Why a node cannot take all tasks: the first that does not fit after those before it.
fn refuse_whole(case: &Case<'_>, ledger: &Ledger, first: usize, node: usize) -> Option<String> {
    let mut free = ledger.free[node];
    for vertex in &case.graph.vertices[first..] {
        if let Some(text) = refusal((node, case.world.nodes[node]), &free, vertex, Fit::AtLeast) {
            return Some(format!("{}: {text}", vertex.name));
        }
        free -= vertex.need;
    }
    let source = case.graph.fixed(0).and_then(|source| case.world.index(source));
    let mut nodes = vec![node; case.graph.vertices.len()];
    nodes[..first].fill(source.unwrap_or(node));
    if let Some((vertex, text)) = case.broken_rule(&nodes) {
        return Some(format!("{}: {text}", case.graph.vertices[vertex].name));
    }
    match source {
        Some(from) if from != node && !hop_tree(&case.world.graph, from).distance(node).is_finite() => {
            Some(format!("no path from {}", case.world.name(from)))
        }
        _ => None,
    }
}

fn total(case: &Case<'_>, first: usize) -> Amount {
    let mut sum = Amount::default();
    case.graph.vertices[first..].iter().for_each(|vertex| sum += vertex.need);
    sum
}

fn rank(case: &Case<'_>, ledger: &Ledger, (chosen, need): (usize, Amount), ranking: Ranking) -> f64 {
    let used = |node: usize| {
        let mut free = ledger.free[node];
        if node == chosen && ranking == Ranking::LeastDeviation {
            free -= need;
        }
        used_share(&Amount::from(case.world.nodes[node]), &free, &need)
    };
    match ranking {
        Ranking::LargestFreeShare => used(chosen),
        Ranking::LeastDeviation => {
            let shares: Vec<f64> = (0..case.world.nodes.len()).map(used).collect();
            deviation(&shares)
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
fn used_share(capacity: &Amount, free: &Amount, need: &Amount) -> f64 {
    let share = |capacity: i64, free: i64| 1.0 - free as f64 / (capacity.max(1)) as f64;
    let memory = share(capacity.memory, free.memory);
    if need.cpu > 0 { memory.max(share(capacity.cpu, free.cpu)) } else { memory }
}

#[expect(clippy::cast_precision_loss, reason = "few nodes")]
fn deviation(shares: &[f64]) -> f64 {
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    (shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len() as f64).sqrt()
}

/// TP: paths with the fewest hops, each link shared equally by the flows on it. None if one has no path or
/// too little.
pub(crate) fn equal_shares(network: Network<'_>, demands: &[Demand]) -> Option<(Vec<Vec<usize>>, Vec<f64>)> {
    let graph = network.graph;
    let mut count = vec![0.0; network.capacity.len()];
    let mut paths = Vec::new();
    for demand in demands {
        let path = hop_tree(graph, demand.from).path(graph, demand.to)?;
        graph.pools(&path).for_each(|pool| count[pool] += 1.0);
        paths.push(path);
    }
    let rate = |path: &Vec<usize>| {
        graph.pools(path).map(|pool| network.capacity[pool] / count[pool]).fold(f64::INFINITY, f64::min)
    };
    let rates: Vec<f64> = paths.iter().map(rate).collect();
    rates.iter().all(|rate| *rate >= LEAST_RATE_BPS).then_some((paths, rates))
}
