//! The number of nodes follows the load: emptied while little is requested, back before a job waits.

use super::drain::small;
use super::hole::{Hole, MOVABLE};
use super::report::{MoveRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use anyhow::Result;
use edgeloom_common::view::{CordonedBy, JobState};
use std::time::{Duration, Instant};

/// What an operator writes; the time is short, that the run be.
const SECTION: &str = "\n[consolidation]\nactive_nodes = \"follow-load\"\nsteady = \"3s\"\n";
/// So many can be spared: the job has its source on n1.
const SPARED: usize = 2;
/// More than the nodes that are left have.
const LARGE: &str = "large";
const PARTS: usize = 4;
/// What the events of a job that finds no room are of.
const WAITING: &str = "waiting";

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    let document = stage.start(MOVABLE)?;
    stage.ground.expect_items(&document)?;
    stage.configure(SECTION)?;
    let hole = Hole::watch(stage, &document)?;
    let begun = Instant::now();
    stage.restart_controller()?;
    let mut spared = Vec::new();
    let waited = wait_for("nodes to be spared", 2 * PATIENCE, || {
        std::thread::sleep(Duration::from_millis(200));
        spared = by_load(stage)?;
        Ok(spared.len() >= SPARED)
    });
    report.verdict.check("low load: nodes that take nothing new", waited.is_ok(), spared.len(), SPARED);
    for node in &spared {
        stage.await_empty(node)?;
    }
    let empty_s = begun.elapsed().as_secs_f64();
    let hole_s = hole.seconds()?;
    report.moves.push(MoveRow { how: "follow-load", node: spared.join(", "), empty_s, hole_s });
    comes_back(stage, report)
}

/// Nodes that the load has emptied.
fn by_load(stage: &Stage) -> Result<Vec<String>> {
    let nodes = stage.ground.api.nodes()?.nodes.into_iter();
    let by_load =
        nodes.filter(|node| node.cordon.as_ref().is_some_and(|cordon| cordon.by == CordonedBy::Load));
    Ok(by_load.map(|node| node.name.to_string()).collect())
}

/// A job for which the nodes that are left do not suffice is placed at once.
fn comes_back(stage: &Stage, report: &mut Report) -> Result<()> {
    let before = by_load(stage)?;
    let posted = stage.ground.api.post(&large())?;
    let at_once = posted.state != JobState::Waiting;
    report.verdict.check(
        "a job that needs more is placed at once",
        at_once,
        format!("{:?}", posted.state),
        "not waiting",
    );
    let back: Vec<String> =
        before.iter().filter(|node| !by_load(stage).is_ok_and(|now| now.contains(node))).cloned().collect();
    report.verdict.check("and spared nodes are back", !back.is_empty(), back.join(", "), "one or more");
    stage.ground.engines.wait_running(&format!("edgeloom.job={LARGE}"), PARTS, |_| ())?;
    let there = stage.containers(LARGE)?.into_iter().filter(|one| back.contains(&one.node)).count();
    report.verdict.check("with containers of it, by their Docker", there > 0, there, "some");
    let events = stage.ground.api.events_after(0)?.into_iter();
    let waited = events.filter(|event| event.kind == WAITING && event.job.as_ref() == Some(&posted.name));
    report.none("events that say that it waited", &waited.map(|event| event.text).collect::<Vec<_>>());
    Ok(())
}

/// Tasks of their own that together request 1.2 cores.
fn large() -> String {
    let document = small(LARGE, "");
    let (head, task) = document.split_once("  work:\n").expect("the document has a task");
    let task = task.replace("20m", "180m");
    let tasks = (0..PARTS).map(|number| format!("  work-{number}:\n{task}"));
    tasks.fold(head.to_owned(), |text, task| text + &task)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_large_job_reads() {
        let job = edgeloom_common::job::parse(super::large().as_bytes()).unwrap();
        assert_eq!(job.tasks.len(), super::PARTS);
    }
}
