//! `cargo lab sla`: what classes of service come to on real containers: cores by class and by use, what is counted
//! and charged, and nodes that are emptied.
//!
//! Limits, processor time and lives of containers are read from the kernel and from Docker; what the controller says
//! is held against them. Scenarios share a lab, and each leaves it without jobs and with every node open; one that
//! fails is cleared away before the next.

mod charged;
mod consolidate;
mod cores;
mod drain;
mod follow;
mod hole;
mod kills;
mod report;
mod short;
mod stage;
mod usage;

use crate::checks::conclude;
use crate::experiment::Experiment;
use anyhow::Result;
use clap::{Args, ValueEnum};
use report::Report;
use stage::Stage;

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// Which scenarios, in this order; all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Scenario>,
}

/// What is tried, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    Cores,
    Usage,
    Kills,
    Short,
    Drain,
    Consolidate,
    Follow,
}

impl Scenario {
    fn title(self) -> &'static str {
        match self {
            Self::Cores => "cores by class, by company and by use",
            Self::Usage => "what is counted and charged",
            Self::Kills => "accounts while daemons are killed",
            Self::Short => "accounts of containers that live for a second",
            Self::Drain => "a node is drained and opened",
            Self::Consolidate => "nodes that could be emptied are",
            Self::Follow => "the number of nodes follows the load",
        }
    }

    fn play(self, stage: &Stage, report: &mut Report) -> Result<()> {
        match self {
            Self::Cores => cores::play(stage, report),
            Self::Usage => usage::play(stage, report),
            Self::Kills => kills::play(stage, report),
            Self::Short => short::play(stage, report),
            Self::Drain => drain::play(stage, report),
            Self::Consolidate => consolidate::play(stage, report),
            Self::Follow => follow::play(stage, report),
        }
    }
}

/// Runs the scenarios; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let results = settings.experiment.results()?;
    let scenarios =
        if settings.only.is_empty() { Scenario::value_variants() } else { settings.only.as_slice() };
    let stage = Stage::lay(&settings.experiment)?;
    let mut report = Report::default();
    let played = stage.begin().and_then(|()| play(scenarios, &stage, &mut report));
    report.print();
    let ok = conclude(&mut report, played, &results)?;
    stage.end(ok, settings.experiment.stay())?;
    Ok(ok)
}

fn play(scenarios: &[Scenario], stage: &Stage, report: &mut Report) -> Result<()> {
    for scenario in scenarios {
        stage.ground.chapter(scenario.title());
        if let Err(error) = scenario.play(stage, report) {
            let name = format!("{}: the scenario reaches its end", scenario.title());
            report.verdict.check(&name, false, format!("{error:#}"), "no error");
        }
        stage.clear()?;
    }
    Ok(())
}
