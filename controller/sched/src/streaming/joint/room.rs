//! What the members share, and how much each gets of it.

use super::super::Case;
use super::super::fixed_paths::Tables;
use super::super::jrba::open;
use super::super::params::{FAIR_PREFERENCE, LEAST_FLOOR, LEAST_RATE_BPS, NEWCOMER_PART, WORTH_EXPONENT};
use super::member::{Member, Seat};
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::opt::max_min::{Consumer, fill};
use crate::opt::packing::{Column, pack};
use crate::world::World;

/// Pools and the members that draw on them.
#[derive(Debug)]
pub(super) struct Room<'a> {
    pub(super) world: &'a World<'a>,
    pub(super) members: Vec<Member<'a>>,
    /// Nodes and links as jobs that are no members leave them.
    pub(super) fixed: Ledger,
    /// Of links: what flows of members may reserve.
    pub(super) links: Vec<f64>,
    pub(super) tables: Tables<'a>,
}

impl<'a> Room<'a> {
    /// Sorts the held jobs into those that share and those that keep what they have.
    pub(super) fn of(world: &'a World<'a>, held: &'a HeldJobs<'a>) -> Self {
        let mut members = Vec::new();
        let mut others: Vec<&Held<'a>> = Vec::new();
        for job in held.values() {
            match Member::of(world, job) {
                Some(member) => members.push(member),
                None => others.push(job),
            }
        }
        let fixed = Ledger::of(world, others.into_iter());
        let links = open(fixed.residual(world));
        let tables = Tables::new(&world.graph, links.clone());
        Self { world, members, fixed, links, tables }
    }

    /// What is left of nodes when all members but one hold what they need.
    pub(super) fn ledger(&self, without: Option<usize>, items: &[f64]) -> Ledger {
        self.ledger_of(|index, _| Some(index) != without, items)
    }

