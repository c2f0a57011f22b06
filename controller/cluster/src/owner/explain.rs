//! Questions about why a job is where it is, answered away from the owner.

use super::Owner;
use crate::explain::Question;
use crate::model::{JobRecord, Model};
use crate::views::tasks;
use edgeloom_common::ids::JobName;
use edgeloom_common::view::JobView;
use std::collections::BTreeMap;

/// A dry run's answer, and what its explanation needs.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) view: JobView,
    /// None where the job finds no place.
    pub(crate) question: Option<Question>,
}

impl Owner {
    /// What has to be answered to explain a job.
    pub(crate) fn question(&self, name: &JobName) -> Option<Question> {
        Some(self.question_in(self.model(), self.model().jobs.get(name)?))
    }

    /// The same in a state that is only thought of.
    pub(super) fn question_in(&self, model: &Model, record: &JobRecord) -> Question {
        let tasks = record.plan.as_ref().map(|plan| tasks(&self.nodes, record, plan)).unwrap_or_default();
        Question::of(record, &tasks, || {
            let down = self.nodes.down(&model.topology);
            self.planner(model, &down, &BTreeMap::new()).standing()
        })
    }
}
