//! The online experiment of ENTS: ten-module jobs arrive by a Poisson process on a random cluster.
//!
//! Paper: ENTS (2022), evaluation, Fig. 11. Throughput of a job = items finished / (departure - arrival):
//! waiting counts, and a job that is never placed counts as zero. Items are counted by `truth`, from
//! placement, paths, rates and limits alone.

mod cluster;
mod ratios;
mod report;
mod settings;
mod sweep;
mod workload;

pub use ratios::{Ratio, Ratios};
pub use report::{Experiment, Row, Timing};
pub(crate) use settings::PROFILES;
pub use settings::{Mix, Settings};
pub use sweep::{Axis, Sweep, SweepError};

use edgeloom_sched::Profile;

use crate::SimError;
use crate::experiment::Grid;
use crate::random::Draw;
use crate::simulation::{Outcome, Setting, Simulation};

/// A run that is over.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Runs that are over, of all.
    pub done: usize,
    pub all: usize,
    pub profile: &'a str,
    pub seed: u64,
    /// The value of the sweep.
    pub sweep: Option<f64>,
}

/// How an experiment is carried out; nothing of it changes a result.
pub struct Execution<'a> {
    /// Runs at a time.
    pub threads: usize,
    /// Told of each run that is over.
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
}

impl std::fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Runs every profile over every seed, at every point of the sweep.
///
/// # Errors
/// A setting out of bounds, a profile that the scheduler does not have, or a decision that breaks a rule.
pub fn run_streaming(settings: &Settings, execution: &Execution<'_>) -> Result<Experiment, SimError> {
    let profiles = crate::profiles(&settings.profiles)?;
    let points = settings.points();
    points.iter().try_for_each(Settings::check)?;
    let seeds = settings.seed_base..settings.seed_base.saturating_add(settings.seeds);
    let grid = Grid { points: &points, sweep: settings.sweep.as_ref(), profiles: &profiles, seeds };
    let outcomes = grid.run(execution, run)?;
    Ok(report::report(settings, &outcomes))
}

/// One cluster and one workload, the same for every profile.
fn run(settings: &Settings, profile: Profile, seed: u64) -> Result<Outcome, SimError> {
    let mut draw = Draw::new(seed);
    let (nodes, links) = cluster::cluster(settings, &mut draw);
    let arrivals = workload::arrivals(settings, &mut draw);
    let policy = settings.policy();
    let setting = Setting {
        nodes,
        links,
        goodput: 1.0,
        link_share: 1.0,
        processors: settings.processors,
        policy,
        seed,
    };
    let mut simulation = Simulation::new(setting, &arrivals, profile);
    simulation.run()?;
    Ok(simulation.into_outcome())
}
