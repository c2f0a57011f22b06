//! Lines that are cut: flows over them are led another way at once, without waiting for anything to settle.
//!
//! In: what both ends of each link say, and plans. Out: re-plans in which every task stays where it is. Only
//! a job that has been without a way for its `lost_after` may have tasks moved for it: until then whatever
//! is at the other end may be back as soon as its tasks would have moved.

use super::Owner;
use crate::lost::{lost_after_ms, pinned};
use crate::model::JobRecord;
use crate::planner::{LINK_SHARE, Outcome, PlanError};
use crate::replan::Cause;
use crate::topology::{DownLinks, pair};
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_sched::plan::{JobPlan, Unplaced};
use edgeloom_sched::snapshot::Change;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs with a flow that has no way.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    since_ms: BTreeMap<JobName, u64>,
    /// What nodes and links offered when no other way was found, and whether tasks might move.
    tried: BTreeMap<JobName, (String, bool)>,
}

impl Owner {
    /// Notes since when jobs have been without a way.
    pub(super) fn follow_cuts(&mut self) {
        let links = self.joined();
        let without = |plan: &JobPlan| hops(plan).any(|(a, b)| !links.contains(&pair(a, b)));
        let cut = self.model().committed().filter(|(_, plan)| without(plan));
        let cut: BTreeSet<JobName> = cut.map(|(record, _)| record.job.name.clone()).collect();
        let now_ms = self.now_ms;
        let cuts = &mut self.closed_loop.cuts;
        cuts.since_ms.retain(|job, _| cut.contains(job));
        cuts.tried.retain(|job, _| cut.contains(job));
        for job in cut {
            cuts.since_ms.entry(job).or_insert(now_ms);
        }
    }

    /// Pairs whose link may carry something now.
    fn joined(&self) -> DownLinks {
        self.nodes.links().into_iter().map(|link| pair(&link.a, &link.b)).collect()
    }

    /// Plans jobs anew whose flows cross a line that is down.
    pub(super) fn lead_around(&mut self) {
        let offer = self.offer();
        for (cause, jobs) in self.cut() {
            let new = |job: &JobName| {
                let now = (offer.clone(), self.may_move(job));
                self.closed_loop.cuts.tried.get(job) != Some(&now)
            };
            let jobs: Vec<JobName> = jobs.into_iter().filter(new).collect();
            if jobs.is_empty() || !self.model().settled() {
                continue;
            }
            for job in &jobs {
                let now = (offer.clone(), self.may_move(job));
                self.closed_loop.cuts.tried.insert(job.clone(), now);
            }
            let seen = self.seen();
            self.replan(&cause, &jobs, &seen);
        }
    }

    /// Lines that are down by what their ends say and have been for long enough, with the jobs that cross them.
    fn cut(&self) -> Vec<(Cause, Vec<JobName>)> {
        let down = self.nodes.down(&self.model().topology);
        let dead =
            |a: &NodeId, b: &NodeId| down.contains(&pair(a, b)) && self.nodes.capacities.link(a, b).is_none();
        let mut found: BTreeMap<(NodeId, NodeId), Vec<JobName>> = BTreeMap::new();
        for (record, plan) in self.model().committed().filter(|(_, plan)| self.all_there(plan)) {
            if let Some((a, b)) = hops(plan).find(|(a, b)| dead(a, b)) {
                found.entry((a.clone(), b.clone())).or_default().push(record.job.name.clone());
            }
        }
        let with_cause = |((a, b), jobs)| (self.cut_cause(a, b), jobs);
        found.into_iter().map(with_cause).collect()
    }

    fn cut_cause(&self, from: NodeId, to: NodeId) -> Cause {
        let plans = self.model().committed().map(|(_, plan)| plan);
        let crossing = plans
            .flat_map(|plan| &plan.flows)
            .filter(|flow| flow.path.windows(2).any(|hop| (&hop[0], &hop[1]) == (&from, &to)));
        let reserved_bps = crossing.map(|flow| flow.rate.as_f64()).sum();
        let was_bps = self.nodes.capacities.before(&from, &to) * LINK_SHARE;
        Cause::Link { from, to, was_bps, now_bps: 0.0, reserved_bps }
    }

    fn may_move(&self, job: &JobName) -> bool {
        let Some(record) = self.model().jobs.get(job) else { return false };
        let since_ms = self.closed_loop.cuts.since_ms.get(job).copied().unwrap_or(self.now_ms);
        let long = self.now_ms.saturating_sub(since_ms) >= lost_after_ms(record);
        long && record.job.disconnect.replace
    }

    /// Plans with leave to change these jobs. Where a flow has no way any more there is nothing to go on from,
    /// so its job is placed as if it waited: with tasks where they are, or anywhere if they may move.
    pub(super) fn another_way(
        &self,
        jobs: &[JobName],
        changes: &BTreeMap<JobName, Change>,
    ) -> Result<Outcome, PlanError> {
        let links = self.joined();
        let cut = |record: &&JobRecord| {
            let plan = record.plan.as_ref();
            plan.is_some_and(|plan| hops(plan).any(|(a, b)| !links.contains(&pair(a, b))))
        };
        let records = jobs.iter().filter_map(|job| self.model().jobs.get(job)).filter(cut);
        let records: Vec<JobRecord> = records.cloned().collect();
        let held: Vec<JobRecord> = records.iter().map(|record| pinned(record, &BTreeSet::new())).collect();
        // What else may change must not move what is held here.
        let mut others = changes.clone();
        others.retain(|job, _| !records.iter().any(|record| record.job.name == *job));
        let mut found = self.placed(&held, &others)?;
        let movable = |record: &JobRecord| self.may_move(&record.job.name);
        if !found.unplaced.is_empty() && records.iter().any(movable) {
            let free = records.into_iter().zip(&held);
            let free = free.map(|(record, held)| if movable(&record) { record } else { held.clone() });
            let second = self.placed(&free.collect::<Vec<_>>(), &others)?;
            if second.unplaced.len() < found.unplaced.len() {
                found = second;
            }
        }
        if found.unplaced.is_empty() { Ok(found) } else { self.without_stuck(&held, others, found.unplaced) }
    }

    fn placed(
        &self,
        records: &[JobRecord],
        changes: &BTreeMap<JobName, Change>,
    ) -> Result<Outcome, PlanError> {
        self.outcome(&records.iter().collect::<Vec<_>>(), changes)
    }

    /// Jobs that find no way stay exactly as they are; the others get what they can.
    fn without_stuck(
        &self,
        held: &[JobRecord],
        mut changes: BTreeMap<JobName, Change>,
        unplaced: Vec<Unplaced>,
    ) -> Result<Outcome, PlanError> {
        let stuck = |record: &&JobRecord| unplaced.iter().any(|it| it.job == record.job.name);
        let rest: Vec<JobRecord> = held.iter().filter(|record| !stuck(record)).cloned().collect();
        if rest.is_empty() && changes.is_empty() {
            return Ok(Outcome { commits: Vec::new(), unplaced });
        }
        changes.extend(unplaced.iter().map(|it| (it.job.clone(), Change::Nothing)));
        let outcome = self.placed(&rest, &changes)?;
        Ok(Outcome { unplaced, ..outcome })
    }
}

fn hops(plan: &JobPlan) -> impl Iterator<Item = (&NodeId, &NodeId)> {
    plan.flows.iter().flat_map(|flow| flow.path.windows(2)).map(|hop| (&hop[0], &hop[1]))
}
