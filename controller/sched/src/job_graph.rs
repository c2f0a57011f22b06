//! One job as dense numbers: vertices in topological order, edges by index.
//!
//! The source is vertex 0 where the job has one, fixed to its node; a source without a container takes
//! no resources. Edges keep their bytes an item.

use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Constraint, Job};
use edgeloom_common::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};

use crate::filter::Amount;

/// A task or the source.
#[derive(Debug, Clone)]
pub(crate) struct Vertex<'a> {
    pub(crate) name: TaskName,
    pub(crate) need: Amount,
    /// Reference-core seconds an item, `C_i`; 0 where unknown.
    pub(crate) work_s: f64,
    /// Cores that the container may use at most; infinite where none are requested.
    pub(crate) cores: f64,
    pub(crate) constraints: &'a [Constraint],
    /// True where a container runs.
    pub(crate) runs: bool,
}

/// Data that passes from one vertex to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) volume: Bytes,
}

/// The job.
#[derive(Debug, Clone)]
pub(crate) struct JobGraph<'a> {
    pub(crate) job: &'a Job,
    pub(crate) vertices: Vec<Vertex<'a>>,
    pub(crate) edges: Vec<Edge>,
}

impl<'a> JobGraph<'a> {
    /// Orders the tasks so that each comes after its inputs; names break ties.
    pub(crate) fn of(job: &'a Job) -> Self {
        let mut vertices: Vec<Vertex<'a>> = source_vertex(job).into_iter().collect();
        vertices.extend(topological(job).into_iter().map(|name| task_vertex(job, name)));
        let index: BTreeMap<&TaskName, usize> =
            vertices.iter().enumerate().map(|(i, vertex)| (&vertex.name, i)).collect();
        let edges = job.edges().filter_map(|(from, to, volume)| {
            Some(Edge { from: *index.get(&from)?, to: *index.get(&to)?, volume })
        });
        let edges = edges.collect();
        Self { job, vertices, edges }
    }

    /// The node that a vertex is bound to: the source's.
    pub(crate) fn fixed(&self, vertex: usize) -> Option<&'a NodeId> {
        let source = self.job.source.as_ref()?;
        self.vertices[vertex].name.is_source().then_some(&source.node)
    }

    /// Edges that end at a vertex.
    pub(crate) fn inputs(&self, vertex: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.to == vertex)
    }
}

fn source_vertex(job: &Job) -> Option<Vertex<'_>> {
    let source = job.source.as_ref()?;
    let container = source.container.as_ref();
    Some(Vertex {
        name: TaskName::source(),
        need: container.map(|program| Amount::from(&program.resources)).unwrap_or_default(),
        work_s: 0.0,
        cores: f64::INFINITY,
        constraints: &[],
        runs: container.is_some(),
    })
}

fn task_vertex<'a>(job: &'a Job, name: &'a TaskName) -> Vertex<'a> {
    let task = &job.tasks[name];
    let cpu = task.program.resources.cpu.0;
    Vertex {
        name: name.clone(),
        need: Amount::from(&task.program.resources),
        work_s: task.work.map_or(0.0, edgeloom_common::units::Work::as_secs_f64),
        cores: if cpu == 0 { f64::INFINITY } else { f64::from(cpu) / 1000.0 },
        constraints: &task.constraints,
        runs: true,
    }
}

/// Kahn's algorithm; tasks of a cycle (which the job document refuses) come last, by name.
fn topological(job: &Job) -> Vec<&TaskName> {
    let mut waiting_for: BTreeMap<&TaskName, usize> = job.tasks.keys().map(|name| (name, 0)).collect();
    for to in job.tasks.values().flat_map(|task| task.outputs.keys()) {
        if let Some(count) = waiting_for.get_mut(to) {
            *count += 1;
        }
    }
    let mut open: BTreeSet<&TaskName> = BTreeSet::new();
    open.extend(waiting_for.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name));
    let mut order = Vec::new();
    while let Some(name) = open.pop_first() {
        waiting_for.remove(name);
        order.push(name);
        for to in job.tasks[name].outputs.keys() {
            if let Some(count) = waiting_for.get_mut(to) {
                *count -= 1;
                if *count == 0 {
                    open.insert(to);
                }
            }
        }
    }
    order.extend(waiting_for.into_keys());
    order
}
