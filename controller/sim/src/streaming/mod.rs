//! The online experiment of ENTS: ten-module jobs arrive by a Poisson process on a random cluster.
//!
//! Paper: ENTS (2022), evaluation. Throughput of a job = items finished / (departure - arrival): waiting
//! counts, and a job that is never placed counts as zero. Items are counted by `truth`, from placement,
//! paths and rates alone.

mod cluster;
mod report;
mod run;
mod truth;
mod workload;

pub use report::{Experiment, Interval, Row, Timing};

use serde::Serialize;

use crate::SimError;

/// What is simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    #[serde(skip)]
    pub seeds: u64,
    pub seed_base: u64,
    pub nodes: usize,
    pub jobs: usize,
    /// Mean link bandwidth; its deviation is 0.3 of it, and both directions share it.
    pub link_bps: f64,
    /// Jobs that arrive in a second, on average.
    pub arrivals_per_s: f64,
    /// Mean time that a placed job runs.
    pub duration_s: f64,
    /// Bits of an item as the camera makes it; the first module halves it.
    pub raw_bits: f64,
    pub profiles: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seeds: 10,
            seed_base: 1,
            nodes: 30,
            jobs: 50,
            link_bps: 1e6,
            arrivals_per_s: 0.5,
            duration_s: 60.0,
            raw_bits: 48e6,
            profiles: ["edgeloom", "otfs", "tp", "br", "lr"].map(str::to_owned).to_vec(),
        }
    }
}

impl Settings {
    fn check(&self) -> Result<(), SimError> {
        let within = |setting, value: u64, least: u64, most: u64| {
            let inside = (least..=most).contains(&value);
            if inside { Ok(()) } else { Err(SimError::Setting { setting, value, least, most }) }
        };
        within("seeds", self.seeds, 1, 10_000)?;
        within("nodes", self.nodes as u64, 2, 1000)?;
        within("jobs", self.jobs as u64, 1, 10_000)
    }
}

/// Runs every profile over every seed.
///
/// # Errors
/// A setting out of bounds, or a profile that the scheduler does not have.
pub fn run_streaming(settings: &Settings) -> Result<Experiment, SimError> {
    settings.check()?;
    let mut runs = Vec::new();
    for name in &settings.profiles {
        let profile =
            edgeloom_sched::profile(name).ok_or_else(|| SimError::Profile { profile: name.clone() })?;
        let seeds = settings.seed_base..settings.seed_base.saturating_add(settings.seeds);
        runs.push((name.clone(), seeds.map(|seed| run::run(settings, profile, seed)).collect()));
    }
    Ok(report::report(settings, runs))
}
