//! Each agent in turn is killed and started: it finds everything as it should be, soon, and touches nothing.

use super::RECOVERY;
use super::log::Log;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use crate::ground::Ground;
use crate::lab::Node;
use anyhow::{Context, Result};
use std::time::{Duration, SystemTime};

/// From exec to reconciled.
const BOUND: Duration = Duration::from_secs(1);
/// What the agent says when everything is as the document wants.
const RECONCILED: &str = "the node is as desired";

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    let stage = Stage::set(ground, RECOVERY)?;
    let (before, versions) = (stage.steady()?, stage.versions()?);
    println!("  held before: {}", before.summary());
    for node in ground.lab.nodes() {
        let name = &node.spec.name;
        let (effect, took) = restart(&stage, &node)?;
        stage.converged("after the agent's return")?;
        stage.expect_items()?;
        let changed = before.until(&stage.holding()?);
        println!("  agent of {name}: {effect}");
        report.within(&format!("agent restart, {name}: from exec to reconciled, s"), took, BOUND);
        let what = format!("agent restart, {name}: containers and kernel objects that changed");
        report.nothing(&what, &changed);
        report.rows.push(FaultRow::new(("agent-restart", name), effect, took, &changed));
    }
    let same = stage.versions()? == versions;
    report.verdict.check("agent restart: documents are the same", same, same, true);
    stage.clear()
}

/// Kills and starts a node's agent; what was seen of its death, and how long its return took.
fn restart(stage: &Stage<'_>, node: &Node<'_>) -> Result<(String, Duration)> {
    let (lab, name) = (&stage.ground.lab, &node.spec.name);
    let pid = std::fs::read_to_string(node.pid_file("agent"))?;
    lab.kill_agent(node)?;
    stage.await_presence(name, false)?;
    let log = Log::from_now(lab.log(&format!("{name}-agent.log")))?;
    let begun = SystemTime::now();
    lab.start_agent(node)?;
    let mut said = None;
    wait_for("the agent to have reconciled", PATIENCE, || {
        said = log.said(RECONCILED)?;
        Ok(said.is_some())
    })?;
    let took = said.context("it was said")?.duration_since(begun)?;
    Ok((format!("process {} gone, {name} offline", pid.trim()), took))
}
