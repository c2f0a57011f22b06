//! One job as dense numbers: vertices in topological order, edges by index.
//!
//! The source is vertex 0 where the job has one, fixed to its node; a source without a container takes
//! no resources. Edges keep their bytes an item.

use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{ANYWHERE, Constraint, Job, Placement, Resources};
use edgeloom_common::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use crate::classes::Interval;
use crate::filter::Amount;
use crate::plan::Share;
use crate::snapshot::{Node, Profiles, TaskProfile};
use crate::world::World;

/// Docker takes no smaller memory limit.
const LEAST_MEMORY_MIB: u64 = 6;

/// A task or the source.
#[derive(Debug, Clone)]
pub(crate) struct Vertex<'a> {
    pub(crate) name: TaskName,
    pub(crate) need: Amount,
    /// Reference-core seconds an item on each node, `C_i`; 0 where unknown.
    pub(crate) work_s: PerNode,
    /// Items a second on each node under the requested limits, as profiled; infinite where it was not.
    pub(crate) pace: PerNode,
    /// Cores that the container may use at most; infinite where none are requested.
    pub(crate) cores: f64,
    /// The planner may give more than the request.
    pub(crate) sized: bool,
    pub(crate) constraints: &'a [Constraint],
    pub(crate) placement: &'a Placement,
    /// True where a container runs.
    pub(crate) runs: bool,
}

/// A number of each node. Most jobs' are the same on all, and graphs of all running jobs are made at every decision.
#[derive(Debug, Clone)]
pub(crate) enum PerNode {
    Same(f64),
    Each(Vec<f64>),
}

impl PerNode {
    /// Every number that occurs.
    pub(crate) fn values(&self) -> &[f64] {
        match self {
            Self::Same(number) => std::slice::from_ref(number),
            Self::Each(numbers) => numbers,
        }
    }
}

impl Index<usize> for PerNode {
    type Output = f64;

    fn index(&self, node: usize) -> &f64 {
        match self {
            Self::Same(number) => number,
            Self::Each(numbers) => &numbers[node],
        }
    }
}

impl Vertex<'_> {
    /// What it takes of a node with such limits.
    pub(crate) fn sized(&self, share: Share) -> Amount {
        let (cpu, memory) = (i64::from(share.cpu.0), i64::try_from(share.memory.0).unwrap_or(i64::MAX));
        Amount { cpu, memory, storage: self.need.storage }
    }

    /// Gives it so many thousandths of a core, at least what it asks for.
    pub(crate) fn give(&mut self, cpu: i64) {
        self.need.cpu = self.need.cpu.max(cpu);
        self.cores = cores(self.need.cpu);
    }
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
    /// Some task has labels, rules or wishes beside its constraints.
    pub(crate) has_rules: bool,
}

impl<'a> JobGraph<'a> {
    /// Orders the tasks so that each comes after its inputs; names break ties.
    pub(crate) fn of(world: &World<'_>, job: &'a Job, profiles: &Profiles) -> Self {
        let mut vertices: Vec<Vertex<'a>> = source_vertex(job).into_iter().collect();
        let task = |name| task_vertex(world, job, (name, profiles.get(name)));
        vertices.extend(topological(job).into_iter().map(task));
        let index: BTreeMap<&TaskName, usize> =
            vertices.iter().enumerate().map(|(i, vertex)| (&vertex.name, i)).collect();
        let edges = job.edges().filter_map(|(from, to, volume)| {
            Some(Edge { from: *index.get(&from)?, to: *index.get(&to)?, volume })
        });
        let edges = edges.collect();
        let has_rules = vertices.iter().any(|vertex| !vertex.placement.is_anywhere());
        Self { job, vertices, edges, has_rules }
    }

    /// The job with no limit of cores on tasks that leave it to the planner.
    pub(crate) fn unsized_cores(mut self) -> Self {
        let sized = self.vertices.iter_mut().filter(|vertex| vertex.sized);
        sized.for_each(|vertex| vertex.cores = f64::INFINITY);
        self
    }

    /// The job with these limits of cores.
    pub(crate) fn with_shares(mut self, shares: &BTreeMap<TaskName, Share>) -> Self {
        for vertex in &mut self.vertices {
            if let Some(share) = shares.get(&vertex.name) {
                vertex.cores = cores(i64::from(share.cpu.0));
            }
        }
        self
    }