    /// What is left of nodes when some members hold what they need.
    pub(super) fn ledger_of(&self, holds: impl Fn(usize, &Member<'_>) -> bool, items: &[f64]) -> Ledger {
        let mut ledger = self.fixed.clone();
        for (index, member) in self.members.iter().enumerate().filter(|(index, member)| holds(*index, member))
        {
            for (at, (vertex, node)) in member.graph.vertices.iter().zip(&member.seat.nodes).enumerate() {
                ledger.hold(&member.graph, at, *node);
                ledger.busy[*node] += vertex.work_s[*node] * items.get(index).copied().unwrap_or(0.0);
                ledger.containers[*node] += u32::from(vertex.runs);
            }
        }
        ledger
    }

    /// Whether rules about other tasks hold of these members in other seats.
    pub(super) fn rules_hold(&self, other: &[(usize, Seat)]) -> bool {
        let ruled = self.fixed.ruled || self.members.iter().any(|member| member.graph.has_rules);
        if !ruled && !self.world.limits_containers {
            return true;
        }
        let seats = self.seats(other);
        other.iter().all(|(index, seat)| {
            let mut ledger = self.fixed.clone();
            let rest = self.members.iter().zip(&seats).enumerate().filter(|(at, _)| at != index);
            for (_, (member, seat)) in rest {
                (0..seat.nodes.len()).for_each(|at| ledger.hold(&member.graph, at, seat.nodes[at]));
            }
            let graph = &self.members[*index].graph;
            let case = Case { world: self.world, graph, ledger: &ledger };
            case.broken_rule(&seat.nodes).is_none()
        })
    }

    /// Links as one job may count on them: what the others do not need, or a part of what they share.
    pub(super) fn links_for(&self, without: Option<usize>, items: &[f64]) -> Vec<f64> {
        let links = self.links.len();
        let mut needed = vec![0.0; links];
        let mut jobs = vec![0.0; links];
        for (index, member) in self.members.iter().enumerate().filter(|(index, _)| Some(*index) != without) {
            for (pool, amount) in member.seat.uses.iter().filter(|(pool, _)| *pool < links) {
                needed[*pool] += amount * items.get(index).copied().unwrap_or(0.0);
                jobs[*pool] += 1.0;
            }
        }
        let part = |pool: usize| {
            let capacity = self.links[pool];
            (capacity - needed[pool]).max(capacity / (1.0 + NEWCOMER_PART * jobs[pool]))
        };
        open((0..links).map(part).collect())
    }

    /// Links, then processors: those have what requests that stay as they are leave of them.
    pub(super) fn capacity<'s>(&self, seats: impl Iterator<Item = (&'s Member<'a>, &'s Seat)>) -> Vec<f64>
    where
        'a: 's,
    {
        let mut free: Vec<i64> = self.fixed.free.iter().map(|free| free.cpu).collect();
        for (member, seat) in seats {
            let requests = member.graph.vertices.iter().zip(&seat.nodes);
            requests
                .filter(|(vertex, _)| !vertex.sized)
                .for_each(|(vertex, node)| free[*node] -= vertex.need.cpu);
        }
        #[expect(clippy::cast_precision_loss, reason = "thousandths of a core")]
        let speeds = free
            .into_iter()
            .zip(&self.world.nodes)
            .map(|(cpu, node)| cpu.max(0) as f64 / 1000.0 * node.core_speed);
        self.links.iter().copied().chain(speeds).collect()
    }

    /// Items a second of each member, some of them in other seats: floors first, then the largest sum.
    pub(super) fn items_per_s(&self, other: &[(usize, Seat)]) -> Vec<f64> {
        let seats: Vec<&Seat> = self.seats(other);
        let capacity = self.capacity(self.members.iter().zip(seats.iter().copied()));
        let consumers: Vec<Consumer> = seats.iter().map(|seat| consumer(seat, &capacity)).collect();
        let fair = fill(&consumers, &capacity);
        let floor = self.world.policy.floor.clamp(LEAST_FLOOR, 1.0);
        let below = consumers.iter().zip(&fair).map(|(consumer, fair)| Column {
            uses: consumer.uses.clone(),
            weight: 1.0,
            least: fair * floor,
            most: *fair,
        });
        // A little less than the same again, so that equals stay equal.
        let above = consumers.iter().zip(&fair).map(|(consumer, fair)| Column {
            uses: consumer.uses.clone(),
            weight: 1.0 - FAIR_PREFERENCE,
            least: 0.0,
            most: (consumer.limit - fair).max(0.0),
        });
        let columns: Vec<Column> = below.chain(above).collect();
        let packed = pack(&columns, &capacity);
        let (below, above) = packed.split_at(consumers.len());
        below.iter().zip(above).map(|(below, above)| below + above).collect()
    }

    /// How good throughputs are together, with some members in other seats: a concave sum, so that a slow job's gain
    /// counts more than a fast one's. A newcomer makes nothing while it waits for its pulls.
    pub(super) fn worth(&self, items: &[f64], other: &[(usize, Seat)]) -> f64 {
        let seated = self.members.iter().zip(self.seats(other)).zip(items);
        let made = seated.map(|((member, seat), items)| {
            member.pulls.over_horizon(*items, (self.world, &seat.nodes)).powf(WORTH_EXPONENT)
        });
        made.sum()
    }

    /// The members' seats, some of them replaced.
    fn seats<'s>(&'s self, other: &'s [(usize, Seat)]) -> Vec<&'s Seat> {
        let mut seats: Vec<&Seat> = self.members.iter().map(|member| &member.seat).collect();
        for (index, seat) in other {
            seats[*index] = seat;
        }
        seats
    }

    /// Whether every flow of a seat gets a rate that works.
    pub(super) fn works(&self, seat: &Seat, items: f64) -> bool {
        let mut links = seat.uses.iter().filter(|(pool, _)| *pool < self.links.len());
        items > 0.0 && links.all(|(pool, _)| self.links[*pool] >= LEAST_RATE_BPS)
    }
}

/// Whether everybody who makes items goes on making some.
pub(super) fn starves_nobody(before: &[f64], after: &[f64]) -> bool {
    before.iter().zip(after).all(|(before, after)| *before <= 0.0 || *after > 0.0)
}

/// A seat as a consumer of pools; its weight is what it would have alone.
fn consumer(seat: &Seat, capacity: &[f64]) -> Consumer {
    let alone = seat.uses.iter().map(|(pool, amount)| capacity[*pool] / amount);
    Consumer { uses: seat.uses.clone(), weight: alone.fold(seat.limit, f64::min), limit: seat.limit }
}
