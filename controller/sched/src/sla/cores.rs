//! Step 3: how many cores a container gets.
//!
//! Formula 1: `r_i = p_i wc / sum of p_j` over the queued containers of the same reputation, `wc` the idle cores
//! of the nodes of that reputation; rounded down, then clipped to the interval of its class. A task whose
//! document names its CPU gets that, and takes no part in the sum.

use edgeloom_common::job::{Service, Sla};
use std::collections::BTreeMap;

use super::params::{Cores, Rules};
use crate::classes::{Interval, suits};
use crate::filter::Amount;
use crate::job_graph::JobGraph;
use crate::world::World;

/// Sums of priorities by reputation.
#[derive(Debug, Clone, Default)]
pub(super) struct Priorities(BTreeMap<Option<Service>, i64>);

/// What formula 1 said, for decisions and for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Portion {
    /// Thousandths of a core.
    pub(super) cpu: i64,
    pub(super) idle: i64,
    pub(super) interval: Interval,
}

fn priority(sla: &Sla) -> i64 {
    i64::from(sla.resources.unwrap_or(Service::BestEffort).level())
}

impl Priorities {
    /// Of all containers of these jobs that formula 1 sizes; copies get what their task's first one gets.
    pub(super) fn of<'q, 'a: 'q>(queue: impl Iterator<Item = &'q JobGraph<'a>>) -> Self {
        let mut sums = Self::default();
        for graph in queue {
            let originals = graph.originals().into_iter().enumerate().filter(|(at, original)| at == original);
            let sized = originals.filter(|(at, _)| graph.vertices[*at].sized).count();
            let sum = sums.0.entry(graph.job.sla.reputation).or_default();
            *sum += priority(&graph.job.sla) * i64::try_from(sized).unwrap_or(i64::MAX);
        }
        sums
    }

    /// One container has left the queue.
    pub(super) fn leave(&mut self, sla: &Sla) {
        *self.0.entry(sla.reputation).or_default() -= priority(sla);
    }

    /// The next container's part of what is free.
    pub(super) fn portion(&self, world: &World<'_>, free: &[Amount], rules: &Rules, sla: &Sla) -> Portion {
        let interval = Interval::of(&world.nodes, sla);
        let candidates = world.nodes.iter().zip(free).filter(|(node, _)| node.ready);
        let candidates = candidates.filter(|(node, _)| suits(node, sla.reputation));
        let idle: i64 = candidates.map(|(_, free)| free.cpu.max(0)).sum();
        let sum = self.0.get(&sla.reputation).copied().unwrap_or(0).max(1);
        let cpu = match rules.cores {
            Cores::Shared => interval.clip(priority(sla).saturating_mul(idle) / sum),
            Cores::Fixed => interval.clip(i64::midpoint(interval.least, interval.most)),
        };
        Portion { cpu, idle, interval }
    }
}
