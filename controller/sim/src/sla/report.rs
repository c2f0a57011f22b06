//! Runs summed up: one row a pattern and policy, means over seeds with their 95% intervals.

use edgeloom_common::job::Service;
use serde::Serialize;
use std::collections::BTreeMap;

use super::run::Outcome;
use super::settings::CONTAINERS;
use super::{Pattern, Policy, Settings};
use crate::statistics::{ci95, mean};

/// Its rows are by pattern as in the settings, then by policy.
pub type Experiment = crate::Experiment<Settings, Row, Timing>;

/// One policy over one pattern: means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub profile: &'static str,
    pub pattern: Pattern,
    /// Cores of a container; none where the pattern has no container of the class.
    pub mean_cores_premium: Option<f64>,
    pub mean_cores_advanced: Option<f64>,
    pub mean_cores_best_effort: Option<f64>,
    /// Seconds from submission to execution.
    pub wait_s_premium: Option<f64>,
    pub wait_s_advanced: Option<f64>,
    pub wait_s_best_effort: Option<f64>,
    /// Seconds from submission to the end.
    pub completion_s_mean: f64,
    /// When the last container has ended.
    pub makespan_s: f64,
    /// Containers that were never executed.
    pub never: f64,
    /// Half widths of the 95% intervals of the means above; none with one seed.
    pub ci95: BTreeMap<&'static str, Option<f64>>,
    /// The order of execution with the first seed.
    pub order: Vec<Started>,
}

/// A container that was executed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Started {
    /// By submission.
    pub container: usize,
    pub service: Service,
    pub submitted_s: f64,
    pub started_s: f64,
    pub ends_s: f64,
    pub cores: f64,
    pub copies: usize,
}

/// How long decisions took here and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    pub profile: &'static str,
    pub pattern: Pattern,
    pub decision_ms_mean: f64,
    pub decision_ms_max: f64,
}

/// Sums up outcomes that are in the order of patterns, policies and seeds.
pub(super) fn report(settings: &Settings, outcomes: &[Outcome]) -> Experiment {
    let pairs = settings.patterns.iter().flat_map(|pattern| Policy::ALL.map(|policy| (*pattern, policy)));
    let groups = outcomes.chunks(outcomes.len() / (settings.patterns.len() * Policy::ALL.len()));
    let (mut rows, mut timing) = (Vec::new(), Vec::new());
    for ((pattern, policy), group) in pairs.zip(groups) {
        rows.push(row(pattern, policy, group));
        let all: Vec<f64> = group.iter().flat_map(|one| one.decision_ms.iter().copied()).collect();
        timing.push(Timing {
            profile: policy.name(),
            pattern,
            decision_ms_mean: mean(&all),
            decision_ms_max: all.into_iter().fold(0.0, f64::max),
        });
    }
    Experiment { experiment: "sla", seeds: settings.seeds, settings: settings.clone(), rows, timing }
}

fn row(pattern: Pattern, policy: Policy, group: &[Outcome]) -> Row {
    let mut intervals = BTreeMap::new();
    let mut over_seeds = |key: &'static str, metric: &dyn Fn(&Outcome) -> Option<f64>| {
        let values: Option<Vec<f64>> = group.iter().map(metric).collect();
        intervals.insert(key, values.as_deref().and_then(ci95));
        values.map(|values| mean(&values))
    };
    let cores = |one: &Started| one.cores;
    let wait = |one: &Started| one.started_s - one.submitted_s;
    let [premium, advanced, best_effort] = Service::ALL;
    Row {
        profile: policy.name(),
        pattern,
        mean_cores_premium: over_seeds("mean_cores_premium", &|run| run.mean_of(premium, cores)),
        mean_cores_advanced: over_seeds("mean_cores_advanced", &|run| run.mean_of(advanced, cores)),
        mean_cores_best_effort: over_seeds("mean_cores_best_effort", &|run| run.mean_of(best_effort, cores)),
        wait_s_premium: over_seeds("wait_s_premium", &|run| run.mean_of(premium, wait)),
        wait_s_advanced: over_seeds("wait_s_advanced", &|run| run.mean_of(advanced, wait)),
        wait_s_best_effort: over_seeds("wait_s_best_effort", &|run| run.mean_of(best_effort, wait)),
        completion_s_mean: over_seeds("completion_s_mean", &|run| Some(run.completion_s())).unwrap_or(0.0),
        makespan_s: over_seeds("makespan_s", &|run| Some(run.makespan_s())).unwrap_or(0.0),
        never: over_seeds("never", &|run| Some(run.never())).unwrap_or(0.0),
        ci95: intervals,
        order: group.first().map(|run| run.started.clone()).unwrap_or_default(),
    }
}

impl Outcome {
    /// Over the containers of a service; none where there is none.
    fn mean_of(&self, service: Service, metric: impl Fn(&Started) -> f64) -> Option<f64> {
        let own = self.started.iter().filter(|one| one.service == service);
        let values: Vec<f64> = own.map(metric).collect();
        (!values.is_empty()).then(|| mean(&values))
    }

    fn completion_s(&self) -> f64 {
        mean(&self.started.iter().map(|one| one.ends_s - one.submitted_s).collect::<Vec<f64>>())
    }

    fn makespan_s(&self) -> f64 {
        self.started.iter().map(|one| one.ends_s).fold(0.0, f64::max)
    }

    #[expect(clippy::cast_precision_loss, reason = "90 containers")]
    fn never(&self) -> f64 {
        (CONTAINERS - self.started.len()) as f64
    }
}
