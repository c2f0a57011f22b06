//! A node's Docker ends, by request or by force, and comes back; with live-restore its containers go on meanwhile,
//! without it they end with it.

use super::RECOVERY;
use super::holding::CONTAINER;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use crate::ground::Ground;
use crate::lab::Node;
use crate::{docker, processes};
use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// The node whose Docker is restarted: most tasks of the job are there.
const VICTIM: &str = "n4";

/// How Docker ends.
#[derive(Debug, Clone, Copy)]
struct Case {
    signal: Signal,
    live_restore: bool,
}

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    let stage = Stage::set(ground, RECOVERY)?;
    for live_restore in [true, false] {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            one(&stage, Case { signal, live_restore }, report)?;
        }
    }
    set_live_restore(&ground.lab.node(VICTIM)?, true)?;
    stage.clear()
}

fn one(stage: &Stage<'_>, case: Case, report: &mut Report) -> Result<()> {
    let lab = &stage.ground.lab;
    let node = lab.node(VICTIM)?;
    set_live_restore(&node, case.live_restore)?;
    let before = stage.steady()?;
    let ours = stage.containers(&[VICTIM.to_owned()])?;
    let living = || ours.iter().filter(|one| processes::alive(one.pid)).count();
    ensure!(!ours.is_empty() && living() == ours.len(), "the containers of {VICTIM} do not run");

    lab.stop_docker(&node, case.signal)?;
    ensure!(docker::ask(&node.docker_socket(), "/_ping").is_err(), "the ended Docker answers");
    let left = living();
    lab.start_docker(&node)?;
    let begun = Instant::now();
    node.docker_ready()?;
    // Those that outlived a Docker without live-restore are ended by its successor.
    let kept = if case.live_restore { ours.len() } else { 0 };
    wait_for("containers to be as live-restore says", PATIENCE, || Ok(living() == kept))?;
    stage.await_content(&before)?;
    let took = begun.elapsed();
    stage.converged("after Docker's return")?;
    stage.expect_items()?;

    let target = format!("{VICTIM}, {}, live-restore {}", case.signal, case.live_restore);
    let effect = format!(
        "socket closed, {left} of {} containers alive without Docker, {} of the same afterwards",
        ours.len(),
        living()
    );
    println!("  {target}: {effect}");
    let changed = before.until(&stage.steady()?);
    report.rows.push(FaultRow::new(("docker-restart", &target), effect, took, &changed));
    if case.live_restore {
        report.nothing(&format!("docker restart ({target}): what changed"), &changed);
        return Ok(());
    }
    let restarted = |thing: &super::holding::Thing| thing.kind == CONTAINER && thing.node == VICTIM;
    let anew = changed.renewed.iter().filter(|thing| restarted(thing)).count();
    let name = format!("docker restart ({target}): containers that run again, with their limits");
    report.verdict.check(&name, anew == ours.len(), anew, ours.len());
    let others = changed.only(|thing| !restarted(thing));
    report.nothing(&format!("docker restart ({target}): what else changed"), &others);
    Ok(())
}

/// Tells the node's Docker, which takes it over while it runs.
fn set_live_restore(node: &Node<'_>, wanted: bool) -> Result<()> {
    node.set_live_restore(wanted)?;
    wait_for("Docker to have read its configuration", Duration::from_secs(10), || {
        Ok(docker::ask(&node.docker_socket(), "/info")?["LiveRestoreEnabled"] == wanted)
    })
}
