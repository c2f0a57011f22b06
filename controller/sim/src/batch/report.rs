//! What came of the runs: one row a profile.

use serde::Serialize;
use std::collections::BTreeMap;

use super::{Outcome, Scenario, Settings};
use crate::statistics::{ci95, mean, quantile};
use crate::streaming::Ratio;

/// Others are compared with it, container by container: the paper's own baseline.
const PAPER_BASELINE: &str = "kube-blocking";
/// Others are compared with it, seed by seed: what is in use.
const BASELINE: &str = "kube";
/// A factor that counts as a difference.
const DIFFERENCE: f64 = 1e-6;

/// Its rows are by profile as in the settings.
pub type Experiment = crate::Experiment<Settings, Row, Timing>;

/// Means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub profile: String,
    /// Containers that found a machine.
    pub scheduled: f64,
    /// Of the first round, where the profile is a flow and everything comes at once.
    pub cost: Option<f64>,
    /// Mean of CPU and memory in use over what there is.
    pub utilisation: f64,
    /// From arrival to end; none where only one decision is made.
    pub completion_s_mean: Option<f64>,
    pub completion_s_p50: Option<f64>,
    pub completion_s_p99: Option<f64>,
    /// Half the width of the 95% interval of each mean.
    pub ci95: BTreeMap<&'static str, Option<f64>>,
    pub improvement: Option<Improvement>,
    /// Over those of `kube`, paired by seed.
    pub completion_mean_to_kube: Option<Ratio>,
    pub completion_p99_to_kube: Option<Ratio>,
    /// No other profile here has both a shorter mean and a shorter 99th percentile; none where only one decision is made.
    pub unbeaten: Option<bool>,
}

/// How many times longer containers take with `kube-blocking`, over all containers of all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Improvement {
    pub p50: f64,
    pub p60: f64,
    pub p80: f64,
    /// Of each tenth, from 10% to 90%.
    pub deciles: [f64; 9],
    /// Parts of the containers that are done sooner, and later.
    pub sooner: f64,
    pub later: f64,
}

/// How long decisions took here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    pub profile: String,
    pub decision_ms_mean: f64,
    pub decision_ms_max: f64,
    /// Of the first round, where the profile is a flow and everything comes at once.
    pub build_ms: Option<f64>,
    pub solve_ms: Option<f64>,
}

/// Runs by profile, then by seed.
pub(super) fn report(settings: &Settings, outcomes: &[Outcome]) -> Experiment {
    let profiles = &settings.profiles;
    let groups: Vec<&[Outcome]> = outcomes.chunks(outcomes.len() / profiles.len().max(1)).collect();
    let summaries: Vec<Summary> = groups.iter().map(|group| Summary::of(settings, group)).collect();
    let named = |name: &str| profiles.iter().position(|profile| profile == name);
    let rows = profiles.iter().enumerate().map(|(at, profile)| {
        let mut row = summaries[at].row(profile);
        if settings.scenario == Scenario::OneShot {
            return row;
        }
        row.improvement = named(PAPER_BASELINE).and_then(|base| improvement(groups[base], groups[at]));
        if let Some(base) = named(BASELINE) {
            let ratio = |own: &[f64], other: &[f64]| Some(Ratio::of(own, other, f64::MIN_POSITIVE));
            row.completion_mean_to_kube = ratio(&summaries[at].mean_s, &summaries[base].mean_s);
            row.completion_p99_to_kube = ratio(&summaries[at].p99_s, &summaries[base].p99_s);
        }
        row.unbeaten = Some(!summaries.iter().any(|other| other.beats(&summaries[at])));
        row
    });
    Experiment {
        experiment: "batch",
        seeds: settings.seeds,
        settings: settings.clone(),
        rows: rows.collect(),
        timing: profiles.iter().zip(&groups).map(|(profile, group)| timing(profile, group)).collect(),
    }
}

/// One number a seed.
struct Summary {
    scheduled: Vec<f64>,
    cost: Vec<f64>,
    utilisation: Vec<f64>,
    mean_s: Vec<f64>,
    p50_s: Vec<f64>,
    p99_s: Vec<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "counts are small and costs need no 53 bits")]
