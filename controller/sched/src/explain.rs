//! A job that stays waiting, in words: the task in the way, per node why not, and whether waiting helps.

use edgeloom_common::ids::TaskName;

use crate::plan::{Reason, Unplaced};
use crate::streaming::{Case, Stuck};

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
