//! What a running job loses while a task of it moves: items that its last task has not finished.

use super::stage::Stage;
use crate::document::Document;
use crate::engines::Count;
use anyhow::{Context, Result};
use std::time::Duration;

/// The job, whose source makes ten items a second and whose last task stays where it is.
pub(super) const MOVABLE: &str = include_str!("../jobs/movable.yaml");
/// The task that moves.
pub(super) const TASK: &str = "decode";
/// As the job says.
const ITEMS_PER_S: f64 = 10.0;
/// Programs count every two seconds; what flows again is counted by then.
const SETTLES: Duration = Duration::from_secs(5);

/// A watch over the job's items.
#[derive(Debug)]
pub(super) struct Hole<'a> {
    stage: &'a Stage,
    document: &'a Document,
    begun: Count,
}

impl<'a> Hole<'a> {
    pub(super) fn watch(stage: &'a Stage, document: &'a Document) -> Result<Self> {
        Ok(Self { stage, document, begun: count(stage, document)? })
    }

    /// Seconds of items that are missing since then, once items come through again.
    #[expect(clippy::cast_precision_loss, reason = "some hundred items")]
    pub(super) fn seconds(&self) -> Result<f64> {
        self.stage.ground.expect_items(self.document)?;
        std::thread::sleep(SETTLES);
        let now = count(self.stage, self.document)?;
        let missing = (now.at_s - self.begun.at_s) - now.since(self.begun) as f64 / ITEMS_PER_S;
        Ok(missing.max(0.0))
    }
}

fn count(stage: &Stage, document: &Document) -> Result<Count> {
    let sink = document.sinks.first().context("the job has a last task")?;
    stage.ground.engines.items(&document.name, sink)
}

/// On which node the task that moves runs, by Docker.
pub(super) fn place(stage: &Stage, document: &Document) -> Result<String> {
    let found = stage.containers(&document.name)?.into_iter().find(|one| one.task == TASK);
    Ok(found.context("the task runs")?.node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_reads_and_has_one_last_task() {
        assert_eq!(Document::read(MOVABLE).unwrap().sinks, ["track"]);
        let job = edgeloom_common::job::parse(MOVABLE.as_bytes()).unwrap();
        assert!(job.tasks.contains_key(&TASK.parse().unwrap()));
        assert!((job.source.unwrap().rate_per_s.unwrap() - ITEMS_PER_S).abs() < 1e-9);
    }
}
