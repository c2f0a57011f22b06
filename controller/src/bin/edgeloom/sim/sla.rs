//! `edgeloom sim sla`.

use super::what_if::file;
use super::{OutputFile, available_threads};
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use crate::units::UNKNOWN;
use clap::{Args, ValueEnum};
use edgeloom_common::job::Service;
use edgeloom_common::view::ProblemItem;
use edgeloom_sim::plot;
use edgeloom_sim::sla::{Experiment, Pattern, Policy, Row, Settings, arrivals, run_sla};
use edgeloom_sim::what_if::FileProblem;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Sla {
    /// When containers arrive, and whose they are.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [PatternName::AtOnce, PatternName::Fixed, PatternName::Google, PatternName::Prezi])]
    patterns: Vec<PatternName>,
    /// Times at which the containers of the pattern google arrive: seconds, one a line [default: drawn].
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
    /// How many seeds, each with arrivals of its own.
    #[arg(long, default_value_t = Settings::default().seeds)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = Settings::default().seed_base)]
    seed_base: u64,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the order of execution and the mean cores, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Runs at a time; decisions are timed best with 1 [default: processors].
    #[arg(long)]
    threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PatternName {
    /// All at once, 30 of each user.
    AtOnce,
    /// One of each user every 3 s.
    Fixed,
    /// As in the Google trace of 2011: 2 premium, 88 advanced.
    Google,
    /// As in the traces of Prezi: 10 premium, 13 advanced, 67 best effort.
    Prezi,
}

impl From<PatternName> for Pattern {
    fn from(name: PatternName) -> Self {
        match name {
            PatternName::AtOnce => Self::AtOnce,
            PatternName::Fixed => Self::Fixed,
            PatternName::Google => Self::Google,
            PatternName::Prezi => Self::Prezi,
        }
    }
}

pub(super) fn sla(arguments: &Sla, printer: &Printer) -> Result<(), Error> {
    let json = OutputFile::open(arguments.json.as_deref())?;
    let plot = OutputFile::open(arguments.plot.as_deref())?;
    let mut patterns: Vec<Pattern> = Vec::new();
    for pattern in arguments.patterns.iter().map(|name| Pattern::from(*name)) {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let arrivals_s = arguments.arrivals.as_deref().map(times).transpose()?;
    let settings = Settings { seeds: arguments.seeds, seed_base: arguments.seed_base, patterns, arrivals_s };
    let experiment = run_sla(&settings, arguments.threads.unwrap_or_else(available_threads))?;
    OutputFile::write(plot, || plot::sla(&experiment))?;
    OutputFile::write(json, || crate::commands::json(&experiment))?;
    printer.print(&experiment, table)
}

fn times(path: &Path) -> Result<Vec<f64>, Error> {
    let file = file(path)?;
    let problem = |item: ProblemItem| FileProblem { file: file.name.clone(), item };
    let text = String::from_utf8_lossy(&file.text);
    arrivals(&text).map_err(|items| Error::Files(items.into_iter().map(problem).collect()))
}

/// Means over seeds with half their 95% intervals, then who was executed when under the profile itself.
fn table(experiment: &Experiment) -> String {
    let header = ["PATTERN", "PROFILE", "CORES PREMIUM", "ADVANCED", "BEST EFFORT"];
    let rest = ["WAIT S PREMIUM", "ADVANCED", "BEST EFFORT", "COMPLETION S", "MAKESPAN S", "NEVER"];
    let mut table = Table::new(header.into_iter().chain(rest).chain(["DECISION MS", "MAX MS"]));
    for (row, timing) in experiment.rows.iter().zip(&experiment.timing) {
        let mut cells = vec![row.pattern.name().to_owned(), row.profile.to_owned()];
        cells.extend(metrics(row));
        cells.extend([timing.decision_ms_mean, timing.decision_ms_max].map(|ms| format!("{ms:.2}")));
        table.row(cells);
    }
    let mut text = table.text();
    text.push_str("\nOrder of execution of the first seed: P premium, A advanced, b best effort\n");
    for row in experiment.rows.iter().filter(|row| row.profile == Policy::Sla.name()) {
        text.push_str(&format!("{:8}  {}\n", row.pattern.name(), order(row)));
    }
    text
}

fn metrics(row: &Row) -> Vec<String> {
    let mean = |key: &str, value: Option<f64>| match (value, row.ci95.get(key).copied().flatten()) {
        (Some(value), Some(half)) => format!("{value:.1} ±{half:.1}"),
        (Some(value), None) => format!("{value:.1}"),
        (None, _) => UNKNOWN.to_owned(),
    };
    vec![
        mean("mean_cores_premium", row.mean_cores_premium),
        mean("mean_cores_advanced", row.mean_cores_advanced),
        mean("mean_cores_best_effort", row.mean_cores_best_effort),
        mean("wait_s_premium", row.wait_s_premium),
        mean("wait_s_advanced", row.wait_s_advanced),
        mean("wait_s_best_effort", row.wait_s_best_effort),
        mean("completion_s_mean", Some(row.completion_s_mean)),
        mean("makespan_s", Some(row.makespan_s)),
        format!("{:.1}", row.never),
    ]
}

/// A letter a container.
fn order(row: &Row) -> String {
    let letter = |service: Service| match service {
        Service::Premium => 'P',
        Service::Advanced => 'A',
        Service::BestEffort => 'b',
    };
    row.order.iter().map(|one| letter(one.service)).collect()
}
