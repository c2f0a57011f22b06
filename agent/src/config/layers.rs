//! The section [layers]: how much of image layers is kept, and where neighbours get them.

use super::{Check, ConfigProblem};
use edgeloom_common::units::Bytes;
use serde::Deserialize;

/// TCP.
const PORT: u16 = 7118;

/// What is kept and served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerSettings {
    /// On disk; zero: nothing is kept, and Docker pulls from registries itself.
    pub budget: Bytes,
    pub port: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLayers {
    budget: Option<String>,
    port: Option<u16>,
}

impl Check {
    /// What is written; problems are noted.
    pub(super) fn layers(&mut self, raw: &RawLayers) -> LayerSettings {
        let port = raw.port.unwrap_or(PORT);
        if port == 0 {
            self.problems.push(ConfigProblem::LayerPort);
        }
        let budget = raw.budget.as_deref().map(str::parse).unwrap_or(Ok(Bytes(0)));
        let budget = budget.unwrap_or_else(|source| {
            self.problems.push(ConfigProblem::Bytes { key: "layers.budget", source });
            Bytes(0)
        });
        LayerSettings { budget, port }
    }
}
