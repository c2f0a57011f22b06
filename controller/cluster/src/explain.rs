//! A job's explanation, in two steps: the owner puts the question together, the answer is worked out elsewhere.
//!
//! The scheduler tries every other node for every task and every limit a little larger; on a large cluster
//! that takes longer than the owner may be held up.

use crate::model::JobRecord;
use edgeloom_common::view::Explanation;
use edgeloom_sched::explain;
use edgeloom_sched::snapshot::Snapshot;

/// All that an explanation needs.
#[derive(Debug)]
pub(crate) struct Question {
    known: Explanation,
    /// The cluster with the job in its place; none while it has none.
    snapshot: Option<Snapshot>,
}

impl Question {
    /// `snapshot` is asked for only if the job has a place.
    pub(crate) fn of(record: &JobRecord, snapshot: impl FnOnce() -> Snapshot) -> Self {
        let mut lines = record.plan.as_ref().map(|plan| plan.reasons.clone()).unwrap_or_default();
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
