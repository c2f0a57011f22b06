//! The power of the whole lab is cut: nodes alone bring back what they ran, and the returning controller has
//! nothing to change.

use super::RECOVERY;
use super::holding::{CONTAINER, Holding};
use super::report::{FaultRow, Report};
use super::stage::Stage;
use crate::ground::Ground;
use crate::network::{State, set_uplink};
use crate::processes;
use anyhow::{Result, ensure};
use std::time::Instant;

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    let stage = Stage::set(ground, RECOVERY)?;
    let (before, versions) = (stage.steady()?, stage.versions()?);
    println!("  held before: {}", before.summary());
    let effect = cut(&stage)?;
    println!("  {effect}");

    ground.lab.restore_power()?;
    let begun = Instant::now();
    let returned = stage.await_content(&before);
    let took = begun.elapsed();
    let alone = stage.steady()?;
    let changed = before.until(&alone);
    println!("  held after {:.1} s without a controller: {}", took.as_secs_f64(), alone.summary());
    compare(report, &before, &alone);
    returned?;
    stage.expect_items()?;
    report.rows.push(FaultRow::new(("power-cut", "all nodes, no controller"), effect, took, &changed));

    let begun = Instant::now();
    for name in ground.node_names() {
        set_uplink(&ground.lab, &name, State::Up)?;
    }
    ground.lab.start_registry()?;
    ground.lab.start_controller()?;
    stage.converged("after the controller's return")?;
    let took = begun.elapsed();
    stage.expect_items()?;
    let changed = alone.until(&stage.steady()?);
    report.nothing("power cut: what changed when the controller returned", &changed);
    let same = stage.versions()? == versions;
    report.verdict.check("power cut: documents are the same", same, same, true);
    let effect = "controller started on the nodes' disks' state".to_owned();
    report.rows.push(FaultRow::new(("power-cut", "the controller's return"), effect, took, &changed));
    stage.clear()
}

/// Cuts the power; what was seen of it.
fn cut(stage: &Stage<'_>) -> Result<String> {
    let lab = &stage.ground.lab;
    let lived = stage.containers(&stage.ground.node_names())?;
    lab.cut_power()?;
    let left = processes::marked(&lab.id).len() + crate::cgroup::members(&lab.id).len();
    ensure!(left == 0, "{left} processes outlived the power cut");
    let survived = lived.iter().filter(|one| processes::alive(one.pid)).count();
    ensure!(survived == 0, "{survived} containers outlived the power cut");
    let spaces = lab.nodes().iter().filter(|node| node.namespace_exists()).count();
    ensure!(spaces == 0, "{spaces} network namespaces outlived the power cut");
    Ok(format!("0 of {} containers, no daemon, no namespace and no control group left", lived.len()))
}

/// Everything is back as it was, of every kind; and nothing is what it was before, or there was no power cut.
fn compare(report: &mut Report, before: &Holding, after: &Holding) {
    let difference = before.until(after);
    difference.missing.iter().for_each(|thing| println!("  missing: {thing}"));
    difference.new.iter().for_each(|thing| println!("  new: {thing}"));
    for kind in [CONTAINER, "class", "qdisc", "element", "rule", "route", "accept", "setting"] {
        let missing = difference.missing.iter().filter(|thing| thing.kind == kind).count();
        let back = before.count(kind) - missing;
        let name = format!("power cut: {kind} back without the controller");
        report.verdict.check(&name, missing == 0 && back > 0, back, before.count(kind));
    }
    let beyond = difference.new.len();
    report.verdict.check("power cut: things that were not there before", beyond == 0, beyond, 0);
    let anew = difference.renewed.iter().filter(|thing| thing.kind == CONTAINER).count();
    let name = "power cut: containers that had to start anew";
    report.verdict.check(name, anew == before.count(CONTAINER), anew, before.count(CONTAINER));
}
