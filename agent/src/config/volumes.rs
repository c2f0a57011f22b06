//! The section [volumes]: which folders of the node containers may mount.

use super::{Check, ConfigProblem};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawVolumes {
    #[serde(default)]
    allow: Vec<PathBuf>,
}

impl Check {
    /// Folders, with all below them; problems are noted.
    pub(super) fn volumes(&mut self, raw: RawVolumes) -> Vec<PathBuf> {
        raw.allow.iter().for_each(|folder| self.absolute("volumes.allow", folder));
        if raw.allow.iter().any(|folder| folder.to_str().is_none()) {
            self.problems.push(ConfigProblem::VolumeFolder);
        }
        raw.allow
    }
}
