//! What is simulated, and the bounds of it.

use edgeloom_common::report::ImageStore;
use serde::Serialize;

use crate::streaming::{Axis, Sweep};
use crate::{SimError, count, within};

/// Those of the paper, and ours.
pub(crate) const PROFILES: [&str; 4] = ["kube", "layer", "lrs", "edgeloom"];

/// The experiment's settings; the defaults are those of the paper's Table I.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    #[serde(skip)]
    pub seeds: u64,
    pub seed_base: u64,
    pub nodes: usize,
    pub containers: usize,
    /// Of each node's line to the registry.
    pub bandwidth_bps: f64,
    /// Disks over those of the paper's nodes.
    pub disk_factor: f64,
    pub store: Store,
    pub images: Choice,
    pub profiles: Vec<String>,
    /// None: one number of nodes, of containers, one bandwidth.
    pub sweep: Option<Sweep>,
}

/// How nodes keep images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    Graphdriver,
    /// As the paper counts.
    Containerd,
}

/// Which images are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    All,
    /// The six that the paper names.
    Named,
}

impl From<Store> for ImageStore {
    fn from(store: Store) -> Self {
        match store {
            Store::Graphdriver => Self::Graphdriver,
            Store::Containerd => Self::Containerd,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seeds: 10,
            seed_base: 1,
            nodes: 4,
            containers: 20,
            bandwidth_bps: 20e6,
            disk_factor: 1.0,
            store: Store::Graphdriver,
            images: Choice::All,
            profiles: PROFILES.map(str::to_owned).to_vec(),
            sweep: None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^52 are out of bounds before and after")]
impl Settings {
    /// The settings of each point of the sweep; one point without one.
    pub(super) fn points(&self) -> Vec<Self> {
        let Some(sweep) = &self.sweep else { return vec![self.clone()] };
        let at = |value: &f64| {
            let mut point = Self { sweep: None, ..self.clone() };
            match sweep.axis {
                Axis::Nodes => point.nodes = count(*value),
                Axis::Jobs => point.containers = count(*value),
                Axis::Bandwidth => point.bandwidth_bps = *value,
            }
            point
        };
        sweep.values.iter().map(at).collect()
    }

    pub(super) fn check(&self) -> Result<(), SimError> {
        within("seeds", self.seeds as f64, (1.0, 10_000.0))?;
        within("nodes", self.nodes as f64, (1.0, 1000.0))?;
        within("containers", self.containers as f64, (1.0, 10_000.0))?;
        within("bandwidth in bit/s", self.bandwidth_bps, (1e3, 1e12))?;
        within("disk factor", self.disk_factor, (1e-3, 1e3))
    }
}
