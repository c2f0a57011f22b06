//! What every experiment can be told on the command line.

use crate::build::Build;
use crate::ground::Stay;
use crate::results::{Output, Results};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(crate) struct Experiment {
    /// Write what was measured as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// What to print: `json` is the result alone, the rest goes to standard error.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
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

    /// Where the result goes; to be asked for before anything is printed.
    pub(crate) fn results(&self) -> Result<Results> {
        Results::open(self.json.clone(), self.output)
    }

    pub(crate) fn stay(&self) -> Stay {
        if self.keep { Stay::Up } else { Stay::Down }
    }
}
