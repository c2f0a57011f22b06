//! What the committed jobs hold of nodes and links.
//!
//! The ledger is added up anew from the plans each time it is needed: no release can be forgotten, and
//! the sums do not depend on the order in which jobs came and went.

use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::units::MilliCores;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::filter::{Amount, Resident};
use crate::job_graph::{JobGraph, Vertex};
use crate::plan::JobPlan;
use crate::score::resources::unasked;
use crate::snapshot::{Change, Node, Profiles, Running};
use crate::world::World;

/// A job that holds resources, with the plan that says which.
#[derive(Debug, Clone)]
pub(crate) struct Held<'a> {
    pub(crate) job: &'a Job,
    pub(crate) plan: Cow<'a, JobPlan>,
    pub(crate) profiles: &'a Profiles,
    pub(crate) change: Change,
    pub(crate) enough: &'a BTreeMap<TaskName, MilliCores>,
}

/// Of jobs that have not run yet.
pub(crate) static UNKNOWN: BTreeMap<TaskName, MilliCores> = BTreeMap::new();

impl<'a> Held<'a> {
    /// A running job as the snapshot has it.
    pub(crate) fn of(running: &'a Running) -> Self {
        Self {
            job: &running.job,
            plan: Cow::Borrowed(&running.plan),
            profiles: &running.profiles,
            change: running.change,
            enough: &running.enough,
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
    /// Per node: containers that run or are placed.
    pub(crate) slots: Vec<u32>,
    /// Per node: what Kubernetes counts for containers that ask for no CPU or memory.
    pub(crate) unasked: Vec<Amount>,
    /// Per node: tasks that rules of others may look at.
    pub(crate) residents: Vec<Vec<Arc<Resident>>>,
    /// Some node has residents.
    pub(crate) ruled: bool,
    /// Jobs of which nobody knows whether they were placed before or after the one at hand.
    pub(crate) fresh: BTreeSet<JobName>,
    /// Per pool: wire bits a second given to flows.
    pub(crate) reserved: Vec<f64>,
    /// Per pool: wire bits a second that flows are predicted to need of that.
    pub(crate) needed: Vec<f64>,
}

impl Ledger {
    /// Adds up what these jobs hold.
    pub(crate) fn of<'h, 'a: 'h>(world: &World<'_>, held: impl Iterator<Item = &'h Held<'a>>) -> Self {
        let mut ledger = Self {
            free: world.nodes.iter().map(|node| Amount::from(*node)).collect(),
            busy: vec![0.0; world.nodes.len()],
            containers: vec![0; world.nodes.len()],
            slots: vec![0; world.nodes.len()],
            unasked: vec![Amount::default(); world.nodes.len()],
            residents: vec![Vec::new(); world.nodes.len()],
            ruled: false,
            fresh: BTreeSet::new(),
            reserved: vec![0.0; world.capacity.len()],
            needed: vec![0.0; world.capacity.len()],
        };
        for entry in held {
            ledger.take(world, entry);
        }
        ledger
    }

    /// Adds what one more job holds.
    pub(crate) fn take(&mut self, world: &World<'_>, held: &Held<'_>) {
        let graph = JobGraph::of(world, held.job, held.profiles);
        for (index, vertex) in graph.vertices.iter().enumerate() {
            let node = held.plan.placement.get(&vertex.name).and_then(|node| world.index(node));
            let Some(node) = node else { continue };
            self.hold(&graph, index, node);
            if let Some(share) = held.plan.shares.get(&vertex.name) {
                self.free[node] += vertex.need;
                self.free[node] -= vertex.sized(*share);
            }
            self.busy[node] += vertex.work_s[node] * held.plan.prediction.items_per_s;
            self.containers[node] += u32::from(vertex.runs);
        }
        for flow in &held.plan.flows {
            let needed = held.plan.needed(flow, world.goodput);
            for pool in world.pools_of(&flow.path) {
                self.reserved[pool] += flow.rate.as_f64();
                self.needed[pool] += needed;
            }
        }
    }

    /// Takes what a vertex needs of a node, and lets others see it there.
    pub(crate) fn hold(&mut self, graph: &JobGraph<'_>, vertex: usize, node: usize) {
        let wanted = &graph.vertices[vertex];
        self.free[node] -= wanted.need;
        if !wanted.runs {
            return;
        }
        self.slots[node] = self.slots[node].saturating_add(1);
        self.unasked[node] += unasked(&wanted.need);
        if graph.has_rules {
            self.ruled = true;
            self.residents[node].push(Arc::new(Resident::of(graph, vertex)));
        }
    }

    /// Why a node has no room for one more container.
    pub(crate) fn full(&self, node: &Node, index: usize, vertex: &Vertex<'_>) -> Option<String> {
        let most = node.hosting.containers_max;
        let full = vertex.runs && self.slots[index] >= most;
        full.then(|| format!("{} containers run, {most} are allowed", self.slots[index]))
    }

    /// Per pool: what no flow holds.
    pub(crate) fn residual(&self, world: &World<'_>) -> Vec<f64> {
        let pairs = world.capacity.iter().zip(&self.reserved);
        pairs.map(|(capacity, reserved)| (capacity - reserved).max(0.0)).collect()
    }
}

/// Jobs by name, so that sums run in a fixed order.
pub(crate) type HeldJobs<'a> = BTreeMap<JobName, Held<'a>>;
