//! The answer to a what-if: one row a profile, in it each job.

use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::{FlowPlan, Reason, Share, Unplaced};
use edgeloom_sched::snapshot::Running;
use serde::Serialize;
use std::collections::BTreeMap;

use super::Settings;
use crate::simulation::Simulation;
use crate::statistics::{geometric_mean, mean, mean_of_least};

const GEOMEAN_FLOOR: f64 = 1e-6;

/// Its rows are by profile as in the settings.
pub type Answer = crate::Experiment<Settings, Row, Timing>;

/// One profile. Jobs that wait count as nothing in the means; jobs that nothing holds up are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub profile: String,
    pub items_per_s_mean: f64,
    pub items_per_s_geomean: f64,
    pub items_per_s_worst5: f64,
    pub items_per_s_sum: f64,
    pub waiting_jobs: usize,
    pub migrations: usize,
    pub reroutes: usize,
    pub jobs: Vec<JobRow>,
    pub waiting: Vec<WaitingRow>,
}

/// A job that was placed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRow {
    pub job: JobName,
    pub items_per_s_predicted: f64,
    /// None: neither work, flow nor source holds it up.
    pub items_per_s_simulated: Option<f64>,
    pub bound: Bound,
    pub bound_by: String,
    pub placement: BTreeMap<TaskName, NodeId>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<TaskName, Share>,
    pub flows: Vec<FlowRow>,
    /// The scheduler's words.
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowRow {
    pub from: TaskName,
    pub to: TaskName,
    pub path: Vec<NodeId>,
    /// On the wire.
    pub rate_bps: u64,
}

/// A job that was not placed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitingRow {
    pub job: JobName,
    /// The task that found no node.
    pub task: TaskName,
    /// It would find none on the empty cluster either.
    pub never: bool,
    /// Why not, node by node.
    pub reasons: Vec<Reason>,
}

/// How long decisions took here and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    pub profile: String,
    pub decision_ms_mean: f64,
    pub decision_ms_max: f64,
}

impl Row {
    /// What runs and what waits now.
    pub(super) fn of(profile: &str, simulation: &Simulation<'_>) -> Self {
        let mut jobs: Vec<JobRow> =
            simulation.running().into_iter().map(|(running, items)| JobRow::of(running, items)).collect();
        jobs.sort_by(|x, y| x.job.cmp(&y.job));
        let waiting: Vec<WaitingRow> = simulation.unplaced().iter().map(WaitingRow::of).collect();
        let placed = jobs.iter().filter_map(|job| job.items_per_s_simulated);
        let items: Vec<f64> = placed.chain(waiting.iter().map(|_| 0.0)).collect();
        Self {
            profile: profile.to_owned(),
            items_per_s_mean: mean(&items),
            items_per_s_geomean: geometric_mean(&items, GEOMEAN_FLOOR),
            items_per_s_worst5: mean_of_least(&items, 5),
            items_per_s_sum: items.iter().sum(),
            waiting_jobs: waiting.len(),
            migrations: 0,
            reroutes: 0,
            jobs,
            waiting,
        }
    }
}

impl JobRow {
    fn of(running: &Running, items: f64) -> Self {
        let plan = &running.plan;
        Self {
            job: plan.job.clone(),
            items_per_s_predicted: plan.prediction.items_per_s,
            items_per_s_simulated: Some(items).filter(|items| items.is_finite()),
            bound: plan.prediction.bound,
            bound_by: plan.prediction.bound_by.clone(),
            placement: plan.placement.clone(),
            shares: plan.shares.clone(),
            flows: plan.flows.iter().map(FlowRow::of).collect(),
            reasons: plan.reasons.clone(),
        }
    }
}

impl FlowRow {
    fn of(flow: &FlowPlan) -> Self {
        let (from, to) = (flow.id.from.clone(), flow.id.to.clone());
        Self { from, to, path: flow.path.clone(), rate_bps: flow.rate.0 }
    }
}

impl WaitingRow {
    fn of(unplaced: &Unplaced) -> Self {
        Self {
            job: unplaced.job.clone(),
            task: unplaced.task.clone(),
            never: unplaced.never,
            reasons: unplaced.reasons.clone(),
        }
    }
}

impl Timing {
    pub(super) fn of(profile: &str, decision_ms: &[f64]) -> Self {
        Self {
            profile: profile.to_owned(),
            decision_ms_mean: mean(decision_ms),
            decision_ms_max: decision_ms.iter().copied().fold(0.0, f64::max),
        }
    }
}
