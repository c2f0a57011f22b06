//! The experiment of LRScheduler: containers asked for one after the other, each pulled where it is placed.
//!
//! Paper: LRScheduler (2024), section VI, Table I and Fig. 3 to 5. Images are real ones with their layers
//! (`data/images.json`, each with its source); requests, CPU and memory are random. In: settings. Out: what
//! each profile fetches, how long that takes, and how loaded nodes are. The paper does not state the ranges
//! of its requests; `workload` has ours.

mod cluster;
mod images;
mod report;
mod run;
mod settings;
mod workload;

pub use report::{Experiment, Row, Timing};
pub(crate) use settings::PROFILES;
pub use settings::{Settings, Store};

use edgeloom_sched::Profile;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::SimError;
use crate::parallel::try_map;
use crate::streaming::{Execution, Progress};

/// One profile with one seed at one point of the sweep.
struct Run {
    point: usize,
    profile: Profile,
    seed: u64,
}

/// Runs every profile over every seed, at every point of the sweep.
///
/// # Errors
/// A setting out of bounds, a profile that the scheduler does not have, or a decision that breaks a rule.
pub fn run_layers(settings: &Settings, execution: &Execution<'_>) -> Result<Experiment, SimError> {
    let profiles = crate::profiles(&settings.profiles)?;
    let points = settings.points();
    points.iter().try_for_each(Settings::check)?;
    let seeds = settings.seed_base..settings.seed_base.saturating_add(settings.seeds);
    let runs: Vec<Run> = (0..points.len())
        .flat_map(|point| profiles.iter().map(move |profile| (point, *profile)))
        .flat_map(|(point, profile)| seeds.clone().map(move |seed| Run { point, profile, seed }))
        .collect();
    let images = images::images();
    let sweep = |point: usize| settings.sweep.as_ref().map(|sweep| sweep.values[point]);
    let done = AtomicUsize::new(0);
    let outcomes = try_map(&runs, execution.threads, |one| {
        let outcome = run::run(&points[one.point], &images, (one.profile, one.seed))?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        let (profile, seed, sweep) = (one.profile.name(), one.seed, sweep(one.point));
        (execution.progress)(Progress { done, all: runs.len(), profile, seed, sweep });
        Ok(outcome)
    })?;
    Ok(report::report(settings, &outcomes))
}
