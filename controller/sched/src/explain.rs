//! Decisions in words. Of a job that runs: for each task why this node and why not the others, and what
//! limits the job now. Of one that waits: the task in the way, per node why not, and whether waiting helps.
//!
//! Pure and read-only, over the same snapshot as decisions. [`explain`] asks what is true now, not what the
//! planner thought then: `JobPlan::reasons` has that.

mod enlarge;
mod limit;
mod others;
mod subject;
mod words;

use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::view::{LimitView, TaskExplanation};
use serde::Serialize;

use crate::plan::{Reason, Unplaced};
use crate::snapshot::Snapshot;
use crate::streaming::{Case, Stuck};
use subject::Subject;

/// A running job, explained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobExplanation {
    pub items_per_s_predicted: f64,
    pub tasks: Vec<TaskExplanation>,
    /// None where nothing that is known limits the job.
    pub limit: Option<LimitView>,
}

/// Explains a job that runs in the snapshot. None: it does not run there, or a node or link of its plan is
/// gone.
#[must_use]
pub fn explain(snapshot: &Snapshot, job: &JobName) -> Option<JobExplanation> {
    let subject = Subject::of(snapshot, job)?;
    Some(JobExplanation {
        items_per_s_predicted: subject.limit().0,
        tasks: others::tasks(&subject),
        limit: limit::limit(snapshot, job),
    })
}

/// The answer for a job that found no place.
pub(crate) fn unplaced(case: &Case<'_>, stuck: &Stuck, never: bool) -> Unplaced {
    let task =
        case.graph.vertices.get(stuck.vertex).map_or_else(TaskName::source, |vertex| vertex.name.clone());
    let reasons = stuck.refusals.iter().enumerate().map(|(node, text)| Reason {
        node: case.world.name(node).clone(),
        text: if text.is_empty() { "another task of the job needs it".to_owned() } else { text.clone() },
    });
    Unplaced { job: case.graph.job.name.clone(), task, reasons: reasons.collect(), never }
}
