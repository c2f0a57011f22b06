//! A running job in its world: what the other parts of the explanation look at.

use edgeloom_common::ids::{JobName, TaskName};

use crate::job_graph::JobGraph;
use crate::ledger::{Held, Ledger};
use crate::plan::JobPlan;
use crate::snapshot::{Running, Snapshot};
use crate::streaming::predict::{Limiter, compute_limit};
use crate::streaming::{Case, Routed, Strategy};
use crate::world::World;

/// The job, its placement by index, and what the others hold.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) world: World<'a>,
    pub(super) graph: JobGraph<'a>,
    pub(super) plan: &'a JobPlan,
    pub(super) nodes: Vec<usize>,
    /// In the order of the plan's flows; the paths are those of the plan.
    pub(super) flows: Vec<Routed>,
    pub(super) others: Vec<Held<'a>>,
    /// What the others hold.
    pub(super) without: Ledger,
    /// What all hold, the job too.
    pub(super) with: Ledger,
}

impl<'a> Subject<'a> {
    /// None: the job does not run, or a node or link of its plan is gone.
    pub(super) fn of(snapshot: &'a Snapshot, job: &JobName) -> Option<Self> {
        let running: &Running = snapshot.running.iter().find(|running| running.job.name == *job)?;
        let world = World::of(snapshot);
        let plan = &running.plan;
        let mut graph = JobGraph::of(&world, &running.job, &running.profiles);
        for vertex in &mut graph.vertices {
            if let Some(share) = plan.shares.get(&vertex.name) {
                vertex.cores = if share.cpu.0 == 0 { f64::INFINITY } else { f64::from(share.cpu.0) / 1000.0 };
            }
        }
        let node_of = |name| world.index(plan.placement.get(name)?);
        let nodes = graph.vertices.iter().map(|vertex| node_of(&vertex.name)).collect::<Option<Vec<_>>>()?;
        let flows = flows(&world, &graph, plan)?;
        let others: Vec<Held<'a>> =
            snapshot.running.iter().filter(|other| other.job.name != *job).map(Held::of).collect();
        let without = Ledger::of(&world, others.iter());
        let own = Held::of(running);
        let with = Ledger::of(&world, others.iter().chain([&own]));
        Some(Self { world, graph, plan, nodes, flows, others, without, with })
    }

    pub(super) fn case(&self) -> Case<'_> {
        Case { world: &self.world, graph: &self.graph, ledger: &self.without }
    }

    /// The throughput of the plan as it stands, and what sets it.
    pub(super) fn limit(&self) -> (f64, Limiter) {
        let case = self.case();
        let compute = compute_limit(&case, &self.nodes);
        let start = (compute.items_per_s, compute.by);
        self.flows.iter().enumerate().fold(start, |least, (index, flow)| {
            let items = flow.rate / case.wire_bits(&flow.edge);
            if items < least.0 { (items, Limiter::Flow(index)) } else { least }
        })
    }

    /// Per pool, what the job could have with its own released. Jobs whose spare rates are given back on
    /// demand count with what they need.
    pub(super) fn available(&self) -> Vec<f64> {
        let mut left = self.world.capacity.clone();
        for other in &self.others {
            let elastic = other.plan.profile == Strategy::Edgeloom.name();
            for flow in &other.plan.flows {
                #[expect(clippy::cast_precision_loss, reason = "bytes an item stay far below 2^52")]
                let bits = flow.volume.0.max(1) as f64 * 8.0 / self.world.goodput;
                let rate = flow.rate.as_f64();
                let held = if elastic { rate.min(bits * other.plan.prediction.items_per_s) } else { rate };
                self.world.pools_of(&flow.path).into_iter().for_each(|pool| left[pool] -= held);
            }
        }
        left.iter_mut().for_each(|left| *left = left.max(0.0));
        left
    }
}

fn flows(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Option<Vec<Routed>> {
    let find = |name: &TaskName| graph.vertices.iter().position(|vertex| vertex.name == *name);
    let one = |flow: &crate::plan::FlowPlan| {
        let (from, to) = (find(&flow.id.from)?, find(&flow.id.to)?);
        let edge = graph.edges.iter().find(|edge| (edge.from, edge.to) == (from, to))?;
        let hop =
            |hop: &[edgeloom_common::ids::NodeId]| world.arc(world.index(&hop[0])?, world.index(&hop[1])?);
        let path = flow.path.windows(2).map(hop).collect::<Option<_>>()?;
        Some(Routed { edge: *edge, path, rate: flow.rate.as_f64() })
    };
    plan.flows.iter().map(one).collect()
}
