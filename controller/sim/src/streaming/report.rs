//! Runs summed up: one row a profile, means over seeds with their 95% intervals, ratios paired by seed.

use serde::Serialize;
use std::collections::BTreeMap;

use super::Settings;
use super::run::Outcome;
use crate::statistics::{ci95, geometric_mean, mean, mean_of_least};

/// What a job without items counts as in a geometric mean.
const GEOMEAN_FLOOR: f64 = 1e-6;
/// The profile that ratios compare with.
const COMPARED_WITH: &str = "otfs";

/// The whole experiment; all but `timing` is the same for the same seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    pub experiment: &'static str,
    pub seeds: u64,
    pub settings: Settings,
    pub rows: Vec<Row>,
    pub timing: Vec<Timing>,
}

/// One profile: means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub profile: String,
    pub items_per_s_mean: f64,
    pub items_per_s_geomean: f64,
    pub items_per_s_worst5: f64,
    pub wait_s_mean: f64,
    /// Jobs never placed.
    pub waiting_jobs: f64,
    /// Half widths of the 95% intervals of the means above; none with one seed.
    pub ci95: BTreeMap<&'static str, Option<f64>>,
    /// Mean throughput over that of `otfs`, seed by seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_to_otfs: Option<Interval>,
}

/// A mean with half the width of its 95% interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    pub mean: f64,
    pub ci95: Option<f64>,
}

/// How long decisions took here and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    pub profile: String,
    pub decision_ms_mean: f64,
    pub decision_ms_max: f64,
}

/// Sums up.
pub(super) fn report(settings: &Settings, runs: Vec<(String, Vec<Outcome>)>) -> Experiment {
    let means =
        |outcomes: &[Outcome]| outcomes.iter().map(|one| mean(&one.items_per_s)).collect::<Vec<f64>>();
    let compared = runs.iter().find(|(name, _)| name == COMPARED_WITH).map(|(_, outcomes)| means(outcomes));
    let rows = runs.iter().map(|(name, outcomes)| row(name, outcomes, compared.as_deref())).collect();
    let timing = runs.iter().map(|(name, outcomes)| timing(name, outcomes)).collect();
    Experiment { experiment: "streaming", seeds: settings.seeds, settings: settings.clone(), rows, timing }
}

fn row(profile: &str, outcomes: &[Outcome], compared: Option<&[f64]>) -> Row {
    let over_seeds = |metric: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(metric).collect::<Vec<f64>>();
    let means = over_seeds(&|one| mean(&one.items_per_s));
    let geomeans = over_seeds(&|one| geometric_mean(&one.items_per_s, GEOMEAN_FLOOR));
    let worst = over_seeds(&|one| mean_of_least(&one.items_per_s, 5));
    let waits = over_seeds(&|one| mean(&one.wait_s));
    #[expect(clippy::cast_precision_loss, reason = "a run has few jobs")]
    let waiting = over_seeds(&|one| one.waiting_jobs as f64);
    let ratio = compared.map(|compared| {
        let ratios: Vec<f64> =
            means.iter().zip(compared).map(|(own, other)| own / other.max(GEOMEAN_FLOOR)).collect();
        Interval { mean: mean(&ratios), ci95: ci95(&ratios) }
    });
    Row {
        profile: profile.to_owned(),
        items_per_s_mean: mean(&means),
        items_per_s_geomean: mean(&geomeans),
        items_per_s_worst5: mean(&worst),
        wait_s_mean: mean(&waits),
        waiting_jobs: mean(&waiting),
        ci95: BTreeMap::from([
            ("items_per_s_mean", ci95(&means)),
            ("items_per_s_geomean", ci95(&geomeans)),
            ("items_per_s_worst5", ci95(&worst)),
            ("wait_s_mean", ci95(&waits)),
            ("waiting_jobs", ci95(&waiting)),
        ]),
        ratio_to_otfs: ratio,
    }
}

fn timing(profile: &str, outcomes: &[Outcome]) -> Timing {
    let all: Vec<f64> = outcomes.iter().flat_map(|one| one.decision_ms.iter().copied()).collect();
    Timing {
        profile: profile.to_owned(),
        decision_ms_mean: mean(&all),
        decision_ms_max: all.iter().copied().fold(0.0, f64::max),
    }
}
