//! `cargo lab closed-loop`: running jobs are disturbed, and the times they are planned anew are counted.
//!
//! Three scenarios, each on a fresh lab, since what the agents measured and the controller remembers of one
//! would weigh on the next: work that varies by a fifth (nothing to do), a used link that carries half of
//! what it did (one new plan, soon, and no other), and a used link that comes and goes (not one new plan each
//! time). Every link of the lab is measured by the agents, none is declared.

mod report;
mod scenario;
mod watch;

use crate::checks::conclude;
use crate::experiment::Experiment;
use crate::ground::{Ground, Stay};
use anyhow::Result;
use clap::Args;
use report::Report;
use scenario::Scenario;
use std::time::Duration;

/// The diamond, with links that nobody declares.
const TOPOLOGY: &str = include_str!("../topologies/closed-loop.toml");

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// How long each scenario is watched.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=120))]
    minutes: u64,
    /// Which scenarios, in this order.
    #[arg(long, value_delimiter = ',', default_value = "noise,halved,flapping")]
    scenarios: Vec<Scenario>,
}

/// Runs the scenarios; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let results = settings.experiment.results()?;
    let mut report = Report::default();
    let played = settings.scenarios.iter().try_for_each(|scenario| play(*scenario, settings, &mut report));
    report.print();
    conclude(&mut report, played, &results)
}

/// One scenario on a lab of its own. What goes wrong in it is a check that does not hold: the others are
/// played nevertheless. Only the last one's lab may stay up.
fn play(scenario: Scenario, settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::lay(TOPOLOGY, &settings.experiment.build())?;
    let length = Duration::from_secs(settings.minutes * 60);
    let ready = ground.start_daemons().and_then(|()| ground.await_nodes());
    ground.chapter(scenario.name());
    match ready.and_then(|()| scenario.play(&ground, length, &mut report.verdict)) {
        Ok(row) => report.rows.push(row.named(scenario.name())),
        Err(error) => {
            let name = format!("{}: the scenario reaches its end", scenario.name());
            report.verdict.check(&name, false, format!("{error:#}"), "no error");
        }
    }
    let last = settings.scenarios.last() == Some(&scenario);
    ground.clear(if last { settings.experiment.stay() } else { Stay::Down })
}
