//! A drain: the node's tasks run elsewhere and nothing new comes, until the node is opened.

use super::hole::{Hole, MOVABLE, place};
use super::report::{MoveRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use anyhow::{Context, Result};
use edgeloom_common::view::JobState;
use std::time::{Duration, Instant};

/// Jobs that might go to the node, and the one that can go nowhere else.
const NEW: usize = 4;
const BOUND: &str = "bound";
/// What a job may lose while one of its tasks moves.
const HOLE_MAX_S: f64 = 5.0;
/// Whoever would be started on the drained node against all orders would be by then.
const LOOKED_FOR: Duration = Duration::from_secs(4);

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    let document = stage.start(MOVABLE)?;
    stage.ground.expect_items(&document)?;
    let node = place(stage, &document)?;
    let hole = Hole::watch(stage, &document)?;
    let begun = Instant::now();
    stage.edgeloom(&["drain", &node])?;
    stage.await_empty(&node)?;
    let empty_s = begun.elapsed().as_secs_f64();
    let mut now = node.clone();
    wait_for("the task to run elsewhere", PATIENCE, || {
        now = place(stage, &document).unwrap_or_else(|_| node.clone());
        Ok(now != node)
    })?;
    let hole_s = hole.seconds()?;
    report.moves.push(MoveRow { how: "drain", node: node.clone(), empty_s, hole_s });
    println!("  {node} is empty after {empty_s:.1} s; the job lost {hole_s:.2} s");
    report.verdict.check(
        &format!("drain of {node}: its task runs elsewhere"),
        now != node,
        now,
        format!("not {node}"),
    );
    report.verdict.check(
        "drain: seconds of items that the job lost",
        hole_s <= HOLE_MAX_S,
        hole_s,
        HOLE_MAX_S,
    );
    let told = drained(stage, &node)?;
    report.verdict.check(&format!("{node} is told as drained"), told, told, true);
    refuses(stage, report, &node)
}

/// The node takes nothing new, and a task of it shows up nowhere.
fn drained(stage: &Stage, node: &str) -> Result<bool> {
    let nodes = stage.ground.api.nodes()?.nodes;
    let view = nodes.into_iter().find(|one| one.name.as_str() == node).context("the node is listed")?;
    Ok(view.cordon.is_some_and(|cordon| cordon.drain && cordon.tasks.is_empty()))
}

fn refuses(stage: &Stage, report: &mut Report, node: &str) -> Result<()> {
    for number in 0..NEW {
        stage.start(&small(&format!("new-{number}"), ""))?;
    }
    stage.ground.api.post(&small(BOUND, &format!("    constraints: [\"node.name == {node}\"]\n")))?;
    std::thread::sleep(LOOKED_FOR);
    report.none(&format!("containers on {node} while it is drained"), &stage.tasks_on(node)?);
    let waiting = stage.view(BOUND)?;
    let waits = waiting.state == JobState::Waiting;
    report.verdict.check(
        "who can go nowhere else waits, and is told why",
        waits && !waiting.reason.is_empty(),
        waiting.reason,
        "a reason",
    );
    let begun = Instant::now();
    stage.edgeloom(&["uncordon", node])?;
    let runs = wait_for("the opened node to take a task", PATIENCE, || {
        Ok(stage.container(BOUND).is_ok_and(|one| one.node == node))
    });
    report.verdict.check(
        "uncordon: it runs there, s",
        runs.is_ok(),
        begun.elapsed().as_secs_f64(),
        PATIENCE.as_secs_f64(),
    );
    Ok(())
}

/// A container of little, wherever the rules let it.
pub(super) fn small(name: &str, rules: &str) -> String {
    format!(
        "kind: Job\nname: {name}\ntasks:\n  work:\n    image: 10.60.0.1:5000/vision/age:1.0\n    command: [idle]\n    \
         resources: {{ cpu: 20m, memory: 16MiB }}\n{rules}"
    )
}
