//! The binaries: built by cargo, each package on its own so that it gets its own features.

use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub(crate) struct Binaries {
    agent: PathBuf,
    controller: PathBuf,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

fn cargo(words: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    eprintln!("cargo {}", words.join(" "));
    let status =
        Command::new(cargo).args(words).current_dir(workspace()).status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} failed ({status})", words.join(" "));
    Ok(())
}

/// Where the daemons come from.
#[derive(Debug, Clone)]
pub(crate) enum Build {
    /// Built as they are used.
    Release,
    /// Built before, and in this folder.
    Done(PathBuf),
}

/// The two daemons.
pub(crate) fn all(build: &Build) -> Result<Binaries> {
    let folder = match build {
        Build::Release => {
            cargo(&["build", "--release", "-p", "edgeloom-agent"])?;
            cargo(&["build", "--release", "-p", "edgeloom-controller"])?;
            target().join("release")
        }
        Build::Done(folder) => folder.clone(),
    };
    Ok(Binaries { agent: folder.join("edgeloom-agent"), controller: folder.join("edgeloom-controller") })
}

/// The example application, static so that its image needs no libraries.
pub(crate) fn pipeline() -> Result<PathBuf> {
    let version = crate::command::run(&["rustc", "-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    cargo(&[
        "rustc",
        "--release",
        "-p",
        "edgeloom-pipeline",
        "--bin",
        "pipeline",
        "--target",
        host,
        "--",
        "-C",
        "target-feature=+crt-static",
    ])?;
    Ok(target().join(host).join("release/pipeline"))
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
        copy(&self.controller, lab.state().join("edgeloom-controller"))
    }
}
