//! Batches of containers: one decision over many, or many decisions over hours.
//!
//! Paper: ECSched (2018), evaluation: a testbed of 30 machines under five hours of a trace, and clusters of 1000 and 5000
//! machines for the time that decisions take. Queues, one container at a time, are the baselines; each blocks at the head
//! of the queue, as in the paper, or goes round what does not fit, as schedulers in use do.

mod clock;
mod cluster;
mod contender;
mod dump;
mod report;
mod settings;
mod trace;
mod trace_file;

pub use contender::frontier;
pub(crate) use contender::knobs_of;
pub use dump::{Dump, dump};
pub use report::{Experiment, Improvement, Row, Timing};
pub use settings::{Mix, Scenario, Settings};

use edgeloom_sched::batch::{Batch, Machine, Prepared};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::SimError;
use crate::parallel::try_map;
use crate::random::Draw;
use crate::streaming::{Execution, Progress};
use clock::Clock;
use contender::{Contender, contenders};
use trace::Arrival;

/// What one run was like.
#[derive(Debug, Clone)]
struct Outcome {
    run: clock::Outcome,
    flow: Option<Flow>,
}

/// Of the first round's flow.
#[derive(Debug, Clone, Copy)]
struct Flow {
    cost: i64,
    build_ms: f64,
    solve_ms: f64,
}

/// Runs every profile over every seed. `trace` is the text of a file that takes the place of drawn containers.
///
/// # Errors
/// A setting out of bounds, an unknown profile, a trace that does not read, or a decision that breaks a rule.
pub fn run_batch(
    settings: &Settings,
    trace: Option<&str>,
    execution: &Execution<'_>,
) -> Result<Experiment, SimError> {
    settings.check()?;
    let contenders = contenders(settings)?;
    let seeds = settings.seed_base..settings.seed_base.saturating_add(settings.seeds);
    let runs: Vec<(&Contender, u64)> =
        contenders.iter().flat_map(|one| seeds.clone().map(move |seed| (one, seed))).collect();
    let done = AtomicUsize::new(0);
    let outcomes = try_map(&runs, execution.threads, |(contender, seed)| {
        let outcome = run(settings, trace, contender, *seed)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        let profile = contender.name.as_str();
        (execution.progress)(Progress { done, all: runs.len(), profile, seed: *seed, sweep: None });
        Ok(outcome)
    })?;
    Ok(report::report(settings, &outcomes))
}

/// One cluster and its containers, the same for every profile.
fn workload(
    settings: &Settings,
    trace: Option<&str>,
    seed: u64,
) -> Result<(Vec<Machine>, Vec<Arrival>), SimError> {
    let mut draw = Draw::new(seed);
    let machines = cluster::machines(settings, &mut draw);
    let arrivals = match trace {
        Some(text) => {
            let sample = settings.sample.map(|containers| (containers, &mut draw));
            trace_file::read(text, &machines, sample)?
        }
        None => trace::arrivals(settings, &machines, &mut draw),
    };
    Ok((machines, arrivals))
}

fn run(
    settings: &Settings,
    trace: Option<&str>,
    contender: &Contender,
    seed: u64,
) -> Result<Outcome, SimError> {
    let (machines, arrivals) = workload(settings, trace, seed)?;
    let flow = (settings.scenario == Scenario::OneShot).then(|| first_flow(&machines, &arrivals, contender));
    let run = Clock::new(settings, machines, &arrivals, contender.method).run().map_err(|over| {
        SimError::Overbooked { profile: contender.name.clone(), seed, at_s: over.at_s, machine: over.machine }
    })?;
    Ok(Outcome { run, flow: flow.flatten() })
}

fn first_flow(machines: &[Machine], arrivals: &[Arrival], contender: &Contender) -> Option<Flow> {
    let batch = batch(machines, arrivals);
    let started = Instant::now();
    let prepared = Prepared::of(&batch, contender.method)?;
    let built = Instant::now();
    let solution = prepared.solve();
    let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
    Some(Flow { cost: solution.cost, build_ms: ms(started, built), solve_ms: ms(built, Instant::now()) })
}

/// All at once.
fn batch(machines: &[Machine], arrivals: &[Arrival]) -> Batch {
    let requests = arrivals.iter().map(|arrival| arrival.request.clone()).collect();
    Batch { machines: machines.to_vec(), requests }
}
