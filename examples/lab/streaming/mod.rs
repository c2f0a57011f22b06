//! `cargo lab streaming`: the same jobs at once under each profile, one profile after another on one lab,
//! and what each job really reaches.
//!
//! A profile's figure is the mean over all jobs of items a second, as the tasks without outputs count them;
//! a job that finds no place counts as nothing. `edgeloom` has to be above every other profile and to keep
//! what it predicts.

mod report;
mod round;

use crate::checks::conclude;
use crate::document::Document;
use crate::experiment::Experiment;
use crate::ground::Ground;
use anyhow::{Result, ensure};
use clap::Args;
use report::{ProfileRow, Report};
use serde_json::Value;

const TOPOLOGY: &str = include_str!("../topologies/streaming.toml");

/// Bound by computing, by the network, and ten small modules.
const JOBS: [&str; 5] = [
    include_str!("../jobs/streams.yaml"),
    include_str!("../jobs/compute.yaml"),
    include_str!("../jobs/objects.yaml"),
    include_str!("../jobs/filter.yaml"),
    include_str!("../jobs/analysis.yaml"),
];

/// The profile that has to win, and keep its predictions.
const OURS: &str = "edgeloom";
/// The profile that the others are measured by.
const REFERENCE: &str = "otfa";
/// How far an `edgeloom` job may be from its prediction.
const MISS_MAX: f64 = 0.10;

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// Profiles, in this order.
    #[arg(long, value_delimiter = ',', default_value = "lr,br,tp,otfs,otfa,edgeloom")]
    profiles: Vec<String>,
    /// Seconds for which each profile's jobs are measured.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
}

/// Runs the experiment; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let known = edgeloom_sched::profile_names();
    for profile in &settings.profiles {
        ensure!(known.contains(&profile.as_str()), "there is no profile {profile}; there are {known:?}");
    }
    let results = settings.experiment.results()?;
    let ground = Ground::lay(TOPOLOGY, &settings.experiment.build())?;
    let mut report = Report::default();
    let played = play(&ground, settings, &mut report);
    report.set_ratios(REFERENCE);
    report.print();
    judge(&mut report);
    let ok = conclude(&mut report, played, &results)?;
    ground.clear(settings.experiment.stay())?;
    Ok(ok)
}

fn play(ground: &Ground, settings: &Settings, report: &mut Report) -> Result<()> {
    let documents = JOBS.into_iter().map(Document::read).collect::<Result<Vec<_>>>()?;
    ground.start_daemons()?;
    ground.await_nodes()?;
    for profile in &settings.profiles {
        ground.chapter(&format!("{} jobs under {profile}", documents.len()));
        let under: Vec<Document> = documents.iter().map(|document| document.under(profile)).collect();
        let jobs = round::play(ground, &under, std::time::Duration::from_secs(settings.seconds))?;
        report.rows.push(ProfileRow::new(profile, jobs));
    }
    Ok(())
}

fn judge(report: &mut Report) {
    let Some(ours) = report.rows.iter().find(|row| row.profile == OURS).cloned() else { return };
    for other in report.rows.clone().iter().filter(|row| row.profile != OURS) {
        let name = format!("items/s of {OURS} over those of {}, mean measured", other.profile);
        let ratio = ours.items_per_s_mean / other.items_per_s_mean;
        report.verdict.check(&name, ratio > 1.0, ratio, "above 1");
    }
    for job in &ours.jobs {
        let miss = (job.items_per_s_measured / job.items_per_s_predicted - 1.0).abs();
        let name = format!("{OURS}, {}: measured against predicted", job.name);
        let value = if miss.is_finite() { miss.into() } else { Value::from(job.state.as_str()) };
        report.verdict.check(&name, miss <= MISS_MAX, value, MISS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn the_jobs_read_and_name_nodes_of_the_topology() {
        let topology = Topology::parse(TOPOLOGY).unwrap();
        for text in JOBS {
            let document = Document::read(text).unwrap();
            assert_eq!(Document::read(&document.under(OURS).text).unwrap().sinks, document.sinks);
            let job = edgeloom_common::job::parse(text.as_bytes()).unwrap();
            assert!(job.source.is_none_or(|source| topology.index(source.node.as_str()).is_ok()));
        }
    }
}
