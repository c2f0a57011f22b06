//! A batch's waiting tasks as the scheduler takes them: jobs of one task each, or of all of a gang.
//!
//! The scheduler places jobs whole, and a container that needs no other is a job of its own. So each task gets
//! a name that no job has, and what is decided on it is joined to the plan of the batch.

use super::{ACTIVE_MAX, ready};
use crate::model::{JobRecord, Model};
use crate::nodes::Nodes;
use crate::pulls::platforms;
use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::job::{Job, Kind};
use edgeloom_common::view::Bound;
use edgeloom_sched::plan::{Decision, JobPlan, Prediction, Unplaced};
use edgeloom_sched::snapshot::{Profiles, Waiting};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks of one name that are decided on at a time: where one finds no place, others like it find none either.
const ALIKE_MAX: usize = 64;
/// Lines of reasons that a plan keeps.
const REASONS_MAX: usize = 128;

/// Waiting tasks with the batches that they are of.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    of: BTreeMap<JobName, JobName>,
    pub(crate) entries: Vec<Waiting>,
    /// Containers that may be placed beside those that are.
    room: usize,
}

impl Parts {
    /// No part yet.
    pub(crate) fn new(model: &Model) -> Self {
        let batches = model.committed().filter(|(record, _)| record.job.kind.ends());
        let active: usize = batches.map(|(_, plan)| plan.placement.len()).sum();
        Self { room: ACTIVE_MAX.saturating_sub(active), ..Self::default() }
    }

    /// The tasks of a batch that wait for room alone.
    pub(crate) fn add(&mut self, (record, nodes): (&JobRecord, &Nodes), model: &Model, profiles: &Profiles) {
        let ready = ready(record, nodes);
        let begun = !record.ended.is_empty() || record.plan.is_some();
        if record.job.kind == Kind::Batch && !begun {
            let all: Vec<&TaskName> = ready.into_values().flatten().collect();
            // Its tasks start together however many they are.
            self.room = self.room.max(all.len());
            self.add_part(record, &all, model, profiles);
            return;
        }
        for alike in ready.into_values() {
            for task in alike.into_iter().take(ALIKE_MAX) {
                self.add_part(record, &[task], model, profiles);
            }
        }
    }

    fn add_part(&mut self, record: &JobRecord, tasks: &[&TaskName], model: &Model, profiles: &Profiles) {
        let Some(name) = self.free_name(model) else { return };
        let of = |task: &&TaskName| Some(((*task).clone(), record.job.tasks.get(*task)?.clone()));
        let image = |task: &&TaskName| Some(((*task).clone(), record.images.get(*task)?.clone()));
        let profile = |task: &&TaskName| Some(((*task).clone(), profiles.get(*task)?.clone()));
        let (job, images) = (&record.job, tasks.iter().filter_map(image).collect());
        let job = Job {
            name: name.clone(),
            kind: Kind::Batch,
            tasks: tasks.iter().filter_map(of).collect(),
            source: None,
            profile: job.profile.clone(),
            disconnect: job.disconnect,
            sla: job.sla,
        };
        self.of.insert(name, record.job.name.clone());
        self.entries.push(Waiting {
            job,
            since_ms: record.since_ms,
            images: platforms(&images),
            profiles: tasks.iter().filter_map(profile).collect(),
        });
    }

    /// A name that no job has, in the order of the parts.
    fn free_name(&self, model: &Model) -> Option<JobName> {
        let first = self.of.last_key_value().map_or(0, |(name, _)| number(name) + 1);
        let names = (first..).map_while(|number| format!("part-{number:09}").parse::<JobName>().ok());
        names.into_iter().find(|name| !model.jobs.contains_key(name))
    }

    /// The decision in terms of batches: their parts joined, and for each batch the first part that has no place.
    pub(crate) fn join<'a>(
        &mut self,
        decision: Decision,
        record: impl Fn(&JobName) -> Option<&'a JobRecord>,
    ) -> Decision {
        let (parts, mut plans): (Vec<JobPlan>, Vec<JobPlan>) =
            decision.plans.into_iter().partition(|plan| self.of.contains_key(&plan.job));
        for part in parts {
            let Some(name) = self.of.get(&part.job) else { continue };
            let Some(left) = self.room.checked_sub(part.placement.len()) else { continue };
            self.room = left;
            match plans.iter_mut().find(|plan| plan.job == *name) {
                Some(plan) => extend(plan, part),
                None => {
                    let before = record(name).and_then(|record| record.plan.clone());
                    let mut plan = before.unwrap_or_else(|| empty(name, &part.profile));
                    extend(&mut plan, part);
                    plans.push(plan);
                }
            }
        }
        let mut told = BTreeSet::new();
        let mut unplaced = decision.unplaced;
        // What waits in vain is to be told before what only waits.
        unplaced.sort_by_key(|unplaced| !unplaced.never);
        let unplaced = unplaced.into_iter().filter_map(|unplaced| {
            let job = self.of.get(&unplaced.job).unwrap_or(&unplaced.job).clone();
            told.insert(job.clone()).then_some(Unplaced { job, ..unplaced })
        });
        Decision { unplaced: unplaced.collect(), plans }
    }
}

fn number(name: &JobName) -> u32 {
    name.as_str().rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn empty(job: &JobName, profile: &str) -> JobPlan {
    JobPlan {
        job: job.clone(),
        profile: profile.to_owned(),
        placement: BTreeMap::new(),
        shares: BTreeMap::new(),
        flows: Vec::new(),
        prediction: Prediction { items_per_s: 0.0, bound: Bound::Compute, bound_by: String::new() },
        reasons: Vec::new(),
    }
}

fn extend(plan: &mut JobPlan, part: JobPlan) {
    plan.placement.extend(part.placement);
    plan.shares.extend(part.shares);
    plan.reasons.extend(part.reasons);
    let old = plan.reasons.len().saturating_sub(REASONS_MAX);
    plan.reasons.drain(..old);
}
