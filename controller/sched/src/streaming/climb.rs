//! The local search over placements: move one task, or all of a node's, or swap two.
//!
//! First as long as the predicted throughput rises; then, from where it cannot, as long as image bytes or
//! traffic fall and the throughput stays above a floor. A placement is judged over two fixed paths between
//! each pair of nodes, which costs microseconds: the shortest, and the widest where the shortest do not
//! carry what the processors do.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::allocation::MissingBytes;
use super::moves::moves;
use super::params::{HEADROOM, LEAST_GAIN, ROUNDS};
use super::predict::compute_limit;
use super::{Case, Placed};
use crate::filter::{Amount, Fit, shortage};
use crate::route::tree;

/// How good a placement is.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    pub(crate) items_per_s: f64,
    /// Image bytes to fetch.
    pub(crate) missing: u64,
    /// Wire bits an item, each counted once a hop.
    pub(crate) bit_hops: f64,
}

impl Score {
    /// Less is better; the throughput counts from one part in a million.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let close = (self.items_per_s - other.items_per_s).abs() <= LEAST_GAIN * self.items_per_s;
        let faster = if close { Ordering::Equal } else { other.items_per_s.total_cmp(&self.items_per_s) };
        faster.then(self.compare_cost(other))
    }

    /// Less is better; the throughput is left out.
    pub(crate) fn compare_cost(&self, other: &Self) -> Ordering {
        let close = (self.bit_hops - other.bit_hops).abs() <= LEAST_GAIN * self.bit_hops;
        let traffic = if close { Ordering::Equal } else { self.bit_hops.total_cmp(&other.bit_hops) };
        self.missing.cmp(&other.missing).then(traffic)
    }
}

/// A placement that the search has come to.
#[derive(Debug, Clone)]
pub(crate) struct Summit {
    pub(crate) placed: Placed,
    pub(crate) score: Score,
}

/// Pools of the fixed path to each node; none where no path leads.
type Row = Vec<Option<Vec<usize>>>;

/// Fixed paths between all nodes, a row for each first node as it is asked for.
#[derive(Debug)]
struct Table {
    rows: Vec<Option<Row>>,
    /// Length of a hop; the inverse widths of all links add up to half of one.
    hop: f64,
}

/// The search and what it keeps between starts.
pub(crate) struct Climb<'a> {
    case: &'a Case<'a>,
    capacity: &'a [f64],
    missing: &'a MissingBytes,
    /// Per vertex and node: nothing but resources could speak against it.
    allowed: Vec<Vec<bool>>,
    shortest: Table,
    widest: Table,
}

impl<'a> Climb<'a> {
    pub(crate) fn new(case: &'a Case<'a>, capacity: &'a [f64], missing: &'a MissingBytes) -> Self {
        let mut empty = case.ledger.clone();
        let plenty = Amount { cpu: i64::MAX, memory: i64::MAX, storage: i64::MAX };
        empty.free.fill(plenty);
        let fits = |vertex| case.refusals(vertex, &empty, Fit::AtLeast).iter().map(Option::is_none).collect();
        let allowed = (0..case.graph.vertices.len()).map(fits).collect();
        let table = |hop| Table { rows: vec![None; case.world.nodes.len()], hop };
        let (shortest, widest) = (table(1.0), table(0.0));
        Self { case, capacity, missing, allowed, shortest, widest }
    }

    /// From a start to where no move raises the throughput; none if two nodes of a flow are not connected.
    pub(crate) fn fastest(&mut self, start: &Placed) -> Option<Summit> {
        let mut at = Summit { placed: start.clone(), score: self.score(&start.nodes)? };
        self.walk(&mut at, |new, old| new.compare(old) == Ordering::Less);
        Some(at)
    }

    /// From a placement to where no move makes it cheaper without passing the floor of items a second.
    pub(crate) fn cheapest(&mut self, mut at: Summit, floor: f64) -> Summit {
        self.walk(&mut at, |new, old| new.items_per_s >= floor && new.compare_cost(old) == Ordering::Less);
        at
    }

