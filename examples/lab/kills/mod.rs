//! `cargo lab kills`: controller, agents and Docker are killed at random under a stream of run and stop.
//!
//! Killers, clients and watchers work side by side. Clients keep a [`ledger`] of what was acknowledged,
//! watchers see from outside which containers run ([`lives`]) and what the controller lists. At the end every
//! container that ended needs a reason ([`judge`]), and the nodes are compared with what they were before.
//! The seed gives the sequence of kills and requests; what meets what is up to the machine.

mod client;
mod judge;
mod killer;
mod ledger;
pub(crate) mod lives;
mod report;
mod settle;
mod timeline;
mod victim;

use crate::api::wait_for;
use crate::checks::conclude;
use crate::experiment::Experiment;
use crate::ground::Ground;
use crate::topology::DIAMOND;
use anyhow::Result;
use clap::Args;
use client::Desk;
use edgeloom_common::view::JobState;
use judge::{Cause, Grounds, cause, read_log};
use killer::{Kill, Killer};
use ledger::Ledger;
use lives::{Double, Ended, Eye, Lives};
use report::{Report, Violation};
use settle::Settling;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use timeline::Timeline;
use victim::schedule;

/// Clients that run and stop jobs.
const CLIENTS: [&str; 2] = ["a", "b"];
/// Between two looks at what runs.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long the first jobs may take to run, their images pulled.
const FIRST_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// How many daemons to kill, one after another.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    kills: u16,
    /// The sequence of kills and requests; another one each time by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Write everything that happened, with its time.
    #[arg(long)]
    timeline: Option<PathBuf>,
}

/// Runs the experiment; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let results = settings.experiment.results()?;
    let ground = Ground::lay(DIAMOND, &settings.experiment.build())?;
    let mut report = Report { seed: settings.seed.unwrap_or_else(|| fastrand::u64(..)), ..Report::default() };
    let timeline = Timeline::begin();
    let played = play(&ground, settings, &timeline, &mut report);
    report.settle(settings.kills.into());
    let ok = conclude(&mut report, played, &results)?;
    if let Some(path) = &settings.timeline {
        std::fs::write(path, timeline.whole().join("\n"))?;
    }
    ground.clear(settings.experiment.stay())?;
    Ok(ok)
}

fn play(ground: &Ground, settings: &Settings, timeline: &Timeline, report: &mut Report) -> Result<()> {
    ground.start_daemons()?;
    ground.await_nodes()?;
    let resting = settle::resting(ground)?;
    let ledger = Mutex::new(Ledger::default());
    let nodes = ground.node_names();
    let desk = Desk { api: &ground.api, timeline, ledger: &ledger, nodes: &nodes };
    let mut killer = Killer { lab: &ground.lab, api: &ground.api, timeline, kills: Vec::new() };
    let (end, over) = (AtomicBool::new(false), AtomicBool::new(false));
    ground.chapter(&format!("{} kills, seed {}", settings.kills, report.seed));
    let (killed, settled, lives) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(ground, timeline, &over));
        let (desk, end) = (&desk, &end);
        let mut working: Vec<_> = (0..)
            .zip(CLIENTS)
            .map(|(number, name)| {
                let seed = report.seed.wrapping_add(number + 1);
                scope.spawn(move || desk.run_and_stop(name, seed, end))
            })
            .collect();
        working.push(scope.spawn(move || desk.compare_lists(end)));
        let turns = schedule(report.seed, settings.kills.into(), &nodes);
        let killed = await_first(ground).and_then(|()| killer.run(&turns));
        end.store(true, Ordering::Relaxed);
        working.into_iter().for_each(|one| one.join().expect("clients do not panic"));
        ground.chapter("the cluster comes to rest, and everything stops");
        let settled = Settling { ground, desk, resting: &resting, report: &mut *report }.run();
        over.store(true, Ordering::Relaxed);
        (killed, settled, watching.join().expect("the watcher does not panic"))
    });
    let ledger = ledger.into_inner().expect("nobody panicked with the ledger in hand");
    judge(ground, &Seen { timeline, ledger: &ledger, kills: &killer.kills, lives: &lives }, report)?;
    killed.and(settled)
}

/// The kills begin when there is something to lose.
fn await_first(ground: &Ground) -> Result<()> {
    wait_for("the first jobs to run", FIRST_LIMIT, || {
        let running = |job: &str| {
            ground.api.job(job).is_ok_and(|job| job.is_some_and(|job| job.state == JobState::Running))
        };
        Ok(CLIENTS.iter().all(|client| running(&format!("{client}1"))))
    })
}

fn watch(ground: &Ground, timeline: &Timeline, over: &AtomicBool) -> Lives {
    let (mut eye, mut lives) = (Eye::new(&ground.lab), Lives::default());
    while !over.load(Ordering::Relaxed) {
        let found = eye.look();
        let news = lives.see(timeline.now_s(), &found);
        news.begun.iter().for_each(|life| timeline.note(&life.job, format!("begins: {}", life.told())));
        news.ended.iter().for_each(|life| timeline.note(&life.job, format!("ended: {}", life.told())));
        std::thread::sleep(LOOK_PERIOD);
    }
    lives
}

/// What was seen while it went on.
struct Seen<'a> {
    timeline: &'a Timeline,
    ledger: &'a Ledger,
    kills: &'a [Kill],
    lives: &'a Lives,
}

fn judge(ground: &Ground, seen: &Seen<'_>, report: &mut Report) -> Result<()> {
    let log = std::fs::read(ground.lab.log("controller.log"))?;
    let told = read_log(&String::from_utf8_lossy(&log), seen.timeline);
    for one in &told {
        seen.timeline.note_at(one.at_s, &one.job, format!("controller: {}: {}", one.kind, one.text));
    }
    report.take_kills(seen.kills);
    report.jobs = seen.ledger.count;
    report.containers_begun = seen.lives.begun;
    for ended in &seen.lives.ended {
        let stop_s = seen.ledger.jobs.get(&ended.life.job).and_then(|entry| entry.stop_s);
        let cause = cause(ended, &Grounds { stop_s, told: &told, kills: seen.kills });
        *report.containers_ended.entry(cause).or_default() += 1;
        if cause == Cause::None {
            report.violations.push(restarted(ended, seen.timeline));
        }
    }
    report.violations.extend(seen.lives.doubles.iter().map(|double| twice(double, seen.timeline)));
    let lost = |((job, what), at_s): (&(String, String), &f64)| {
        let evidence = seen.timeline.around(&[job], *at_s);
        Violation::at("acknowledged job lost", format!("{job}: {what}"), evidence)
    };
    report.violations.extend(seen.ledger.breaches.iter().map(lost));
    Ok(())
}

fn restarted(ended: &Ended, timeline: &Timeline) -> Violation {
    let life = &ended.life;
    let text = format!("{}: {} ended after {:.1} s", life.job, life.told(), ended.last_s - ended.begun_s);
    let evidence = timeline.around(&[&life.job, &life.node], ended.ended_s);
    Violation::at("healthy container restarted", text, evidence)
}

fn twice(double: &Double, timeline: &Timeline) -> Violation {
    let [one, other] = &double.lives;
    let seconds = double.to_s - double.from_s;
    let text = format!("{}: for {seconds:.1} s {} and {}", one.job, one.told(), other.told());
    let evidence = timeline.around(&[&one.job, &one.node, &other.node], double.from_s);
    Violation::at("task running twice", text, evidence)
}
