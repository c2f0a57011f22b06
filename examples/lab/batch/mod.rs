//! `cargo lab batch`: short containers over four nodes, each to its end, with an agent and the controller killed on
//! the way.
//!
//! Which containers ran, and how often, is seen from outside, by their processes; what became of them is what the
//! controller tells, and what each node's Docker has kept. A run that was seen twice, or not at all, is a miss.

mod report;

use crate::api::wait_for;
use crate::checks::conclude;
use crate::experiment::Experiment;
use crate::ground::Ground;
use crate::kills::lives::{Eye, Lives};
use crate::topology::DIAMOND;
use anyhow::{Context, Result, bail};
use clap::Args;
use edgeloom_common::view::{BatchView, JobState, JobView};
use report::{Kill, Report};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DOCUMENT: &str = include_str!("../jobs/batch.yaml");
const NAME: &str = "sweep";
/// As in the document, which a test holds against it.
const CONTAINERS: usize = 200;
/// The agent that is killed.
const VICTIM: &str = "n2";
/// How many have to have succeeded before the agent is killed, and the controller.
const KILL_AFTER: [usize; 2] = [CONTAINERS / 5, CONTAINERS / 2];
/// How long a service manager leaves a dead daemon down.
const DOWN: Duration = Duration::from_secs(2);
/// Between two looks at what runs; a container lives for over a second.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long the whole batch may take.
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// Kill nobody.
    #[arg(long)]
    undisturbed: bool,
}

/// Runs the experiment; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let results = settings.experiment.results()?;
    let ground = Ground::lay(DIAMOND, &settings.experiment.build())?;
    let mut report = Report::of(CONTAINERS);
    let played = play(&ground, settings, &mut report);
    report.print();
    let ok = conclude(&mut report, played, &results)?;
    if ok {
        ground.clear(settings.experiment.stay())?;
    } else {
        ground.abandon()?;
    }
    Ok(ok)
}

fn play(ground: &Ground, settings: &Settings, report: &mut Report) -> Result<()> {
    ground.start_daemons()?;
    ground.await_nodes()?;
    ground.chapter(&format!("{CONTAINERS} containers"));
    let over = AtomicBool::new(false);
    let (played, lives) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(ground, &over));
        let played = carry_out(ground, settings, report);
        // The last ones are seen gone, too.
        std::thread::sleep(2 * LOOK_PERIOD);
        over.store(true, Ordering::Relaxed);
        (played, watching.join().expect("the watcher does not panic"))
    });
    let view = played?;
    report.judge(&view, &lives);
    stop(ground, report)
}

/// Posts the batch, disturbs it, and waits for its end.
fn carry_out(ground: &Ground, settings: &Settings, report: &mut Report) -> Result<JobView> {
    let begun = Instant::now();
    ground.api.post(DOCUMENT)?;
    if !settings.undisturbed {
        disturb(ground, report, begun)?;
    }
    let mut last = None;
    wait_for("the batch to be over", LIMIT, || {
        last = look(ground);
        Ok(last.as_ref().is_some_and(|view| matches!(view.state, JobState::Succeeded | JobState::Failed)))
    })?;
    report.seconds = begun.elapsed().as_secs_f64();
    last.context("the batch is not listed")
}

fn disturb(ground: &Ground, report: &mut Report, begun: Instant) -> Result<()> {
    for (succeeded, victim) in
        KILL_AFTER.into_iter().zip([format!("agent of {VICTIM}"), "controller".to_owned()])
    {
        let at = await_succeeded(ground, succeeded)?;
        let agent = victim != "controller";
        let node = ground.lab.node(VICTIM)?;
        if agent {
            ground.lab.kill_agent(&node)?;
        } else {
            ground.lab.kill_controller()?;
        }
        let kill = Kill {
            victim,
            at_s: begun.elapsed().as_secs_f64(),
            succeeded: at.succeeded,
            running: at.running,
        };
        println!(
            "  {:.1} s: {} killed, {} done, {} running",
            kill.at_s, kill.victim, at.succeeded, at.running
        );
        report.kills.push(kill);
        std::thread::sleep(DOWN);
        if agent {
            ground.lab.start_agent(&node)?
        } else {
            ground.lab.start_controller()?
        };
    }
    Ok(())
}

/// The job as the controller tells it; none while it does not answer.
fn look(ground: &Ground) -> Option<JobView> {
    ground.api.job(NAME).ok().flatten()
}

fn await_succeeded(ground: &Ground, count: usize) -> Result<BatchView> {
    let mut reached = None;
    wait_for(&format!("{count} containers to have succeeded"), LIMIT, || {
        let batch = look(ground).and_then(|view| view.batch);
        reached = batch.filter(|batch| batch.succeeded >= count);
        Ok(reached.is_some())
    })?;
    match reached {
        Some(batch) if batch.succeeded < CONTAINERS => Ok(batch),
        _ => bail!("the batch was over before anybody was killed"),
    }
}

fn watch(ground: &Ground, over: &AtomicBool) -> Lives {
    let (mut eye, mut lives) = (Eye::new(&ground.lab), Lives::default());
    let begun = Instant::now();
    while !over.load(Ordering::Relaxed) {
        lives.see(begun.elapsed().as_secs_f64(), &eye.look());
        std::thread::sleep(LOOK_PERIOD);
    }
    lives
}

/// What it kept goes with it.
fn stop(ground: &Ground, report: &mut Report) -> Result<()> {
    let kept = ground.engines.inspect_job(NAME)?.len();
    ground.api.stop(NAME)?;
    let left = ground.engines.inspect_job(NAME)?.len();
    report.kept(kept, left);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_reads_and_has_so_many_containers() {
        let job = edgeloom_common::job::parse(DOCUMENT.as_bytes()).unwrap();
        assert_eq!((job.name.as_str(), job.tasks.len()), (NAME, CONTAINERS));
        assert!(job.kind.ends());
    }
}
