//! The controller is killed and started: the nodes go on without it, and nothing on them changes when it is back.

use super::RECOVERY;
use super::log::Log;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use crate::ground::Ground;
use anyhow::Result;
use std::time::Instant;

/// What an agent says when its session has ended.
const SESSION_LOST: &str = "no session with the controller";

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    let stage = Stage::set(ground, RECOVERY)?;
    let (before, versions) = (stage.steady()?, stage.versions()?);
    let effect = kill(&stage)?;
    println!("  {effect}");
    stage.expect_items()?;
    let alone = before.until(&stage.holding()?);
    report.nothing("controller restart: what changed on the nodes while it was away", &alone);

    let begun = Instant::now();
    ground.lab.start_controller()?;
    stage.converged("after the controller's return")?;
    let took = begun.elapsed();
    stage.expect_items()?;
    let changed = before.until(&stage.steady()?);
    report.nothing("controller restart: what changed on the nodes after its return", &changed);
    let same = stage.versions()? == versions;
    report.verdict.check("controller restart: documents are the same", same, same, true);
    report.rows.push(FaultRow::new(("controller-restart", "controller"), effect, took, &changed));
    stage.clear()
}

/// Kills the controller; what was seen of it.
fn kill(stage: &Stage<'_>) -> Result<String> {
    let lab = &stage.ground.lab;
    let names = stage.ground.node_names();
    let logs = names.iter().map(|name| Log::from_now(lab.log(&format!("{name}-agent.log"))));
    let logs = logs.collect::<Result<Vec<_>>>()?;
    lab.kill_controller()?;
    wait_for("every agent to miss the controller", PATIENCE, || {
        let missed = logs.iter().map(|log| log.said(SESSION_LOST)).collect::<Result<Vec<_>>>()?;
        Ok(missed.iter().all(Option::is_some))
    })?;
    anyhow::ensure!(stage.ground.api.nodes().is_err(), "the killed controller answers");
    Ok(format!("API does not answer, {} agents without session", names.len()))
}
