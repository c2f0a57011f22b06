//! Placement by search: from several starts, move one task, or all of a node's, or swap two, as long as
//! the predicted throughput rises.
//!
//! A move is judged by compute limit (CPU limits included) and by the congestion of fixed widest-and-short
//! paths, which costs microseconds; the best placement of each start is then routed in earnest. Ties go to
//! fewer missing image bytes, then to fewer bits on links, then to the nodes' names.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::allocation::{MissingBytes, allocate};
use super::baseline::{Ranking, whole_job};
use super::jrba::{network_limit, paths_by_search};
use super::moves::moves;
use super::params::{LEAST_GAIN, ROUNDS, SUMMED};
use super::predict::compute_limit;
use super::{Case, Placed, Routed, Stuck};
use crate::filter::{Amount, Fit, shortage};
use crate::route::tree;

/// A placement with its paths; rates are still open.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) placed: Placed,
    pub(crate) flows: Vec<Routed>,
}

/// How good a placement is.
#[derive(Debug, Clone)]
struct Score {
    items_per_s: f64,
    missing: u64,
    bit_hops: f64,
}

impl Score {
    /// Less is better; the throughput counts from one part in a million.
    fn compare(&self, other: &Self) -> Ordering {
        let close = (self.items_per_s - other.items_per_s).abs() <= LEAST_GAIN * self.items_per_s;
        let faster = if close { Ordering::Equal } else { other.items_per_s.total_cmp(&self.items_per_s) };
        faster.then(self.missing.cmp(&other.missing)).then(self.bit_hops.total_cmp(&other.bit_hops))
    }
}

/// The best placement found, or Algorithm 1's reason why there is none.
pub(crate) fn search(case: &Case<'_>, capacity: &[f64], missing: &MissingBytes) -> Result<Found, Stuck> {
    let first = allocate(case, SUMMED, missing);
    let whole = whole_job(case, Ranking::LargestFreeShare).ok();
    let packed = packed(case);
    let mut climb = Climb::new(case, capacity, missing);
    let mut best: Option<(Score, Found)> = None;
    for start in first.as_ref().ok().into_iter().chain(whole.as_ref()).chain(packed.as_ref()) {
        let Some(found) = climb.from(start) else { continue };
        let score = climb.routed_score(&found);
        let better = match &best {
            None => true,
            Some((held, old)) => {
                let names = found.placed.nodes.cmp(&old.placed.nodes);
                score.compare(held).then(names) == Ordering::Less
            }
        };
        if better {
            best = Some((score, found));
        }
    }
    match (best, first) {
        (Some((_, found)), _) => Ok(found),
        (None, Err(stuck)) => Err(stuck),
        (None, Ok(placed)) => Err(super::online::no_bandwidth(case, &placed.nodes)),
    }
}

/// First fit, the tasks that ask for most memory first: finds room where the topological order does not.
fn packed(case: &Case<'_>) -> Option<Placed> {
    let vertices = &case.graph.vertices;
    let mut order: Vec<usize> = (0..vertices.len()).collect();
    let key = |v: usize| (case.graph.fixed(v).is_none(), -vertices[v].need.memory, -vertices[v].need.cpu, v);
    order.sort_by_key(|vertex| key(*vertex));
    let mut ledger = case.ledger.clone();
    let mut nodes = vec![0; vertices.len()];
    for vertex in order {
        let node = case.refusals(vertex, &ledger, Fit::AtLeast).iter().position(Option::is_none)?;
        ledger.free[node] -= vertices[vertex].need;
        nodes[vertex] = node;
    }
    let reasons = vec!["start: tasks packed by memory request, largest first".to_owned()];
    Some(Placed { nodes, reasons })
}

/// The climb and what it keeps between starts.
struct Climb<'a> {
    case: &'a Case<'a>,
    capacity: &'a [f64],
    missing: &'a MissingBytes,
    /// Per vertex and node: nothing but resources could speak against it.
    allowed: Vec<Vec<bool>>,
    /// Pools of the fixed path between two nodes.
    paths: BTreeMap<(usize, usize), Option<Vec<usize>>>,
}

