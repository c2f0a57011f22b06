//! What the disturbances led to.

use crate::checks::{self, Checks, print_table};
use edgeloom_common::view::JobView;
use serde::Serialize;

/// A new plan that the controller made.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ReplanRow {
    /// Seconds since the disturbance began.
    after_s: f64,
    text: String,
}

/// One scenario.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ScenarioRow {
    scenario: String,
    job: String,
    profile: String,
    /// New plans as the events tell them.
    replans: Vec<ReplanRow>,
    /// New plans as the job's own count tells them.
    replans_counted: u32,
    items_per_s_predicted_before: f64,
    items_per_s_measured_before: f64,
    /// From the beginning of the disturbance to the end of the scenario.
    items_per_s_measured_during: f64,
    items_per_s_predicted_after: f64,
    items_per_s_measured_after: f64,
}

impl ScenarioRow {
    /// From the job and its items a second, before and after.
    pub(crate) fn new(
        before: (JobView, f64),
        after: (JobView, f64),
        replans: Vec<(f64, String)>,
        during: f64,
    ) -> Self {
        let predicted =
            |view: &JobView| view.prediction.as_ref().map_or(0.0, |found| found.items_per_s_predicted);
        Self {
            scenario: String::new(),
            job: after.0.name.to_string(),
            replans: replans.into_iter().map(|(after_s, text)| ReplanRow { after_s, text }).collect(),
            replans_counted: after.0.replans.saturating_sub(before.0.replans),
            items_per_s_predicted_before: predicted(&before.0),
            items_per_s_measured_before: before.1,
            items_per_s_measured_during: during,
            items_per_s_predicted_after: predicted(&after.0),
            items_per_s_measured_after: after.1,
            profile: after.0.profile,
        }
    }

    pub(crate) fn named(self, scenario: &str) -> Self {
        Self { scenario: scenario.to_owned(), ..self }
    }

    /// New plans, by whichever account tells of more.
    pub(crate) fn replans(&self) -> usize {
        self.replans.len().max(self.replans_counted as usize)
    }

    pub(crate) fn miss_after(&self) -> f64 {
        (self.items_per_s_measured_after / self.items_per_s_predicted_after - 1.0).abs()
    }
}

/// All scenarios.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) verdict: Checks,
    pub(crate) rows: Vec<ScenarioRow>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    pub(crate) fn print(&self) {
        println!();
        let line = |row: &ScenarioRow| {
            let pair = |predicted: f64, measured: f64| format!("{predicted:.2} / {measured:.2}");
            let moments: Vec<String> =
                row.replans.iter().map(|one| format!("{:.0} s", one.after_s)).collect();
            vec![
                row.scenario.clone(),
                row.job.clone(),
                pair(row.items_per_s_predicted_before, row.items_per_s_measured_before),
                format!("{:.2}", row.items_per_s_measured_during),
                pair(row.items_per_s_predicted_after, row.items_per_s_measured_after),
                format!("{} {}", row.replans(), moments.join(", ")),
            ]
        };
        let lines: Vec<Vec<String>> = self.rows.iter().map(line).collect();
        print_table(
            &["scenario", "job", "before: predicted / items/s", "during", "after", "new plans"],
            &lines,
        );
        println!();
    }
}
