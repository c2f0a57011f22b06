//! A node is lost, and returns: its tasks run elsewhere soon, and end up once each, nothing healthy restarted.

use super::containers::Container;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use super::ways::way;
use crate::api::wait_for;
use crate::faults;
use crate::ground::Ground;
use crate::meter::{Meter, Snapshot};
use anyhow::{Context, Result, ensure};
use edgeloom_common::view::{FlowView, JobState, JobView};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The job, which says `reconcile: keep_original`.
const REPLACEABLE: &str = include_str!("../jobs/replaceable.yaml");
/// A task of it that may run on more than one node.
const MOVABLE: &str = "decode";
const KEEP_ORIGINAL: &str = "keep_original";
const KEEP_REPLACEMENT: &str = "keep_replacement";
/// As the job says.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// From then on until every task of the lost node runs elsewhere and is reached.
const BOUND: Duration = Duration::from_secs(10);

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    for reconcile in [KEEP_ORIGINAL, KEEP_REPLACEMENT] {
        let stage = Stage::set(ground, &REPLACEABLE.replace(KEEP_ORIGINAL, reconcile))?;
        one(&stage, reconcile, report)?;
        stage.clear()?;
    }
    Ok(())
}

/// Which container each task runs in.
type Lives = BTreeMap<String, Container>;

fn one(stage: &Stage<'_>, reconcile: &str, report: &mut Report) -> Result<()> {
    let names = stage.ground.node_names();
    let view = stage.view()?;
    for image in view.tasks.iter().map(|task| &task.image).collect::<BTreeSet<_>>() {
        stage.ground.engines.pull(image)?;
    }
    let loss = Loss::next(stage, &view)?;
    let target = format!("{}, {reconcile}", loss.node);
    let (held, before) = (stage.steady()?, lives(stage, &names)?);

    let (effect, reached) = loss.befall(&target, report)?;
    let elsewhere = lives(stage, &loss.survivors)?;
    let begun = Instant::now();
    loss.end(&view, reconcile)?;
    println!("  {} is back and settled after {:.1} s", loss.node, begun.elapsed().as_secs_f64());
    stage.expect_items()?;
    let kept = if reconcile == KEEP_ORIGINAL { &before } else { &elsewhere };
    let name = format!("lost node ({target}): healthy containers that did not stay, of {}", kept.len());
    let gone = without(kept, &lives(stage, &names)?);
    report.verdict.check(&name, gone == 0, gone, 0);
    let changed = held.until(&stage.steady()?);
    report.rows.push(FaultRow::new(("lost-node", &target), effect, reached, &changed));
    Ok(())
}

/// Each task's container; a second one is an error, whether it runs or not.
fn lives(stage: &Stage<'_>, nodes: &[String]) -> Result<Lives> {
    let mut lives = Lives::new();
    for one in stage.containers(nodes)? {
        let task = one.task.clone();
        let second = lives.insert(task.clone(), one);
        ensure!(second.is_none(), "{task} has two containers: {:?} and {second:?}", lives[&task]);
    }
    Ok(lives)
}

/// How many of these containers are not what runs now; each is told.
fn without(kept: &Lives, now: &Lives) -> usize {
    let other = |(task, one): &(&String, &Container)| now.get(*task).is_none_or(|now| now.life != one.life);
    kept.iter()
        .filter(other)
        .inspect(|(task, one)| println!("  did not stay: {task} on {}", one.node))
        .count()
}

/// A node that is lost, and who is left.
struct Loss<'a> {
    stage: &'a Stage<'a>,
    node: String,
    /// Its tasks.
    tasks: Vec<String>,
    survivors: Vec<String>,
}

impl<'a> Loss<'a> {
    /// The node of a task that may run elsewhere.
    fn next(stage: &'a Stage<'a>, view: &JobView) -> Result<Self> {
        let movable = view.tasks.iter().find(|task| task.name.as_str() == MOVABLE);
        let node = movable.context("the job has the task")?.node.to_string();
        let there = view.tasks.iter().filter(|task| task.node.as_str() == node);
        let tasks = there.map(|task| task.name.to_string()).collect();
        let survivors = stage.ground.node_names().into_iter().filter(|name| *name != node).collect();
        Ok(Self { stage, node, tasks, survivors })
    }

    /// Loses the node; what was seen of that, and how long it took until every flow came through again.
    fn befall(&self, target: &str, report: &mut Report) -> Result<(String, Duration)> {
        let lab = &self.stage.ground.lab;
        let meter = Meter::start(lab)?;
        let before = meter.snapshot();
        let begun = Instant::now();
        faults::lose(lab, &lab.node(&self.node)?)?;
        let (running, reached) = self.await_elsewhere(begun, || meter.snapshot().since(&before))?;
        self.stage.await_presence(&self.node, false)?;
        self.stage.expect_items()?;
        let effect = format!("{} is offline and its Docker dead, with {} tasks", self.node, self.tasks.len());
        println!("  {effect}");
        let late = |took: Duration| took.saturating_sub(LOST_AFTER);
        let name = format!("lost node ({target}): its tasks run elsewhere, s after lost_after");
        report.within(&name, late(running), BOUND);
        let name = format!("lost node ({target}): and every flow comes through, s after lost_after");
        report.within(&name, late(reached), BOUND);
        Ok((effect, reached))
    }

    /// Waits until the tasks run elsewhere, and until every flow of the job has delivered an item since then.
    fn await_elsewhere(
        &self,
        begun: Instant,
        counted: impl Fn() -> Snapshot,
    ) -> Result<(Duration, Duration)> {
        let runs =
            |task: &String, found: &[Container]| found.iter().any(|one| one.task == *task && one.running);
        wait_for("the lost node's tasks to run elsewhere", PATIENCE, || {
            let found = self.stage.containers(&self.survivors);
            Ok(found.is_ok_and(|found| self.tasks.iter().all(|task| runs(task, &found))))
        })?;
        let (running, since) = (begun.elapsed(), counted());
        wait_for("every flow to deliver", PATIENCE, || {
            let view = self.stage.view()?;
            let now = counted().since(&since);
            let delivers =
                |flow: &FlowView| flow.key.is_some_and(|key| way(flow, &now.links_of(&key)).is_some());
            let moved =
                view.tasks.iter().all(|task| self.survivors.iter().any(|name| name == task.node.as_str()));
            Ok(moved && view.flows.iter().all(delivers))
        })?;
        Ok((running, begun.elapsed()))
    }

    /// Brings the node back, and waits until every task is where the job wants it, with one container each.
    fn end(&self, original: &JobView, reconcile: &str) -> Result<()> {
        let lab = &self.stage.ground.lab;
        faults::restore(lab, &lab.node(&self.node)?)?;
        let names = self.stage.ground.node_names();
        let place = |view: &JobView| -> BTreeMap<String, String> {
            view.tasks.iter().map(|task| (task.name.to_string(), task.node.to_string())).collect()
        };
        wait_for("tasks to be where they belong, once each", PATIENCE, || {
            let view = self.stage.view()?;
            let home = place(&view) == place(original);
            let settled = view.state == JobState::Running && home == (reconcile == KEEP_ORIGINAL);
            // One that is removed between listing and looking is an error, and not the end of the matter.
            let once = self
                .stage
                .containers(&names)
                .is_ok_and(|found| found.len() == view.tasks.len() && found.iter().all(|one| one.running));
            Ok(settled && once)
        })?;
        self.stage.converged("after the node's return")
    }
}
