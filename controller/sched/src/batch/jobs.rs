//! Waiting jobs as a batch of requests, and the answer as a node for each task.
//!
//! A job's tasks are a gang: they start together or not at all. A job of one task is alone. What a job that finds
//! no room is told is true of the nodes as the batch leaves them.

use std::ops::Range;

use super::groups::Groups;
use super::{Batch, Machine, Method, Packing, Refusal, Request, Vector, fits, place};
use crate::case::{Case, Placed, Stuck};
use crate::filter::{Amount, Fit, untolerated};
use crate::job_graph::{JobGraph, Vertex};
use crate::ledger::Ledger;
use crate::snapshot::Node;
use crate::world::World;

/// What is said of a node that could take the task, but not all that start with it.
const TOGETHER: &str = "has room for this task, but the job's tasks do not all find room";
const TOGETHER_APART: &str =
    "has room for one such container, but the job's tasks do not all find nodes of their own";

const CONTRADICTION: &str = "the job's rules want it both together with a task and apart from it";
const COMPANY: &str = "could take this task, but not with all that have to be together with it";

/// Who decides on batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scheduler {
    /// The default profile's stage.
    Edgeloom,
    EcschedDp,
    EcschedMl,
}

impl Scheduler {
    /// The profile's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Edgeloom => "edgeloom",
            Self::EcschedDp => "ecsched-dp",
            Self::EcschedMl => "ecsched-ml",
        }
    }

    const fn method(self, packing: Packing) -> Method {
        match self {
            Self::Edgeloom => Method::Packing(packing),
            Self::EcschedDp => Method::EcschedDp,
            Self::EcschedMl => Method::EcschedMl,
        }
    }

    fn words(self, packing: Packing, jobs: usize) -> String {
        match self {
            Self::Edgeloom => {
                format!("packed with {jobs} jobs at once for {}", packing.objective.name())
            }
            Self::EcschedDp => {
                format!("minimum-cost flow over {jobs} jobs, demand aligned with what is free")
            }
            Self::EcschedMl => format!("minimum-cost flow over {jobs} jobs, to the most loaded nodes"),
        }
    }
}

