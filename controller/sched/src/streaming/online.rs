//! Algorithm 3 for one job: allocate, then route and give bandwidth over what others leave.
//!
//! OTFS never touches running jobs. `edgeloom` may lower or raise the rates of jobs it placed itself, so
//! that a newcomer gets its fair part of a full link; their tasks and paths stay.

use edgeloom_common::ids::FlowId;
use edgeloom_common::units::{BitRate, Bytes};
use std::collections::BTreeMap;

use super::allocation::{MissingBytes, allocate};
use super::baseline::{Ranking, equal_shares, whole_job};
use super::jrba::jrba;
use super::params::{PAPER, PRINTED};
use super::predict::predict;
use super::{Case, Placed, Routed, Stuck, search, share};
use crate::filter::Fit;
use crate::ledger::HeldJobs;
use crate::plan::{FlowPlan, JobPlan};
use crate::world::World;

/// What a profile does with a streaming job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    Edgeloom,
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
    missing: &MissingBytes,
) -> Result<Outcome, Stuck> {
    let placed = match strategy {
        Strategy::Edgeloom => return search_and_share(case, others, missing),
        Strategy::Otfs | Strategy::Tp => allocate(case, PAPER, missing)?,
        Strategy::OtfsStrict => allocate(case, PRINTED, missing)?,
        Strategy::Lr => whole_job(case, Ranking::LargestFreeShare)?,
        Strategy::Br => whole_job(case, Ranking::LeastDeviation)?,
    };
    let flows = match strategy {
        Strategy::Tp => equal_shares(case, &placed.nodes),
        _ => jrba(case, &placed.nodes),
    };
    let flows = flows.ok_or_else(|| no_bandwidth(case, &placed.nodes))?;
    Ok(Outcome { plan: plan(case, strategy, placed, flows), changed: Vec::new() })
}

/// The `edgeloom` profile: placement by the true prediction, then fair shares for all its jobs.
fn search_and_share(
    case: &Case<'_>,
    others: &HeldJobs<'_>,
    missing: &MissingBytes,
) -> Result<Outcome, Stuck> {
    let room = share::Room::of(case.world, others);
    let found = search::search(case, &room.for_newcomer(), missing)?;
    let settled = room.settle(case, &found.placed.nodes, found.flows);
    let Some((flows, changed)) = settled else {
        return Err(no_bandwidth(case, &found.placed.nodes));
    };
    Ok(Outcome { plan: plan(case, Strategy::Edgeloom, found.placed, flows), changed })
}

/// Shares what departed jobs left among the running jobs of the `edgeloom` profile.
pub(crate) fn rebalance(world: &World<'_>, held: &HeldJobs<'_>) -> Vec<JobPlan> {
    share::Room::of(world, held).rebalance()
}

/// The plan in the words of the contract; rates are whole bits a second, rounded down.
fn plan(case: &Case<'_>, strategy: Strategy, placed: Placed, mut flows: Vec<Routed>) -> JobPlan {
    flows.iter_mut().for_each(|flow| flow.rate = flow.rate.floor().max(1.0));
    let prediction = predict(case, &placed.nodes, &flows);
    let mut reasons = placed.reasons;
    reasons.extend(flows.iter().map(|flow| flow_reason(case, flow)));
    reasons
        .push(format!("{:.3} items/s predicted, bound by {}", prediction.items_per_s, prediction.bound_by));
    let vertices = case.graph.vertices.iter().zip(&placed.nodes);
    JobPlan {
        job: case.graph.job.name.clone(),
        profile: strategy.name().to_owned(),
        placement: vertices
            .map(|(vertex, node)| (vertex.name.clone(), case.world.name(*node).clone()))
            .collect(),
        shares: BTreeMap::new(),
        flows: flows.iter().map(|flow| flow_plan(case, flow)).collect(),
        prediction,
        reasons,
    }
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

/// The first receiving task is the one in the way; nodes that would have had room lack bandwidth.
pub(crate) fn no_bandwidth(case: &Case<'_>, nodes: &[usize]) -> Stuck {
    let vertex = case.flows(nodes).iter().map(|edge| edge.to).min().unwrap_or(0);
    let text = || "no bandwidth is left on the paths of the job's flows".to_owned();
    let refusals = case.refusals(vertex, case.ledger, Fit::AtLeast);
    Stuck { vertex, refusals: refusals.into_iter().map(|refusal| refusal.unwrap_or_else(text)).collect() }
}
