//! What is simulated, and the bounds of it.

use edgeloom_sched::batch::Packing;
use serde::Serialize;

use crate::{SimError, within};

/// ECSched, the queues that it is measured against in both forms, and ours.
const PROFILES: [&str; 8] = [
    "kube-blocking",
    "swarm-blocking",
    "kube",
    "swarm",
    "ecsched-dp-once",
    "ecsched-ml",
    "ecsched-dp",
    "edgeloom",
];

/// The experiment's settings; the defaults are the paper's cluster with 300 containers at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    #[serde(skip)]
    pub seeds: u64,
    pub seed_base: u64,
    pub scenario: Scenario,
    pub mix: Mix,
    pub machines: usize,
    pub containers: usize,
    /// Of a trace so many, drawn by the seed; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// What is asked for over what there is, of the scarcer resource: of all containers at once, or of those that
    /// would run at a time if none had to wait. For [`Mix::Paper`] only.
    pub load: f64,
    /// Seconds within which the containers arrive.
    pub span_s: f64,
    /// Mean time that a container runs.
    pub duration_s: f64,
    /// Seconds between two decisions.
    pub heartbeat_s: f64,
    /// Part of the containers with an affinity, half of them to a machine and half to another container.
    pub affinity: f64,
    /// Seven times this many seconds of waiting halve what a size counts for with our profile.
    pub ageing_s: f64,
    /// Seconds of waiting after which a container that fits nowhere claims a machine with our profile.
    pub patience_s: f64,
    pub profiles: Vec<String>,
}

/// How containers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// All at once, and one decision.
    OneShot,
    /// Over time, each leaving when it is done.
    Online,
    /// All at the start, each leaving when it is done.
    Drain,
}

/// Which machines there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Three kinds in equal parts: 1 core and 3 GB, 2 and 6, 4 and 12.
    Paper,
    /// 19 sizes of general purpose instances, each about half loaded.
    Ec2,
}

impl Default for Settings {
    fn default() -> Self {
        let Packing { ageing_s, patience_s, .. } = Packing::default();
        Self {
            seeds: 10,
            seed_base: 1,
            scenario: Scenario::OneShot,
            mix: Mix::Paper,
            machines: 30,
            containers: 300,
            sample: None,
            load: 1.4,
            span_s: 18_000.0,
            duration_s: 764.0,
            heartbeat_s: 5.0,
            affinity: 0.06,
            ageing_s,
            patience_s,
            profiles: PROFILES.map(str::to_owned).to_vec(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^52 are out of bounds before and after")]
impl Settings {
    pub(super) fn check(&self) -> Result<(), SimError> {
        within("seeds", self.seeds as f64, (1.0, 10_000.0))?;
        within("machines", self.machines as f64, (1.0, 100_000.0))?;
        within("containers", self.containers as f64, (0.0, 1e6))?;
        within("load", self.load, (1e-3, 1e3))?;
        within("span in seconds", self.span_s, (1.0, 1e7))?;
        within("duration in seconds", self.duration_s, (1e-3, 1e7))?;
        within("heartbeat in seconds", self.heartbeat_s, (1e-2, 1e5))?;
        within("affinity", self.affinity, (0.0, 1.0))?;
        within("ageing in seconds", self.ageing_s, (1e-3, 1e9))?;
        within("patience in seconds", self.patience_s, (0.0, 1e9))
    }
}
