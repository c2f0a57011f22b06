//! What an experiment comes to, and the runs of one that compares profiles at the points of a sweep.

use edgeloom_sched::Profile;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::SimError;
use crate::parallel::try_map;
use crate::streaming::{Execution, Progress, Sweep};

/// The whole of it; all but `timing` is the same for the same seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment<Settings, Row, Timing> {
    pub experiment: &'static str,
    pub seeds: u64,
    pub settings: Settings,
    pub rows: Vec<Row>,
    pub timing: Vec<Timing>,
}

/// Every profile, over every seed, at every point.
pub(crate) struct Grid<'a, Settings> {
    /// The settings at each point of the sweep; one without a sweep.
    pub(crate) points: &'a [Settings],
    pub(crate) sweep: Option<&'a Sweep>,
    pub(crate) profiles: &'a [Profile],
    pub(crate) seeds: std::ops::Range<u64>,
}

struct Run {
    point: usize,
    profile: Profile,
    seed: u64,
}

impl<Settings: Sync> Grid<'_, Settings> {
    /// The outcomes, by point, then by profile, then by seed.
    pub(crate) fn run<Outcome: Send>(
        self,
        execution: &Execution<'_>,
        run: impl Fn(&Settings, Profile, u64) -> Result<Outcome, SimError> + Sync,
    ) -> Result<Vec<Outcome>, SimError> {
        let Self { points, sweep, profiles, seeds } = self;
        let runs: Vec<Run> = (0..points.len())
            .flat_map(|point| profiles.iter().map(move |profile| (point, *profile)))
            .flat_map(|(point, profile)| seeds.clone().map(move |seed| Run { point, profile, seed }))
            .collect();
        let done = AtomicUsize::new(0);
        try_map(&runs, execution.threads, |one| {
            let outcome = run(&points[one.point], one.profile, one.seed)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let sweep = sweep.map(|sweep| sweep.values[one.point]);
            let (profile, seed) = (one.profile.name(), one.seed);
            (execution.progress)(Progress { done, all: runs.len(), profile, seed, sweep });
            Ok(outcome)
        })
    }
}