impl Summary {
    fn of(settings: &Settings, outcomes: &[Outcome]) -> Self {
        let each = |metric: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(metric).collect::<Vec<f64>>();
        let completions = |metric: &dyn Fn(&[f64]) -> f64| {
            if settings.scenario == Scenario::OneShot {
                return Vec::new();
            }
            each(&|one| metric(&one.run.completion_s.iter().flatten().copied().collect::<Vec<f64>>()))
        };
        Self {
            scheduled: each(&|one| one.run.scheduled as f64),
            cost: outcomes.iter().filter_map(|one| Some(one.flow?.cost as f64)).collect(),
            utilisation: each(&|one| one.run.utilisation),
            mean_s: completions(&|all| mean(all)),
            p50_s: completions(&|all| quantile(all, 0.5)),
            p99_s: completions(&|all| quantile(all, 0.99)),
        }
    }

    /// In the mean and in the 99th percentile, over all seeds.
    fn beats(&self, other: &Self) -> bool {
        mean(&self.mean_s) < mean(&other.mean_s) && mean(&self.p99_s) < mean(&other.p99_s)
    }

    fn row(&self, profile: &str) -> Row {
        let some = |samples: &[f64]| (!samples.is_empty()).then(|| mean(samples));
        let samples = [
            ("scheduled", &self.scheduled),
            ("cost", &self.cost),
            ("utilisation", &self.utilisation),
            ("completion_s_mean", &self.mean_s),
            ("completion_s_p50", &self.p50_s),
            ("completion_s_p99", &self.p99_s),
        ];
        Row {
            profile: profile.to_owned(),
            scheduled: mean(&self.scheduled),
            cost: some(&self.cost),
            utilisation: mean(&self.utilisation),
            completion_s_mean: some(&self.mean_s),
            completion_s_p50: some(&self.p50_s),
            completion_s_p99: some(&self.p99_s),
            ci95: samples.into_iter().map(|(key, samples)| (key, ci95(samples))).collect(),
            improvement: None,
            completion_mean_to_kube: None,
            completion_p99_to_kube: None,
            unbeaten: None,
        }
    }
}

/// Containers that ran under both.
#[expect(clippy::cast_precision_loss, reason = "containers are few")]
fn improvement(base: &[Outcome], own: &[Outcome]) -> Option<Improvement> {
    let pairs =
        base.iter().zip(own).flat_map(|(base, own)| base.run.completion_s.iter().zip(&own.run.completion_s));
    let factors: Vec<f64> = pairs.filter_map(|(base, own)| Some((*base)? / (*own)?)).collect();
    if factors.is_empty() {
        return None;
    }
    let part = |counts: &dyn Fn(f64) -> bool| {
        factors.iter().filter(|factor| counts(**factor)).count() as f64 / factors.len() as f64
    };
    Some(Improvement {
        p50: quantile(&factors, 0.5),
        p60: quantile(&factors, 0.6),
        p80: quantile(&factors, 0.8),
        deciles: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9].map(|part| quantile(&factors, part)),
        sooner: part(&|factor| factor > 1.0 + DIFFERENCE),
        later: part(&|factor| factor < 1.0 - DIFFERENCE),
    })
}

fn timing(profile: &str, outcomes: &[Outcome]) -> Timing {
    let all: Vec<f64> = outcomes.iter().flat_map(|one| one.run.decision_ms.iter().copied()).collect();
    let flows = |metric: &dyn Fn(&super::Flow) -> f64| {
        let samples: Vec<f64> = outcomes.iter().filter_map(|one| one.flow.as_ref().map(metric)).collect();
        (!samples.is_empty()).then(|| mean(&samples))
    };
    Timing {
        profile: profile.to_owned(),
        decision_ms_mean: mean(&all),
        decision_ms_max: all.iter().copied().fold(0.0, f64::max),
        build_ms: flows(&|flow| flow.build_ms),
        solve_ms: flows(&|flow| flow.solve_ms),
    }
}
