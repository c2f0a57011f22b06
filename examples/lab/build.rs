//! The binaries of a lab: built or taken from elsewhere, and a copy for each node.

use crate::lab::Lab;
use anyhow::{Context, Result};
use edgeloom_examples::build::{Profile, daemons};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Binaries {
    agent: PathBuf,
    controller: PathBuf,
    edgeloom: PathBuf,
}

/// Where daemons and command line come from.
#[derive(Debug, Clone)]
pub(crate) enum Build {
    /// Built as they are used.
    Release,
    /// Built before, and in this folder.
    Done(PathBuf),
}

/// The two daemons and the command line.
pub(crate) fn all(build: &Build) -> Result<Binaries> {
    let folder = match build {
        Build::Release => daemons(Profile::Release)?,
        Build::Done(folder) => folder.clone(),
    };
    let [agent, controller, edgeloom] =
        ["edgeloom-agent", "edgeloom-controller", "edgeloom"].map(|name| folder.join(name));
    Ok(Binaries { agent, controller, edgeloom })
}

impl Binaries {
    /// Gives each node a copy of its own, so that no two agents share pages.
    pub(crate) fn install(&self, lab: &Lab) -> Result<()> {
        let copy = |from: &Path, to: PathBuf| -> Result<()> {
            std::fs::copy(from, &to)
                .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
            Ok(())
        };
        for node in lab.nodes() {
            copy(&self.agent, node.state().join("edgeloom-agent"))?;
        }
        copy(&self.controller, lab.state().join("edgeloom-controller"))?;
        copy(&self.edgeloom, lab.state().join("edgeloom"))
    }
}
