//! One job of the profile: its graph, and where it sits.

use edgeloom_common::job::Kind;

use super::super::online::Strategy;
use super::super::params::{LEAST_CPU, NO_LIMIT_ITEMS_PER_S};
use super::super::{Routed, nodes_of, wire_bits};
use crate::images::PullCosts;
use crate::job_graph::{Edge, JobGraph, Vertex};
use crate::ledger::Held;
use crate::plan::FlowPlan;
use crate::snapshot::{Change, Processors};
use crate::world::World;

/// A node for each vertex, a path for each flow, and what follows from them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seat {
    pub(super) nodes: Vec<usize>,
    /// Rates are those that the flows have now, 0 where they are new.
    pub(super) flows: Vec<Routed>,
    /// Pools and what an item takes of each: wire bits of links, reference-core seconds of processors.
    pub(super) uses: Vec<(usize, f64)>,
    /// Items a second that source, limits and the processors by themselves allow.
    pub(super) limit: f64,
    pub(super) reasons: Vec<String>,
}

/// A job with its seat.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    /// None for a newcomer.
    pub(super) held: Option<&'a Held<'a>>,
    /// Sized tasks have no limit of cores here: their shares follow from the throughput.
    pub(super) graph: JobGraph<'a>,
    pub(super) change: Change,
    /// Of a newcomer; what runs has its images, and what it would pull elsewhere is not known.
    pub(super) pulls: PullCosts,
    pub(super) seat: Seat,
    /// Why it sits elsewhere than before, for people.
    pub(super) why: Option<String>,
}

impl<'a> Member<'a> {
    /// A running job of the profile; none if it is another's or a batch's, may not change, or has lost a node or link.
    /// Copies have to stay apart, which no search here looks after: jobs with some keep what they have. One with
    /// rules about other tasks stays where it is: those rules were asked when it was placed, and others' since.
    pub(super) fn of(world: &World<'_>, held: &'a Held<'a>) -> Option<Self> {
        let apart = held.job.kind == Kind::Batch || held.change == Change::Nothing;
        if held.plan.profile != Strategy::Edgeloom.name() || apart {
            return None;
        }
        let graph = JobGraph::of(world, held.job, held.profiles).running_with(&held.plan.shares);
        if graph.has_copies() {
            return None;
        }
        let graph = sharing(world, graph);
        let nodes = nodes_of(world, &graph, &held.plan)?;
        let flows = routed(world, &graph, &nodes, &held.plan.flows)?;
        let seat = seat(world, &graph, nodes, flows);
        let change = if graph.has_rules { held.change.min(Change::Routes) } else { held.change };
        Some(Self { held: Some(held), graph, change, pulls: PullCosts::default(), seat, why: None })
    }

    /// Whether it sits on other nodes than it runs on.
    pub(super) fn moves_to(&self, world: &World<'_>, nodes: &[usize]) -> bool {
        let held = self.held.and_then(|held| nodes_of(world, &self.graph, &held.plan));
        held.is_some_and(|held| held != nodes)
    }
}

/// The job as one that shares processors: sized tasks have no limit of cores, and those that work keep a little of their
/// node. Otherwise a newcomer's request could be all of a node, and who ran there would make nothing.
pub(super) fn sharing<'a>(world: &World<'_>, graph: JobGraph<'a>) -> JobGraph<'a> {
    let mut graph = graph.unsized_cores();
    if world.processors == Processors::PerJob {
        return graph;
    }
    let works = |vertex: &&mut Vertex<'_>| vertex.work_s.values().iter().any(|work_s| *work_s > 0.0);
    for vertex in graph.vertices.iter_mut().filter(|vertex| vertex.sized).filter(works) {
        vertex.need.cpu = vertex.need.cpu.max(LEAST_CPU);
    }
    graph
}

/// The plan's flows as arcs, in the order of the graph's edges.
pub(crate) fn routed(
    world: &World<'_>,
    graph: &JobGraph<'_>,
    nodes: &[usize],
    flows: &[FlowPlan],
) -> Option<Vec<Routed>> {
    let apart = graph.edges.iter().filter(|edge| nodes[edge.from] != nodes[edge.to]);
    let one = |edge: &Edge| {
        let name = |vertex: usize| &graph.vertices[vertex].name;
        let joins = |flow: &&FlowPlan| flow.id.from == *name(edge.from) && flow.id.to == *name(edge.to);
        let flow = flows.iter().find(joins)?;
        let arc =
            |hop: &[edgeloom_common::ids::NodeId]| world.arc(world.index(&hop[0])?, world.index(&hop[1])?);
        let path: Vec<usize> = flow.path.windows(2).map(arc).collect::<Option<_>>()?;
        Some(Routed { edge: *edge, path, rate: flow.rate.as_f64() })
    };
    apart.map(one).collect()
}

/// Adds up what an item takes and what bounds the job by itself.
pub(super) fn seat(world: &World<'_>, graph: &JobGraph<'_>, nodes: Vec<usize>, flows: Vec<Routed>) -> Seat {
    let links = world.capacity.len();
    let mut amount = vec![0.0; links + world.nodes.len()];
    for flow in &flows {
        let bits = wire_bits(world, &flow.edge);
        world.graph.pools(&flow.path).for_each(|pool| amount[pool] += bits);
    }
    let source = graph.job.source.as_ref().and_then(|source| source.rate_per_s);
    let mut limit = source.unwrap_or(NO_LIMIT_ITEMS_PER_S).min(NO_LIMIT_ITEMS_PER_S);
    let mut own = vec![0.0; world.nodes.len()];
    for (vertex, node) in graph.vertices.iter().zip(&nodes) {
        let work_s = vertex.work_s[*node];
        own[*node] += work_s;
        limit = limit.min(vertex.pace[*node]);
        if vertex.sized {
            amount[links + node] += work_s;
        } else if work_s > 0.0 {
            limit = limit.min(vertex.cores * world.nodes[*node].core_speed / work_s);
        }
    }
    for (node, work_s) in own.into_iter().enumerate().filter(|(_, work_s)| *work_s > 0.0) {
        limit = limit.min(world.nodes[node].speed() / work_s);
    }
    let pools = if world.processors == Processors::Shared { amount.len() } else { links };
    let uses = amount.into_iter().take(pools).enumerate().filter(|(_, amount)| *amount > 0.0).collect();
    Seat { nodes, flows, uses, limit, reasons: Vec::new() }
}
