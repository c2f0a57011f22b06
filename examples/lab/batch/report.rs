//! What became of the containers, and how fast.

use crate::checks::{self, Checks, print_table};
use crate::kills::lives::Lives;
use edgeloom_common::view::{JobState, JobView};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Ended containers that a node keeps.
const KEPT_MAX: usize = 64;

/// A daemon that was killed.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Kill {
    pub(super) victim: String,
    /// From the post on.
    pub(super) at_s: f64,
    /// Containers that had succeeded, and that ran.
    pub(super) succeeded: usize,
    pub(super) running: usize,
}

/// One node's part.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct NodeRow {
    pub(super) node: String,
    pub(super) containers: usize,
    /// Time in containers, by the node's clock.
    pub(super) busy_s: f64,
}

/// The whole run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    verdict: Checks,
    containers: usize,
    /// From the post until the controller told that the batch is over.
    pub(super) seconds: f64,
    containers_per_s: f64,
    pub(super) kills: Vec<Kill>,
    rows: Vec<NodeRow>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    /// Nothing seen yet.
    pub(super) fn of(containers: usize) -> Self {
        Self { containers, ..Self::default() }
    }

    /// Holds what was seen against what the controller tells.
    pub(super) fn judge(&mut self, view: &JobView, lives: &Lives) {
        #[expect(clippy::cast_precision_loss, reason = "some hundred containers")]
        let rate = self.containers as f64 / self.seconds;
        self.containers_per_s = rate;
        self.rows = rows(view);
        let wanted = self.containers;
        let succeeded = view.batch.map_or(0, |batch| batch.succeeded);
        let state = view.state == JobState::Succeeded;
        self.verdict.check("all containers complete", state && succeeded == wanted, succeeded, wanted);
        let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
        for life in lives.ended.iter().map(|ended| &ended.life).filter(|life| life.job == view.name.as_str())
        {
            *runs.entry(&life.task).or_default() += 1;
        }
        let twice: Vec<&str> = runs.iter().filter(|(_, count)| **count > 1).map(|(task, _)| *task).collect();
        self.verdict.check("none runs twice, by its processes", twice.is_empty(), twice.join(", "), "none");
        self.verdict.check("none is lost: each was seen to run", runs.len() == wanted, runs.len(), wanted);
        let again: BTreeSet<&str> =
            view.tasks.iter().filter(|task| task.restarts > 0).map(|task| task.name.as_str()).collect();
        let again: Vec<&str> = again.into_iter().collect();
        self.verdict.check("none was started again, by its node", again.is_empty(), again.join(", "), "none");
        let nodes = self.rows.len();
        self.verdict.check("all four nodes take part", nodes == 4, nodes, 4);
    }

    /// Ended containers are there for their logs until the job is stopped.
    pub(super) fn kept(&mut self, kept: usize, left: usize) {
        let wanted: usize = self.rows.iter().map(|row| row.containers.min(KEPT_MAX)).sum();
        self.verdict.check("ended containers are kept, the last of each node", kept == wanted, kept, wanted);
        self.verdict.check("none is left once the job is stopped", left == 0, left, 0);
    }

    pub(super) fn print(&self) {
        println!();
        let line =
            |row: &NodeRow| vec![row.node.clone(), row.containers.to_string(), format!("{:.1}", row.busy_s)];
        let lines: Vec<Vec<String>> = self.rows.iter().map(line).collect();
        print_table(&["node", "containers", "seconds in containers"], &lines);
        println!(
            "  {} containers in {:.1} s: {:.2} a second",
            self.containers, self.seconds, self.containers_per_s
        );
        println!();
    }
}

fn rows(view: &JobView) -> Vec<NodeRow> {
    let mut rows: BTreeMap<String, NodeRow> = BTreeMap::new();
    for task in view.tasks.iter().filter(|task| task.outcome.is_some()) {
        let node = task.node.to_string();
        let row = rows.entry(node.clone()).or_insert_with(|| NodeRow { node, ..NodeRow::default() });
        row.containers += 1;
        let ran_ms =
            task.started_ms.zip(task.finished_ms).map_or(0, |(start, end)| end.saturating_sub(start));
        row.busy_s += std::time::Duration::from_millis(ran_ms).as_secs_f64();
    }
    rows.into_values().collect()
}