impl<'a> Climb<'a> {
    fn new(case: &'a Case<'a>, capacity: &'a [f64], missing: &'a MissingBytes) -> Self {
        let mut empty = case.ledger.clone();
        let plenty = Amount { cpu: i64::MAX, memory: i64::MAX, storage: i64::MAX };
        empty.free.fill(plenty);
        let fits = |vertex| case.refusals(vertex, &empty, Fit::AtLeast).iter().map(Option::is_none).collect();
        let allowed = (0..case.graph.vertices.len()).map(fits).collect();
        Self { case, capacity, missing, allowed, paths: BTreeMap::new() }
    }

    /// Climbs from a start and routes the summit; none if no flow could be routed at all.
    fn from(&mut self, start: &Placed) -> Option<Found> {
        let mut nodes = start.nodes.clone();
        let mut score = self.score(&nodes)?;
        let mut reasons = start.reasons.clone();
        let first_free = usize::from(self.case.graph.job.source.is_some());
        for _ in 0..ROUNDS {
            let before = score.clone();
            for trial in moves(self.case, &nodes) {
                let Some(new) = trial.applied(&nodes, first_free).filter(|new| self.fits(new)) else {
                    continue;
                };
                let Some(found) = self.score(&new) else { continue };
                if found.compare(&score) == Ordering::Less {
                    reasons.push(self.reason(&nodes, &new, (&score, &found)));
                    (nodes, score) = (new, found);
                }
            }
            if score.compare(&before) != Ordering::Less {
                break;
            }
        }
        let flows = paths_by_search(self.case, &nodes, self.capacity)?;
        Some(Found { placed: Placed { nodes, reasons }, flows })
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
    fn score(&mut self, nodes: &[usize]) -> Option<Score> {
        let mut loads = vec![0.0; self.capacity.len()];
        let mut bit_hops = 0.0;
        for index in 0..self.case.graph.edges.len() {
            let edge = self.case.graph.edges[index];
            let (from, to) = (nodes[edge.from], nodes[edge.to]);
            if from != to {
                let bits = self.case.wire_bits(&edge);
                for pool in self.path(from, to)? {
                    loads[*pool] += bits;
                    bit_hops += bits;
                }
            }
        }
        let used = loads.iter().zip(self.capacity).filter(|(load, _)| **load > 0.0);
        let network = used.map(|(load, capacity)| capacity / load).fold(f64::INFINITY, f64::min);
        let items_per_s = network.min(compute_limit(self.case, nodes).items_per_s);
        Some(Score { items_per_s, missing: self.missing_bytes(nodes), bit_hops })
    }

    fn routed_score(&self, found: &Found) -> Score {
        let network = network_limit(self.case, &found.flows, self.capacity);
        let hops = |flow: &Routed| flow.path.iter().map(|_| self.case.wire_bits(&flow.edge)).sum::<f64>();
        Score {
            items_per_s: network.min(compute_limit(self.case, &found.placed.nodes).items_per_s),
            missing: self.missing_bytes(&found.placed.nodes),
            bit_hops: found.flows.iter().map(hops).sum(),
        }
    }

    fn missing_bytes(&self, nodes: &[usize]) -> u64 {
        let each = nodes.iter().enumerate().map(|(vertex, node)| (self.missing)(vertex, *node));
        each.fold(0, u64::saturating_add)
    }

    fn path(&mut self, from: usize, to: usize) -> Option<&Vec<usize>> {
        if !self.paths.contains_key(&(from, to)) {
            let graph = &self.case.world.graph;
            let tree = tree(graph, from, |arc| 1.0 / self.capacity[arc.pool]);
            for node in 0..self.case.world.nodes.len() {
                let pools = tree.path(graph, node).map(|path| graph.pools(&path).collect());
                self.paths.insert((from, node), pools);
            }
        }
        self.paths[&(from, to)].as_ref()
    }

    fn reason(&self, old: &[usize], new: &[usize], scores: (&Score, &Score)) -> String {
        let world = self.case.world;
        let vertices = &self.case.graph.vertices;
        let moved = (0..old.len()).filter(|v| old[*v] != new[*v]);
        let moved: Vec<String> = moved
            .map(|v| format!("{} {} to {}", vertices[v].name, world.name(old[v]), world.name(new[v])))
            .collect();
        let (before, after) = (scores.0.items_per_s, scores.1.items_per_s);
        format!("moved {}: {before:.3} -> {after:.3} items/s", moved.join(", "))
    }
}
