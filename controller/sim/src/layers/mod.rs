//! The experiment of LRScheduler: containers asked for one after the other, each pulled where it is placed.
//!
//! Paper: LRScheduler (2024), section VI, Table I and Fig. 3 to 5. Images are real ones with their layers
//! (`data/images.json`, each with its source); requests, CPU and memory are random. In: settings. Out: what
//! each profile fetches, how long that takes, and how loaded nodes are; what it would fetch if nodes got layers from
//! each other, and the least that any could. The paper does not state the ranges of its requests; `workload` has ours.

mod cluster;
mod images;
mod report;
mod run;
mod settings;
mod workload;

pub use images::NAMED;
pub use report::{Experiment, Row, Timing};
pub(crate) use settings::PROFILES;
pub use settings::{Choice, Settings, Store};

use crate::SimError;
use crate::experiment::Grid;
use crate::streaming::Execution;

/// Runs every profile over every seed, at every point of the sweep.
///
/// # Errors
/// A setting out of bounds, a profile that the scheduler does not have, or a decision that breaks a rule.
pub fn run_layers(settings: &Settings, execution: &Execution<'_>) -> Result<Experiment, SimError> {
    let profiles = crate::profiles(&settings.profiles)?;
    let points = settings.points();
    points.iter().try_for_each(Settings::check)?;
    let seeds = settings.seed_base..settings.seed_base.saturating_add(settings.seeds);
    let images = images::images(settings.images);
    let grid = Grid { points: &points, sweep: settings.sweep.as_ref(), profiles: &profiles, seeds };
    let outcomes = grid.run(execution, |point, profile, seed| run::run(point, &images, (profile, seed)))?;
    Ok(report::report(settings, &outcomes))
}
