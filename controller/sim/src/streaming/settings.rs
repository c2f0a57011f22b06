//! What is simulated, and the bounds of it.

use edgeloom_sched::snapshot::{Policy, Processors};
use serde::Serialize;

use super::{Axis, Sweep};
use crate::{SimError, count, within};

/// Those of the paper, and ours.
pub(crate) const PROFILES: [&str; 6] = ["lr", "br", "tp", "otfs", "otfa", "edgeloom"];

/// The experiment's settings; the defaults are the paper's at 30 nodes and 1 Mbit/s.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    #[serde(skip)]
    pub seeds: u64,
    pub seed_base: u64,
    pub nodes: usize,
    pub mix: Mix,
    pub jobs: usize,
    /// Mean link bandwidth; its deviation is 0.3 of it, and both directions share it.
    pub link_bps: f64,
    /// Jobs that arrive in a second, on average.
    pub arrivals_per_s: f64,
    /// Mean time that a placed job runs.
    pub duration_s: f64,
    /// The paper's model gives each job a node's whole speed; on a real cluster jobs share it.
    pub processors: Processors,
    /// Bits of an item as the camera makes it; the first module halves it.
    pub raw_bits: f64,
    /// Part of its max-min throughput that every job keeps.
    pub floor: f64,
    /// Seconds without items when a task moves.
    pub migration_s: f64,
    /// Seconds within which a move has to pay; none: `duration_s`, which is what an exponential stay is
    /// expected to have left at any time.
    pub horizon_s: Option<f64>,
    pub profiles: Vec<String>,
    /// None: one cluster size, one number of jobs, one bandwidth.
    pub sweep: Option<Sweep>,
}

/// Which kinds of nodes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Four kinds in equal parts.
    Equal,
    /// The physical devices of the paper's Table I, over and over: four Raspberry Pis, two Jetson Nanos, two
    /// Xavier NX, two servers.
    Table1,
}

impl Default for Settings {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            seeds: 10,
            seed_base: 1,
            nodes: 30,
            mix: Mix::Equal,
            jobs: 50,
            link_bps: 1e6,
            arrivals_per_s: 0.5,
            duration_s: 60.0,
            processors: Processors::PerJob,
            raw_bits: 48e6,
            floor: policy.floor,
            migration_s: policy.migration_s,
            horizon_s: None,
            profiles: PROFILES.map(str::to_owned).to_vec(),
            sweep: None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^52 are out of bounds before and after")]
impl Settings {
    /// The settings of each point of the sweep; one point without one.
    pub(super) fn points(&self) -> Vec<Self> {
        let values =
            self.sweep.iter().flat_map(|sweep| sweep.values.iter().map(|value| (sweep.axis, *value)));
        let at = |(axis, value)| {
            let mut point = Self { sweep: None, ..self.clone() };
            match axis {
                Axis::Nodes => point.nodes = count(value),
                Axis::Jobs => point.jobs = count(value),
                Axis::Bandwidth => point.link_bps = value,
            }
            point
        };
        if self.sweep.is_some() { values.map(at).collect() } else { vec![self.clone()] }
    }

    pub(super) fn policy(&self) -> Policy {
        let horizon_s = self.horizon_s.unwrap_or(self.duration_s);
        Policy { floor: self.floor, migration_s: self.migration_s, horizon_s, ..Policy::default() }
    }

    pub(super) fn check(&self) -> Result<(), SimError> {
        within("seeds", self.seeds as f64, (1.0, 10_000.0))?;
        within("nodes", self.nodes as f64, (2.0, 1000.0))?;
        within("jobs", self.jobs as f64, (1.0, 10_000.0))?;
        within("bandwidth in bit/s", self.link_bps, (1e3, 1e12))?;
        within("arrivals a second", self.arrivals_per_s, (1e-6, 1e6))?;
        within("duration in seconds", self.duration_s, (1e-3, 1e7))?;
        within("bits an item", self.raw_bits, (16.0, 1e12))?;
        within("floor", self.floor, (0.0, 1.0))?;
        within("migration in seconds", self.migration_s, (0.0, 1e7))?;
        within("horizon in seconds", self.horizon_s.unwrap_or(0.0), (0.0, 1e7))
    }
}
