//! What each profile reached.

use crate::checks::{self, Checks, print_table};
use serde::Serialize;

/// A job under a profile.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct JobRow {
    pub(crate) name: String,
    /// `running`, or what it was instead when the others were measured.
    pub(crate) state: String,
    /// `compute`, `network` or `source`, and which: what sets the pace by the prediction; empty where there
    /// is none.
    pub(crate) bound: String,
    pub(crate) bound_by: String,
    pub(crate) items_per_s_predicted: f64,
    pub(crate) items_per_s_measured: f64,
}

/// All jobs under a profile.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProfileRow {
    pub(crate) profile: String,
    pub(crate) items_per_s_mean: f64,
    pub(crate) items_per_s_geomean: f64,
    /// Mean over the reference profile's mean; none without the reference.
    pub(crate) ratio: Option<f64>,
    pub(crate) jobs: Vec<JobRow>,
}

impl ProfileRow {
    #[expect(clippy::cast_precision_loss, reason = "a handful of jobs")]
    pub(crate) fn new(profile: &str, jobs: Vec<JobRow>) -> Self {
        let count = jobs.len() as f64;
        let rates = || jobs.iter().map(|job| job.items_per_s_measured);
        Self {
            profile: profile.to_owned(),
            items_per_s_mean: rates().sum::<f64>() / count,
            // One job at nothing makes all of it nothing.
            items_per_s_geomean: (rates().map(f64::ln).sum::<f64>() / count).exp(),
            ratio: None,
            jobs,
        }
    }
}

/// The whole comparison.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) verdict: Checks,
    pub(crate) rows: Vec<ProfileRow>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    pub(crate) fn set_ratios(&mut self, reference: &str) {
        let row = self.rows.iter().find(|row| row.profile == reference);
        let Some(mean) = row.map(|row| row.items_per_s_mean).filter(|mean| *mean > 0.0) else { return };
        for row in &mut self.rows {
            row.ratio = Some(row.items_per_s_mean / mean);
        }
    }

    /// One line a job, one a profile.
    pub(crate) fn print(&self) {
        println!();
        let mut lines = Vec::new();
        for row in &self.rows {
            lines.extend(row.jobs.iter().map(|job| {
                vec![
                    row.profile.clone(),
                    job.name.clone(),
                    format!("{:.2}", job.items_per_s_predicted),
                    format!("{:.2}", job.items_per_s_measured),
                    match job.state.as_str() {
                        "running" => job.bound_by.clone(),
                        state => state.to_owned(),
                    },
                ]
            }));
        }
        print_table(&["profile", "job", "predicted", "items/s", "bound by"], &lines);
        println!();
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let lines: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let numbers = [Some(row.items_per_s_mean), Some(row.items_per_s_geomean), row.ratio];
                [vec![row.profile.clone()], numbers.map(number).to_vec()].concat()
            })
            .collect();
        print_table(&["profile", "mean items/s", "geometric mean", "to otfa"], &lines);
        println!();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(profile: &str, rates: &[f64]) -> ProfileRow {
        let job = |rate: &f64| JobRow { items_per_s_measured: *rate, ..JobRow::default() };
        ProfileRow::new(profile, rates.iter().map(job).collect())
    }

    #[test]
    fn means_and_ratios_count_jobs_without_a_place_as_nothing() {
        let rows = vec![row("otfa", &[2.0, 8.0]), row("lr", &[10.0, 0.0])];
        let mut report = Report { rows, ..Report::default() };
        report.set_ratios("otfa");
        let [otfa, lr] = &report.rows[..] else { panic!("two rows") };
        assert!((otfa.items_per_s_mean - 5.0).abs() < 1e-9 && (otfa.items_per_s_geomean - 4.0).abs() < 1e-9);
        assert!((lr.items_per_s_mean - 5.0).abs() < 1e-9 && lr.items_per_s_geomean.abs() < 1e-9);
        assert_eq!(lr.ratio, Some(1.0));
    }
}
