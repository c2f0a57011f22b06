//! Runs summed up: one row a profile and point, means over seeds with their 95% intervals.

use serde::Serialize;
use std::collections::BTreeMap;

use super::{Ratios, Settings};
use crate::simulation::Outcome;
use crate::statistics::{ci95, geometric_mean, mean, mean_of_least};

/// What a job without items counts as in a geometric mean.
const GEOMEAN_FLOOR: f64 = 1e-6;
/// Jobs of the mean of the worst.
const WORST: usize = 5;
/// The profiles that ratios compare with: the first that takes part.
const COMPARED_WITH: [&str; 2] = ["otfa", "otfs"];

/// Its rows are by point of the sweep, then by profile as in the settings.
pub type Experiment = crate::Experiment<Settings, Row, Timing>;

/// One profile: means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub profile: String,
    /// The value of the swept setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<f64>,
    pub items_per_s_mean: f64,
    pub items_per_s_geomean: f64,
    pub items_per_s_worst5: f64,
    pub wait_s_mean: f64,
    /// Jobs never placed.
    pub waiting_jobs: f64,
    /// Times that tasks of a running job were moved, and that only its flows were.
    pub migrations: f64,
    pub reroutes: f64,
    /// Half widths of the 95% intervals of the means above; none with one seed.
    pub ci95: BTreeMap<&'static str, Option<f64>>,
    /// Over `otfa`, where that takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_to_otfa: Option<Ratios>,
    /// Over `otfs`, where that takes part and `otfa` does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_to_otfs: Option<Ratios>,
}

/// How long decisions took here and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    pub profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<f64>,
    pub decision_ms_mean: f64,
    pub decision_ms_max: f64,
}

/// Each metric, one value a seed.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) mean: Vec<f64>,
    pub(super) geomean: Vec<f64>,
    pub(super) worst5: Vec<f64>,
    pub(super) wait_s: Vec<f64>,
    waiting: Vec<f64>,
    migrations: Vec<f64>,
    reroutes: Vec<f64>,
}

/// Sums up outcomes that are in the order of points, profiles and seeds.
pub(super) fn report(settings: &Settings, outcomes: &[Outcome]) -> Experiment {
    let profiles = &settings.profiles;
    let by_profile: Vec<&[Outcome]> = outcomes.chunks(outcomes.len() / groups(settings)).collect();
    let (mut rows, mut timing) = (Vec::new(), Vec::new());
    for (point, groups) in by_profile.chunks(profiles.len()).enumerate() {
        let sweep = settings.sweep.as_ref().map(|sweep| sweep.values[point]);
        let summaries: Vec<Summary> = groups.iter().map(|group| Summary::of(group)).collect();
        let named = |name: &str| profiles.iter().position(|profile| profile == name);
        let compared = COMPARED_WITH.into_iter().find_map(|name| Some((name, &summaries[named(name)?])));
        for (profile, summary) in profiles.iter().zip(&summaries) {
            rows.push(summary.row(profile, sweep, compared));
        }
        timing.extend(profiles.iter().zip(groups).map(|(profile, group)| Timing::of(profile, sweep, group)));
    }
    Experiment { experiment: "streaming", seeds: settings.seeds, settings: settings.clone(), rows, timing }
}

fn groups(settings: &Settings) -> usize {
    settings.profiles.len() * settings.sweep.as_ref().map_or(1, |sweep| sweep.values.len())
}

impl Summary {
    #[expect(clippy::cast_precision_loss, reason = "a run has few jobs and changes")]
    fn of(outcomes: &[Outcome]) -> Self {
        let each = |metric: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(metric).collect::<Vec<f64>>();
        Self {
            mean: each(&|one| mean(&one.items_per_s)),
            geomean: each(&|one| geometric_mean(&one.items_per_s, GEOMEAN_FLOOR)),
            worst5: each(&|one| mean_of_least(&one.items_per_s, WORST)),
            wait_s: each(&|one| mean(&one.wait_s)),
            waiting: each(&|one| one.waiting_jobs as f64),
            migrations: each(&|one| one.migrations as f64),
            reroutes: each(&|one| one.reroutes as f64),
        }
    }

    fn row(&self, profile: &str, sweep: Option<f64>, compared: Option<(&str, &Summary)>) -> Row {
        let ratio_to = |name: &str| {
            compared.filter(|(compared, _)| *compared == name).map(|(_, other)| Ratios::of(self, other))
        };
        Row {
            profile: profile.to_owned(),
            sweep,
            items_per_s_mean: mean(&self.mean),
            items_per_s_geomean: mean(&self.geomean),
            items_per_s_worst5: mean(&self.worst5),
            wait_s_mean: mean(&self.wait_s),
            waiting_jobs: mean(&self.waiting),
            migrations: mean(&self.migrations),
            reroutes: mean(&self.reroutes),
            ci95: BTreeMap::from([
                ("items_per_s_mean", ci95(&self.mean)),
                ("items_per_s_geomean", ci95(&self.geomean)),
                ("items_per_s_worst5", ci95(&self.worst5)),
                ("wait_s_mean", ci95(&self.wait_s)),
                ("waiting_jobs", ci95(&self.waiting)),
                ("migrations", ci95(&self.migrations)),
                ("reroutes", ci95(&self.reroutes)),
            ]),
            ratio_to_otfa: ratio_to("otfa"),
            ratio_to_otfs: ratio_to("otfs"),
        }
    }
}

impl Timing {
    fn of(profile: &str, sweep: Option<f64>, outcomes: &[Outcome]) -> Self {
        let all: Vec<f64> = outcomes.iter().flat_map(|one| one.decision_ms.iter().copied()).collect();
        Self {
            profile: profile.to_owned(),
            sweep,
            decision_ms_mean: mean(&all),
            decision_ms_max: all.iter().copied().fold(0.0, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(items_per_s: f64) -> Outcome {
        Outcome { items_per_s: vec![items_per_s], wait_s: vec![0.0], ..Outcome::default() }
    }

    fn rows(profiles: [&str; 3]) -> Vec<Row> {
        let profiles = profiles.map(str::to_owned).to_vec();
        let settings = Settings { seeds: 2, profiles, ..Settings::default() };
        report(&settings, &[1.0, 1.0, 2.0, 4.0, 3.0, 3.0].map(outcome)).rows
    }

    #[test]
    fn ratios_are_to_otfa_where_it_takes_part_and_else_to_otfs() {
        let both = rows(["otfs", "otfa", "edgeloom"]);
        assert!(both.iter().all(|row| row.ratio_to_otfs.is_none()));
        let to_otfa: Vec<f64> =
            both.iter().map(|row| row.ratio_to_otfa.as_ref().unwrap().mean.mean).collect();
        // Seed by seed: 1/2 and 1/4, then itself, then 3/2 and 3/4.
        assert_eq!(to_otfa, [0.375, 1.0, 1.125]);
        let without = rows(["otfs", "lr", "edgeloom"]);
        assert!(without.iter().all(|row| row.ratio_to_otfa.is_none() && row.ratio_to_otfs.is_some()));
        let neither = rows(["tp", "lr", "edgeloom"]);
        assert!(neither.iter().all(|row| row.ratio_to_otfa.is_none() && row.ratio_to_otfs.is_none()));
    }
}
