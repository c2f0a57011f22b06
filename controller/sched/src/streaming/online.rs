//! Algorithm 3 for one job: allocate, then route and give bandwidth over what others leave.
//!
//! OTFS, LR and BR never touch running jobs; `together` holds the profiles that route all their jobs anew,
//! `joint` the one that may also move their tasks.

use edgeloom_common::ids::{FlowId, TaskName};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use std::collections::BTreeMap;

use super::allocation::allocate;
use super::baseline::{Ranking, whole_job};
use super::jrba::jrba;
use super::params::{PAPER, PRINTED};
use super::predict::predict;
use super::together::Together;
use super::{Case, Placed, Routed, Stuck, joint};
use crate::filter::Fit;
use crate::images::PullCosts;
use crate::ledger::HeldJobs;
use crate::plan::{FlowPlan, JobPlan, Share};
use crate::world::World;

/// What a profile does with a streaming job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    Edgeloom,
    Otfa,
    Otfs,
    OtfsStrict,
    Lr,
    Br,
    Tp,
}

impl Strategy {
    /// The profile's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Edgeloom => "edgeloom",
            Self::Otfa => "otfa",
            Self::Otfs => "otfs",
            Self::OtfsStrict => "otfs-strict",
            Self::Lr => "lr",
            Self::Br => "br",
            Self::Tp => "tp",
        }
    }
}

/// The plan of a job, and the running jobs whose rates make room for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) plan: JobPlan,
    pub(crate) changed: Vec<JobPlan>,
}

/// Places one job and gives it paths and rates, or says which task is in the way.
pub(crate) fn decide_one(
    case: &Case<'_>,
    strategy: Strategy,
    others: &HeldJobs<'_>,
    pulls: &PullCosts,
) -> Result<Outcome, Stuck> {
    let placed = match strategy {
        Strategy::Edgeloom => return joint::newcomer(case, others, pulls),
        Strategy::Otfa | Strategy::Tp => {
            return Together { strategy, world: case.world, others }.place(case, pulls);
        }
        Strategy::Otfs => allocate(case, PAPER, pulls)?,
        Strategy::OtfsStrict => allocate(case, PRINTED, pulls)?,
        Strategy::Lr => whole_job(case, Ranking::LargestFreeShare)?,
        Strategy::Br => whole_job(case, Ranking::LeastDeviation)?,
    };
    give_bandwidth(case, strategy.name(), placed)
}

/// Paths and rates for a placement, over what others leave; nobody else's change.
pub(crate) fn give_bandwidth(case: &Case<'_>, profile: &str, placed: Placed) -> Result<Outcome, Stuck> {
    let flows = jrba(case, &placed.nodes).ok_or_else(|| no_bandwidth(case, &placed.nodes))?;
    Ok(Outcome { plan: plan(case, profile, placed, flows), changed: Vec::new() })
}

/// Plans of running jobs that change when none comes, of the profiles that change any: each looks after its
/// own jobs.
pub(crate) fn rebalance(world: &World<'_>, others: &HeldJobs<'_>) -> Vec<JobPlan> {
    let mut plans = joint::rebalance(world, others);
    for strategy in [Strategy::Otfa, Strategy::Tp] {
        plans.extend(Together { strategy, world, others }.rebalance());
    }
    plans
}

/// The plan in the words of the contract; rates are whole bits a second, rounded down.
pub(super) fn plan(case: &Case<'_>, profile: &str, placed: Placed, mut flows: Vec<Routed>) -> JobPlan {
    flows.iter_mut().for_each(|flow| flow.rate = flow.rate.floor().max(1.0));
    let prediction = predict(case, &placed.nodes, &flows);
    let mut reasons = placed.reasons;
    reasons.extend(flows.iter().map(|flow| flow_reason(case, flow)));
    reasons
        .push(format!("{:.3} items/s predicted, bound by {}", prediction.items_per_s, prediction.bound_by));
    let vertices = case.graph.vertices.iter().zip(&placed.nodes);
    JobPlan {
        job: case.graph.job.name.clone(),
        profile: profile.to_owned(),
        placement: vertices
            .map(|(vertex, node)| (vertex.name.clone(), case.world.name(*node).clone()))
            .collect(),
        shares: shares(case),
        flows: flows.iter().map(|flow| flow_plan(case, flow)).collect(),
        prediction,
        reasons,
    }
}

/// Limits that are not what the document requests: memory by measured peaks, CPU by the job's class.
fn shares(case: &Case<'_>) -> BTreeMap<TaskName, Share> {
    let sized = case.graph.vertices.iter().filter_map(|vertex| {
        let asked = case.graph.job.tasks.get(&vertex.name)?.program.resources;
        let memory = Bytes(vertex.need.memory.max(0).unsigned_abs());
        let cpu = MilliCores(u32::try_from(vertex.need.cpu.max(0)).unwrap_or(u32::MAX));
        let differs = cpu != asked.cpu || memory != asked.memory;
        differs.then(|| (vertex.name.clone(), Share { cpu, memory }))
    });
    sized.collect()
}

fn flow_plan(case: &Case<'_>, flow: &Routed) -> FlowPlan {
    FlowPlan {
        id: FlowId {
            job: case.graph.job.name.clone(),
            from: case.graph.vertices[flow.edge.from].name.clone(),
            to: case.graph.vertices[flow.edge.to].name.clone(),
        },
        path: case.world.names_of(&flow.path),
        rate: whole_bits(flow.rate),
        volume: flow.edge.volume,
    }
}

/// A rate as whole bits a second, rounded down, at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float to integer cast saturates"
)]
pub(crate) fn whole_bits(rate: f64) -> BitRate {
    BitRate((rate as u64).max(1))
}

fn flow_reason(case: &Case<'_>, flow: &Routed) -> String {
    let path: Vec<String> = case.world.names_of(&flow.path).iter().map(ToString::to_string).collect();
    let name = |vertex: usize| &case.graph.vertices[vertex].name;
    let volume: Bytes = flow.edge.volume;
    format!(
        "{}->{} ({volume} an item) by {} at {}",
        name(flow.edge.from),
        name(flow.edge.to),
        path.join(" "),
        whole_bits(flow.rate)
    )
}

/// The first receiving task is the one in the way; nodes that would have had room lack a way or bandwidth.
pub(crate) fn no_bandwidth(case: &Case<'_>, nodes: &[usize]) -> Stuck {
    let vertex = case.flows(nodes).iter().map(|edge| edge.to).min().unwrap_or(0);
    let text = || "no bandwidth is left on the paths of the job's flows".to_owned();
    let mut refusals = case.refusals(vertex, case.ledger, Fit::AtLeast);
    for (node, text) in case.unreached(vertex, nodes) {
        refusals[node].get_or_insert(text);
    }
    Stuck { vertex, refusals: refusals.into_iter().map(|refusal| refusal.unwrap_or_else(text)).collect() }
}