    fn walk(&mut self, at: &mut Summit, better: impl Fn(&Score, &Score) -> bool) {
        let first_free = usize::from(self.case.graph.job.source.is_some());
        for _ in 0..ROUNDS {
            let mut moved = false;
            for trial in moves(self.case, &at.placed.nodes) {
                let new = trial.applied(&at.placed.nodes, first_free).filter(|new| self.fits(new));
                let Some(new) = new else { continue };
                let Some(score) = self.score(&new).filter(|score| better(score, &at.score)) else {
                    continue;
                };
                at.placed.reasons.push(self.reason(at, &new, &score));
                (at.placed.nodes, at.score) = (new, score);
                moved = true;
            }
            if !moved {
                break;
            }
        }
    }

    fn fits(&self, nodes: &[usize]) -> bool {
        let mut free: BTreeMap<usize, Amount> = BTreeMap::new();
        self.case.graph.vertices.iter().zip(nodes).enumerate().all(|(index, (vertex, node))| {
            let left = free.entry(*node).or_insert(self.case.ledger.free[*node]);
            let fits = self.allowed[index][*node] && shortage(left, &vertex.need, Fit::AtLeast).is_none();
            *left -= vertex.need;
            fits
        })
    }

    /// The quick judgement over fixed paths.
    pub(crate) fn score(&mut self, nodes: &[usize]) -> Option<Score> {
        let limit = compute_limit(self.case, nodes).items_per_s;
        let (mut network, mut bit_hops) = carried(self.case, self.capacity, (&mut self.shortest, nodes))?;
        if network * HEADROOM < limit {
            let wide = carried(self.case, self.capacity, (&mut self.widest, nodes))?;
            if wide.0 > network {
                (network, bit_hops) = wide;
            }
        }
        Some(Score { items_per_s: network.min(limit), missing: self.missing_bytes(nodes), bit_hops })
    }

    fn missing_bytes(&self, nodes: &[usize]) -> u64 {
        let each = nodes.iter().enumerate().map(|(vertex, node)| (self.missing)(vertex, *node));
        each.fold(0, u64::saturating_add)
    }

    fn reason(&self, at: &Summit, new: &[usize], score: &Score) -> String {
        let (world, vertices, old) = (self.case.world, &self.case.graph.vertices, &at.placed.nodes);
        let moved = (0..old.len()).filter(|v| old[*v] != new[*v]);
        let moved: Vec<String> = moved
            .map(|v| format!("{} {} to {}", vertices[v].name, world.name(old[v]), world.name(new[v])))
            .collect();
        let moved = moved.join(", ");
        let (before, after) = (at.score.items_per_s, score.items_per_s);
        let kilobits = |score: &Score| score.bit_hops / 1000.0;
        format!(
            "moved {moved}: {before:.3} -> {after:.3} items/s, {:.1} -> {:.1} kbit an item over all hops",
            kilobits(&at.score),
            kilobits(score)
        )
    }
}

/// Items a second that the fixed paths carry, and the bits an item summed over hops.
fn carried(case: &Case<'_>, capacity: &[f64], (table, nodes): (&mut Table, &[usize])) -> Option<(f64, f64)> {
    let mut loads = vec![0.0; capacity.len()];
    let mut bit_hops = 0.0;
    for edge in &case.graph.edges {
        let (from, to) = (nodes[edge.from], nodes[edge.to]);
        if from != to {
            let bits = case.wire_bits(edge);
            for pool in table.path(case, capacity, (from, to))? {
                loads[*pool] += bits;
                bit_hops += bits;
            }
        }
    }
    let used = loads.iter().zip(capacity).filter(|(load, _)| **load > 0.0);
    Some((used.map(|(load, capacity)| capacity / load).fold(f64::INFINITY, f64::min), bit_hops))
}

impl Table {
    fn path(&mut self, case: &Case<'_>, capacity: &[f64], (from, to): (usize, usize)) -> Option<&Vec<usize>> {
        let hop = self.hop;
        let row = self.rows[from].get_or_insert_with(|| {
            let graph = &case.world.graph;
            let open = capacity.iter().filter(|capacity| **capacity > 0.0);
            let all = open.map(|capacity| 1.0 / capacity).sum::<f64>() * 2.0;
            let tree = tree(graph, from, |arc| hop + 1.0 / capacity[arc.pool] / all);
            let pools = |node| Some(graph.pools(&tree.path(graph, node)?).collect());
            (0..graph.out.len()).map(pools).collect()
        });
        row[to].as_ref()
    }
}
