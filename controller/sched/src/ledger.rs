//! What the committed jobs hold of nodes and links.
//!
//! The ledger is added up anew from the plans each time it is needed: no release can be forgotten, and
//! the sums do not depend on the order in which jobs came and went.

use edgeloom_common::job::Job;
use std::collections::BTreeMap;

use crate::filter::Amount;
use crate::job_graph::JobGraph;
use crate::plan::JobPlan;
use crate::snapshot::{Change, Profiles, Running};
use crate::world::World;

/// A job that holds resources, with the plan that says which.
#[derive(Debug, Clone)]
pub(crate) struct Held<'a> {
    pub(crate) job: &'a Job,
    pub(crate) plan: JobPlan,
    pub(crate) profiles: &'a Profiles,
    pub(crate) change: Change,
}

impl<'a> Held<'a> {
    /// A running job as the snapshot has it.
    pub(crate) fn of(running: &'a Running) -> Self {
        Self {
            job: &running.job,
            plan: running.plan.clone(),
            profiles: &running.profiles,
            change: running.change,
        }
    }
}

/// Sums over held jobs.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    /// Per node: allocatable minus requested.
    pub(crate) free: Vec<Amount>,
    /// Per node: reference-core seconds a second that the jobs are predicted to use.
    pub(crate) busy: Vec<f64>,
    /// Per node: containers that run.
    pub(crate) containers: Vec<u32>,
    /// Per pool: wire bits a second given to flows.
    pub(crate) reserved: Vec<f64>,
}

impl Ledger {
    /// Adds up what these jobs hold.
    pub(crate) fn of<'h, 'a: 'h>(world: &World<'_>, held: impl Iterator<Item = &'h Held<'a>>) -> Self {
        let mut ledger = Self {
            free: world.nodes.iter().map(|node| Amount::from(*node)).collect(),
            busy: vec![0.0; world.nodes.len()],
            containers: vec![0; world.nodes.len()],
            reserved: vec![0.0; world.capacity.len()],
        };
        for entry in held {
            ledger.take(world, entry);
        }
        ledger
    }

    /// Adds what one more job holds.
    pub(crate) fn take(&mut self, world: &World<'_>, held: &Held<'_>) {
        for vertex in JobGraph::of(world, held.job, held.profiles).vertices {
            let node = held.plan.placement.get(&vertex.name).and_then(|node| world.index(node));
            let Some(node) = node else { continue };
            self.free[node] -=
                held.plan.shares.get(&vertex.name).map_or(vertex.need, |share| vertex.sized(*share));
            self.busy[node] += vertex.work_s[node] * held.plan.prediction.items_per_s;
            self.containers[node] += u32::from(vertex.runs);
        }
        for flow in &held.plan.flows {
            for pool in world.pools_of(&flow.path) {
                self.reserved[pool] += flow.rate.as_f64();
            }
        }
    }

    /// Per pool: what no flow holds.
    pub(crate) fn residual(&self, world: &World<'_>) -> Vec<f64> {
        let pairs = world.capacity.iter().zip(&self.reserved);
        pairs.map(|(capacity, reserved)| (capacity - reserved).max(0.0)).collect()
    }
}

/// Jobs by name, so that sums run in a fixed order.
pub(crate) type HeldJobs<'a> = BTreeMap<edgeloom_common::ids::JobName, Held<'a>>;
