//! What every experiment can be told on the command line.

use crate::build::Build;
use crate::ground::Stay;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(crate) struct Experiment {
    /// Write what was measured as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Leave the lab up.
    #[arg(long)]
    keep: bool,
    /// Take edgeloom-agent, edgeloom-controller and edgeloom from this folder, for instance target/debug, instead of
    /// building them for release.
    #[arg(long)]
    binaries: Option<PathBuf>,
}

impl Experiment {
    pub(crate) fn build(&self) -> Build {
        self.binaries.clone().map_or(Build::Release, Build::Done)
    }

    pub(crate) fn stay(&self) -> Stay {
        if self.keep { Stay::Up } else { Stay::Down }
    }
}
