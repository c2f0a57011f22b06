//! `cargo lab recovery`: faults of every kind, each under a running job, and whether all comes back by itself.
//!
//! Every scenario starts a job, breaks something, sees from outside that it is broken, and compares what the
//! nodes hold afterwards with what they held before. A fault whose effect is not seen counts as a failure of
//! the scenario. A scenario that fails leaves nothing to the next one: that gets a lab of its own.

mod address_change;
mod agent_restart;
pub(crate) mod containers;
mod controller_restart;
mod cut_link;
mod docker_restart;
mod holding;
mod kernel;
mod log;
mod lost_node;
mod lost_state;
mod power_cut;
mod report;
mod stage;
mod ways;

use crate::checks::conclude;
use crate::experiment::Experiment;
use crate::ground::{Ground, Stay};
use crate::topology::DIAMOND;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use report::Report;

/// The job of most scenarios.
const RECOVERY: &str = include_str!("../jobs/recovery.yaml");

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// Which scenarios, in this order; all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Scenario>,
}

/// What can go wrong, in the order in which it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    LostNode,
    AgentRestart,
    ControllerRestart,
    CutLink,
    DockerRestart,
    AddressChange,
    LostState,
    PowerCut,
}

impl Scenario {
    fn title(self) -> &'static str {
        match self {
            Self::LostNode => "a node is lost and returns",
            Self::AgentRestart => "each agent is killed and started",
            Self::ControllerRestart => "the controller is killed and started",
            Self::CutLink => "a link in use is cut",
            Self::DockerRestart => "a node's Docker is restarted",
            Self::AddressChange => "a node gets another address",
            Self::LostState => "the controller's state is damaged, then gone",
            Self::PowerCut => "the power of the whole lab is cut",
        }
    }

    fn play(self, ground: &Ground, report: &mut Report) -> Result<()> {
        match self {
            Self::LostNode => lost_node::play(ground, report),
            Self::AgentRestart => agent_restart::play(ground, report),
            Self::ControllerRestart => controller_restart::play(ground, report),
            Self::CutLink => cut_link::play(ground, report),
            Self::DockerRestart => docker_restart::play(ground, report),
            Self::AddressChange => address_change::play(ground, report),
            Self::LostState => lost_state::play(ground, report),
            Self::PowerCut => power_cut::play(ground, report),
        }
    }
}

/// Runs the scenarios; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let results = settings.experiment.results()?;
    let mut report = Report::default();
    let scenarios =
        if settings.only.is_empty() { Scenario::value_variants() } else { settings.only.as_slice() };
    let played = play(scenarios, settings, &mut report);
    report.print();
    conclude(&mut report, played, &results)
}

fn play(scenarios: &[Scenario], settings: &Settings, report: &mut Report) -> Result<()> {
    let mut standing: Option<Ground> = None;
    for scenario in scenarios {
        let ground = match standing.take() {
            Some(ground) => ground,
            None => raise(&settings.experiment)?,
        };
        ground.chapter(scenario.title());
        match scenario.play(&ground, report) {
            Ok(()) => standing = Some(ground),
            Err(error) => {
                let name = format!("{}: the scenario reaches its end", scenario.title());
                report.verdict.check(&name, false, format!("{error:#}"), "no error");
                if settings.experiment.stay() == Stay::Up {
                    return ground.clear(Stay::Up);
                }
                ground.abandon()?;
            }
        }
    }
    standing.map_or(Ok(()), |ground| ground.clear(settings.experiment.stay()))
}

/// A lab whose nodes are ready.
fn raise(experiment: &Experiment) -> Result<Ground> {
    let ground = Ground::lay(DIAMOND, &experiment.build())?;
    ground.start_daemons().context("starting controller and agents")?;
    ground.await_nodes()?;
    Ok(ground)
}

#[cfg(test)]
mod tests {
    use crate::document::Document;

    #[test]
    fn the_job_reads_and_ends_in_two_tasks() {
        assert_eq!(Document::read(super::RECOVERY).unwrap().sinks.len(), 2);
    }
}
