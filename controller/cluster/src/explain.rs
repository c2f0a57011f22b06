//! A job's explanation, in two steps: the owner puts the question together, the answer is worked out elsewhere.
//!
//! The scheduler tries every other node for every task and every limit a little larger; on a large cluster
//! that takes longer than the owner may be held up.

use crate::model::JobRecord;
use edgeloom_common::units::Bytes;
use edgeloom_common::view::{Explanation, TaskView};
use edgeloom_sched::explain;
use edgeloom_sched::snapshot::Snapshot;

/// All that an explanation needs.
#[derive(Debug)]
pub(crate) struct Question {
    known: Explanation,
    /// The cluster with the job in its place; none while it has none.
    snapshot: Option<Snapshot>,
}

/// What each task's image costs its node, as it was foretold and as it came.
fn pulls(tasks: &[TaskView]) -> impl Iterator<Item = String> {
    let pulled = tasks.iter().filter(|task| task.bytes_predicted > 0 || task.pull_s.is_some());
    pulled.map(|task| {
        let [predicted, fetched] = [task.bytes_predicted, task.bytes_fetched].map(Bytes);
        let seconds = task.pull_s_predicted.map(|seconds| format!(" in {seconds:.1} s")).unwrap_or_default();
        let took = task.pull_s.map(|seconds| format!(" in {seconds:.1} s")).unwrap_or_default();
        format!(
            "the image of task {} is {predicted} to {}{seconds}, predicted; {fetched} came{took}",
            task.name, task.node
        )
    })
}

impl Question {
    /// `snapshot` is asked for only if the job has a place; `tasks` are those of a job that runs or begins.
    pub(crate) fn of(record: &JobRecord, tasks: &[TaskView], snapshot: impl FnOnce() -> Snapshot) -> Self {
        let mut lines = record.plan.as_ref().map(|plan| plan.reasons.clone()).unwrap_or_default();
        lines.extend(pulls(tasks));
        lines.extend(Some(record.reason.clone()).filter(|reason| !reason.is_empty()));
        let known = Explanation {
            name: record.job.name.clone(),
            profile: record.profile.clone(),
            lines,
            items_per_s_predicted: None,
            tasks: Vec::new(),
            limit: None,
        };
        Self { known, snapshot: record.plan.as_ref().map(|_| snapshot()) }
    }

    /// Works the answer out; takes its time.
    pub(crate) fn answer(self) -> Explanation {
        let Some(found) = self.snapshot.and_then(|snapshot| explain(&snapshot, &self.known.name)) else {
            return self.known;
        };
        Explanation {
            items_per_s_predicted: Some(found.items_per_s_predicted),
            tasks: found.tasks,
            limit: found.limit,
            ..self.known
        }
    }
}
