//! Items a second of all running jobs, from placement, paths, rates and limits: nothing of the scheduler's
//! own arithmetic is used.
//!
//! In: nodes and links once, then a [`Load`] for each plan. Out: items a second of each load. A flow carries
//! its rate, or its part of it where a link was given away more than once. A task with a CPU limit uses no
//! more than that; what is left of the node is shared evenly by the jobs that want it, and what one cannot
//! use goes to the others. A job goes as fast as its slowest part.

mod compute;
mod network;

use edgeloom_common::ids::NodeId;
use edgeloom_common::job::Job;
use edgeloom_common::units::Work;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::{Link, Node, Processors};
use std::collections::BTreeMap;

use network::{Flow, Media};

/// A cluster by number: what stays the same while jobs come and go.
#[derive(Debug)]
pub(crate) struct Ground {
    nodes: BTreeMap<NodeId, usize>,
    /// Reference-core seconds a second: of one core, and of all.
    core_speed: Vec<f64>,
    speed: Vec<f64>,
    media: Media,
    /// Payload share of a wire rate.
    goodput: f64,
    processors: Processors,
}

/// What one job asks of the cluster as it is placed.
#[derive(Debug)]
pub(crate) struct Load {
    /// Items a second that the source makes at most; 0 where an edge has no way.
    most: f64,
    flows: Vec<Flow>,
    limited: Vec<Limited>,
    /// Per node: reference-core seconds an item of tasks with a limit and of those without.
    work: Vec<NodeWork>,
}

/// A task with a CPU limit.
#[derive(Debug)]
struct Limited {
    node: usize,
    /// Reference-core seconds a second that the limit allows.
    speed: f64,
    /// Reference-core seconds an item.
    work_s: f64,
}

#[derive(Debug)]
struct NodeWork {
    node: usize,
    limited_s: f64,
    free_s: f64,
}

impl Ground {
    /// Numbers the nodes and the links' capacities.
    pub(crate) fn new(nodes: &[Node], links: &[Link], goodput: f64, processors: Processors) -> Self {
        let numbers: BTreeMap<NodeId, usize> =
            nodes.iter().enumerate().map(|(number, node)| (node.id.clone(), number)).collect();
        let media = Media::new(&numbers, links);
        let core_speed: Vec<f64> = nodes.iter().map(|node| node.core_speed).collect();
        let speed = nodes.iter().map(|node| f64::from(node.cpu.0) / 1000.0 * node.core_speed).collect();
        Self { nodes: numbers, core_speed, speed, media, goodput, processors }
    }

    /// Reads a plan.
    pub(crate) fn load(&self, job: &Job, plan: &JobPlan) -> Load {
        let most = job.source.as_ref().and_then(|source| source.rate_per_s).unwrap_or(f64::INFINITY);
        let mut load = Load { most, flows: Vec::new(), limited: Vec::new(), work: Vec::new() };
        self.add_flows(&mut load, job, plan);
        for (name, task) in &job.tasks {
            let Some(node) = plan.placement.get(name).and_then(|node| self.nodes.get(node)) else {
                load.most = 0.0;
                continue;
            };
            let share = plan.shares.get(name).map_or(task.program.resources.cpu, |share| share.cpu);
            let cores = f64::from(share.0) / 1000.0;
            load.add_task(*node, cores * self.core_speed[*node], task.work.map_or(0.0, Work::as_secs_f64));
        }
        load
    }

    /// Items a second of each.
    pub(crate) fn throughputs(&self, loads: &[&Load]) -> Vec<f64> {
        let by_network = self.by_network(loads);
        self.by_compute(loads, &by_network)
    }
}

impl Load {
    fn add_task(&mut self, node: usize, limit: f64, work_s: f64) {
        if work_s <= 0.0 {
            return;
        }
        let at = self.work.iter().position(|work| work.node == node).unwrap_or_else(|| {
            self.work.push(NodeWork { node, limited_s: 0.0, free_s: 0.0 });
            self.work.len() - 1
        });
        if limit > 0.0 {
            self.limited.push(Limited { node, speed: limit, work_s });
            self.work[at].limited_s += work_s;
        } else {
            self.work[at].free_s += work_s;
        }
    }
}

#[cfg(test)]
mod tests;