/// For each job its nodes, or the task that found none and whether waiting is in vain. `jobs` come with the seconds
/// that they have waited.
pub(crate) fn place_jobs(
    (world, ledger): (&World<'_>, &Ledger),
    scheduler: Scheduler,
    jobs: &[(&JobGraph<'_>, f64)],
) -> Vec<Result<Placed, (Stuck, bool)>> {
    let packing = world.policy.batch;
    let mut numbers = Numbers::now(world, ledger);
    let ranges: Vec<Range<usize>> =
        jobs.iter().map(|(graph, waited_s)| numbers.add(world, graph, *waited_s)).collect();
    let answer = place(&numbers.batch, scheduler.method(packing));
    let mut after = ledger.clone();
    let mut found = Vec::new();
    for ((graph, _), range) in jobs.iter().zip(ranges) {
        let places = &answer.places[range];
        let nodes = numbers.nodes_of(places);
        for (vertex, node) in graph.vertices.iter().zip(nodes.iter().flatten()) {
            after.free[*node] -= vertex.need;
        }
        found.push(nodes.ok_or(places));
    }
    let words = scheduler.words(packing, jobs.len());
    let mut empty = None;
    let answers = jobs.iter().zip(found).map(|((graph, _), nodes)| match nodes {
        Ok(nodes) => Ok(Placed { reasons: reasons(world, graph, (&nodes, &words)), nodes }),
        Err(places) => {
            let never = !empty.get_or_insert_with(|| Numbers::empty(world)).holds(world, graph);
            Err((stuck(&Case { world, graph, ledger: &after }, places), never))
        }
    });
    answers.collect()
}

fn reasons(world: &World<'_>, graph: &JobGraph<'_>, (nodes, words): (&[usize], &str)) -> Vec<String> {
    let reason =
        |(vertex, node): (&Vertex<'_>, &usize)| format!("{} -> {}: {words}", vertex.name, world.name(*node));
    graph.vertices.iter().zip(nodes).map(reason).collect()
}

/// The first task that is in the way itself; of a gang that fits only in parts, the first.
fn stuck(case: &Case<'_>, places: &[Result<usize, Refusal>]) -> Stuck {
    let own = |place: &Result<usize, Refusal>| place.is_err_and(|refusal| refusal != Refusal::Gang);
    let vertex = places.iter().position(own).unwrap_or(0);
    if places[vertex] == Err(Refusal::Contradiction) {
        return Stuck { vertex, refusals: vec![CONTRADICTION.to_owned(); case.world.nodes.len()] };
    }
    let alone = match places[vertex] {
        Err(Refusal::NoMachine | Refusal::TooLarge) => COMPANY,
        _ if case.graph.has_copies() => TOGETHER_APART,
        _ => TOGETHER,
    };
    let texts = case.refusals(vertex, case.ledger, Fit::AtLeast);
    let texts = texts.into_iter().map(|text| text.unwrap_or_else(|| alone.to_owned()));
    Stuck { vertex, refusals: texts.collect() }
}

/// A batch in plain numbers.
struct Numbers {
    batch: Batch,
    /// Of each machine.
    nodes: Vec<usize>,
}

impl Numbers {
    /// Nodes that are ready, and what is free there.
    fn now(world: &World<'_>, ledger: &Ledger) -> Self {
        let nodes: Vec<usize> = (0..world.nodes.len()).filter(|node| world.nodes[*node].ready).collect();
        let machine = |node: &usize| Machine {
            capacity: vector(Amount::from(world.nodes[*node])),
            free: vector(ledger.free[*node]),
        };
        let machines = nodes.iter().map(machine).collect();
        Self { batch: Batch { machines, requests: Vec::new() }, nodes }
    }

    /// All nodes as if they were ready and nothing ran there.
    fn empty(world: &World<'_>) -> Self {
        let machine = |node: &&Node| {
            let capacity = vector(Amount::from(*node));
            Machine { capacity, free: capacity }
        };
        let machines = world.nodes.iter().map(machine).collect();
        let nodes = (0..world.nodes.len()).collect();
        Self { batch: Batch { machines, requests: Vec::new() }, nodes }
    }

    /// Adds a request for each vertex: several are a gang, containers of one task keep apart, and so does what the job's rules
    /// say as far as [`Groups`] knows them.
    fn add(&mut self, world: &World<'_>, graph: &JobGraph<'_>, waited_s: f64) -> Range<usize> {
        let first = self.batch.requests.len();
        let copies = graph.has_copies().then(|| graph.originals());
        let groups = Groups::of(graph.job).unwrap_or_default();
        let number = |group: &usize| first + group;
        for index in 0..graph.vertices.len() {
            self.batch.requests.push(Request {
                demand: vector(graph.vertices[index].need),
                machines: self.allowed(world, graph, index),
                together: groups.together.get(&graph.vertices[index].name).map(number),
                apart: match &copies {
                    Some(originals) => Some(first + originals[index]),
                    None => groups.apart.get(&graph.vertices[index].name).map(number),
                },
                gang: (graph.vertices.len() > 1).then_some(first),
                waited_s,
            });
        }
        first..self.batch.requests.len()
    }

    /// The machines that a vertex may run on if they are empty; none: all.
    fn allowed(&self, world: &World<'_>, graph: &JobGraph<'_>, vertex: usize) -> Option<Vec<usize>> {
        let wanted = &graph.vertices[vertex];
        let fixed = graph.fixed(vertex);
        let works = wanted.work_s.values().iter().any(|work_s| *work_s > 0.0);
        if wanted.constraints.is_empty() && fixed.is_none() && !works && !world.tainted {
            return None;
        }
        let holds = |machine: &usize| {
            let node = world.nodes[self.nodes[*machine]];
            fixed.is_none_or(|own| *own == node.id)
                && wanted.constraints.iter().all(|constraint| constraint.holds(&node.id, &node.labels))
                && untolerated(node, wanted).is_none()
                && (wanted.work_s[self.nodes[*machine]] <= 0.0 || node.speed() > 0.0)
        };
        let some: Vec<usize> = (0..self.nodes.len()).filter(holds).collect();
        (some.len() < self.nodes.len()).then_some(some)
    }

    /// None where one has no machine.
    fn nodes_of(&self, places: &[Result<usize, Refusal>]) -> Option<Vec<usize>> {
        places.iter().map(|place| place.ok().map(|machine| self.nodes[machine])).collect()
    }

    /// Whether the job's tasks find room on these machines with no other job there.
    fn holds(&mut self, world: &World<'_>, graph: &JobGraph<'_>) -> bool {
        self.batch.requests.clear();
        self.add(world, graph, 0.0);
        if let [only] = self.batch.requests.as_slice() {
            let room = |machine: usize| fits(&self.batch.machines[machine].capacity, &only.demand);
            let mut every = 0..self.nodes.len();
            return match &only.machines {
                Some(some) => some.iter().any(|machine| room(*machine)),
                None => every.any(room),
            };
        }
        place(&self.batch, Method::Packing(Packing::default())).places.iter().all(Result::is_ok)
    }
}

fn vector(amount: Amount) -> Vector {
    [amount.cpu, amount.memory, amount.storage]
}