    /// The job as it runs with these limits: machines that come and go change what a class comes to, but not
    /// what was given.
    pub(crate) fn running_with(mut self, shares: &BTreeMap<TaskName, Share>) -> Self {
        for vertex in self.vertices.iter_mut().filter(|vertex| vertex.sized) {
            let held = shares.get(&vertex.name).map(|share| i64::from(share.cpu.0));
            let asked = self.job.tasks.get(&vertex.name).map_or(0, |task| task.program.resources.cpu.0);
            vertex.need.cpu = vertex.need.cpu.min(held.unwrap_or(0).max(i64::from(asked)));
        }
        self
    }

    /// Whether some task has further containers.
    pub(crate) fn has_copies(&self) -> bool {
        self.job.tasks.values().any(|task| task.copy_of.is_some())
    }

    /// Per vertex the one that it is a copy of; itself where it is none.
    pub(crate) fn originals(&self) -> Vec<usize> {
        let index: BTreeMap<&TaskName, usize> =
            self.vertices.iter().enumerate().map(|(at, vertex)| (&vertex.name, at)).collect();
        let original = |(at, vertex): (usize, &Vertex<'_>)| {
            let name = self.job.tasks.get(&vertex.name).and_then(|task| task.copy_of.as_ref());
            name.and_then(|name| index.get(name).copied()).unwrap_or(at)
        };
        self.vertices.iter().enumerate().map(original).collect()
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
        work_s: PerNode::Same(0.0),
        pace: PerNode::Same(f64::INFINITY),
        cores: f64::INFINITY,
        sized: false,
        constraints: &[],
        placement: &ANYWHERE,
        runs: container.is_some(),
    })
}

fn task_vertex<'a>(
    world: &World<'_>,
    job: &'a Job,
    (name, profiles): (&'a TaskName, Option<&BTreeMap<String, TaskProfile>>),
) -> Vertex<'a> {
    let task = &job.tasks[name];
    let mut need = need(&task.program.resources, profiles);
    if task.program.resources.cpu_sized && job.sla.resources.is_some() {
        need.cpu = need.cpu.max(Interval::of(&world.nodes, &job.sla).least);
    }
    let declared = task.work.map_or(0.0, edgeloom_common::units::Work::as_secs_f64);
    let (work_s, pace) =
        profiles.map_or((PerNode::Same(declared), PerNode::Same(f64::INFINITY)), |by_class| {
            let of = |node: &&Node| by_class.get(&node.class);
            let work_s = |node: &&Node| of(node).map_or(declared, |found| found.work_s);
            let pace = |node: &&Node| {
                of(node).map_or(f64::INFINITY, |found| node.core_speed / found.core_speed / found.wall_s)
            };
            let nodes = || world.nodes.iter();
            (PerNode::Each(nodes().map(work_s).collect()), PerNode::Each(nodes().map(pace).collect()))
        });
    Vertex {
        name: name.clone(),
        cores: cores(need.cpu),
        need,
        work_s,
        pace,
        sized: task.program.resources.cpu_sized,
        constraints: &task.constraints,
        placement: &task.placement,
        runs: true,
    }
}

/// Thousandths as cores; none is no limit.
#[expect(clippy::cast_precision_loss, reason = "thousandths of a core")]
fn cores(cpu: i64) -> f64 {
    if cpu == 0 { f64::INFINITY } else { cpu as f64 / 1000.0 }
}

/// The request; memory that the document leaves open is the largest measured peak and a quarter more.
fn need(resources: &Resources, profiles: Option<&BTreeMap<String, TaskProfile>>) -> Amount {
    let mut need = Amount::from(resources);
    let peaks = profiles.into_iter().flat_map(BTreeMap::values).map(|profile| profile.memory_peak.0);
    if let Some(peak) = peaks.max().filter(|_| resources.memory_sized) {
        let mebibytes = (peak + peak / 4).div_ceil(1 << 20).max(LEAST_MEMORY_MIB);
        need.memory = i64::try_from(mebibytes << 20).unwrap_or(i64::MAX);
    }
    need
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
