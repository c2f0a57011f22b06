//! The local search over placements: move one task, or all of a node's, or swap two.
//!
//! First as long as the predicted throughput rises; then, from where it cannot, as long as image bytes or
//! traffic fall and the throughput stays above a floor. A placement is judged over two fixed paths between
//! each pair of nodes, which costs microseconds: the shortest, and the widest where the shortest do not
//! carry what the processors do.

use std::cmp::Ordering;

use super::fixed_paths::{Kind, Sent, Tables};
use super::fullness::fullness;
use super::moves::moves;
use super::params::{HEADROOM, LEAST_GAIN, ROUNDS};
use super::predict::compute_limit;
use super::{Case, Placed};
use crate::filter::{Amount, Fit, holds};
use crate::images::PullCosts;

/// How good a placement is.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    /// Over the horizon, in which the job waits for its pulls first.
    pub(crate) items_per_s: f64,
    /// Image bytes to fetch; of a job without flows with what the room that it takes is worth.
    pub(crate) bytes: f64,
    /// Wire bits an item, each counted once a hop.
    pub(crate) bit_hops: f64,
    /// What the room that it takes is worth.
    pub(crate) fullness: f64,
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
        let compare = |own: f64, other: f64| match (own - other).abs() <= LEAST_GAIN * own {
            true => Ordering::Equal,
            false => own.total_cmp(&other),
        };
        let traffic = compare(self.bit_hops, other.bit_hops);
        compare(self.bytes, other.bytes).then(traffic).then(compare(self.fullness, other.fullness))
    }
}

/// What a walk is after.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Fastest,
    /// Least cost at no less than so many items a second.
    Cheapest {
        floor: f64,
    },
}

impl Goal {
    fn better(self, new: &Score, old: &Score) -> bool {
        match self {
            Self::Fastest => new.compare(old) == Ordering::Less,
            Self::Cheapest { floor } => new.items_per_s >= floor && new.compare_cost(old) == Ordering::Less,
        }
    }

    /// Placements that do fewer items a second are no better.
    fn least(self, old: &Score) -> f64 {
        match self {
            Self::Fastest => old.items_per_s * (1.0 - 2.0 * LEAST_GAIN),
            Self::Cheapest { floor } => floor,
        }
    }
}

/// A placement that the search has come to.
#[derive(Debug, Clone)]
pub(crate) struct Summit {
    pub(crate) placed: Placed,
    pub(crate) score: Score,
}

/// The search and what it keeps between starts.
pub(crate) struct Climb<'c, 't, 'g> {
    case: &'c Case<'c>,
    capacity: &'c [f64],
    pulls: &'c PullCosts,
    /// Per vertex and node: nothing but resources could speak against it.
    allowed: Vec<Vec<bool>>,
    tables: &'t mut Tables<'g>,
    sent: Vec<Sent>,
}

impl<'c, 't, 'g> Climb<'c, 't, 'g> {
    pub(crate) fn new(
        case: &'c Case<'c>,
        capacity: &'c [f64],
        pulls: &'c PullCosts,
        tables: &'t mut Tables<'g>,
    ) -> Self {
        let mut empty = case.ledger.clone();
        let plenty = Amount { cpu: i64::MAX, memory: i64::MAX, storage: i64::MAX };
        empty.free.fill(plenty);
        let fits =
            |vertex| case.refusals_apart(vertex, &empty, Fit::AtLeast).iter().map(Option::is_none).collect();
        let allowed = (0..case.graph.vertices.len()).map(fits).collect();
        Self { case, capacity, pulls, allowed, tables, sent: Vec::new() }
    }

    /// From a start to where no move raises the throughput; none if two nodes of a flow are not connected.
    pub(crate) fn fastest(&mut self, start: &Placed) -> Option<Summit> {
        let mut at = Summit { placed: start.clone(), score: self.score(&start.nodes, 0.0)? };
        self.walk(&mut at, Goal::Fastest);
        Some(at)
    }

    /// From a placement to where no move makes it cheaper without passing the floor of items a second.
    pub(crate) fn cheapest(&mut self, mut at: Summit, floor: f64) -> Summit {
        self.walk(&mut at, Goal::Cheapest { floor });
        at
    }

    fn walk(&mut self, at: &mut Summit, goal: Goal) {
        let first_free = usize::from(self.case.graph.job.source.is_some());
        let mut new = at.placed.nodes.clone();
        for _ in 0..ROUNDS {
            let mut moved = false;
            for trial in moves(self.case, &at.placed.nodes) {
                if !trial.apply(&at.placed.nodes, first_free, &mut new) || !self.fits(&new) {
                    continue;
                }
                if self.hopeless(&new, &at.score, goal) {
                    continue;
                }
                let better = |score: &Score| goal.better(score, &at.score);
                let Some(score) = self.score(&new, goal.least(&at.score)).filter(better) else { continue };
                at.placed.reasons.push(self.reason(at, &new, &score));
                at.placed.nodes.clone_from(&new);
                at.score = score;
                moved = true;
            }
            if !moved {
                break;
            }
        }
    }

    /// Whether even the shortest paths leave a placement too dear: known without judging the throughput.
    fn hopeless(&mut self, nodes: &[usize], old: &Score, goal: Goal) -> bool {
        if goal == Goal::Fastest {
            return false;
        }
        self.send(nodes);
        let Some(bit_hops) = self.tables.least_bit_hops(&self.sent) else { return true };
        let least = self.cost(nodes, (0.0, bit_hops));
        least.compare_cost(old) != Ordering::Less
    }

    /// Notes what a placement sends between nodes.
    fn send(&mut self, nodes: &[usize]) {
        self.sent.clear();
        for edge in &self.case.graph.edges {
            let (from, to) = (nodes[edge.from], nodes[edge.to]);
            if from != to {
                self.sent.push(Sent { from, to, bits: self.case.wire_bits(edge) });
            }
        }
    }

    fn fits(&self, nodes: &[usize]) -> bool {
        let vertices = &self.case.graph.vertices;
        let room = nodes.iter().enumerate().all(|(index, node)| {
            if !self.allowed[index][*node] {
                return false;
            }
            // Each node is added up once, at the first of its tasks.
            if nodes[..index].contains(node) {
                return true;
            }
            let mut need = Amount::default();
            let here = vertices.iter().zip(nodes).filter(|(_, at)| *at == node);
            here.for_each(|(vertex, _)| need += vertex.need);
            holds(&self.case.ledger.free[*node], &need)
        });
        room && self.case.broken_rule(nodes).is_none()
    }

    /// The quick judgement over fixed paths; none too where the placement does fewer items a second than the
    /// least that matters.
    pub(crate) fn score(&mut self, nodes: &[usize], least: f64) -> Option<Score> {
        let limit = compute_limit(self.case, nodes).items_per_s;
        if limit < least {
            return None;
        }
        self.send(nodes);
        let sent = &self.sent;
        let (mut network, mut bit_hops) =
            self.tables.carried(Kind::Shortest, self.capacity, (sent, least))?;
        if network * HEADROOM < limit {
            let wide = self.tables.carried(Kind::Widest, self.capacity, (sent, least))?;
            if wide.0 > network {
                (network, bit_hops) = wide;
            }
        }
        let items_per_s = self.pulls.over_horizon(network.min(limit), (self.case.world, nodes));
        Some(self.cost(nodes, (items_per_s, bit_hops)))
    }

    fn cost(&self, nodes: &[usize], (items_per_s, bit_hops): (f64, f64)) -> Score {
        let (fetched, fullness) = (self.pulls.total(nodes), fullness(self.case, nodes));
        let bytes = if self.case.graph.edges.is_empty() { fetched + fullness } else { fetched };
        Score { items_per_s, bytes, bit_hops, fullness }
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
