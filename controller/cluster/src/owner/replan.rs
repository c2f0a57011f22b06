//! The closed loop: once a second what runs is held against its plan; what lasts leads to a new one.
//!
//! In: reports, steady capacities, the replanner's findings. Out: commits of running jobs under new plans,
//! and an event for each, also for one that was due and found nothing better. Nothing is planned anew while a
//! change is on its way to the nodes.

use super::Owner;
use super::cores::Uses;
use super::cuts::Cuts;
use super::difference::difference;
use crate::events::Kind;
use crate::model::{Commit, Event, JobRecord, Phase};
use crate::planner::{profiles, reason};
use crate::replan::{Cause, Finding, Replanner, Seen};
use crate::throughput::{Throughput, WINDOW_MS};
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::report::Report;
use edgeloom_common::view::{JobState, MeasuredView};
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::{Change, Profiles, TaskProfile};
use std::collections::{BTreeMap, BTreeSet};

/// One job's plan, and since when all of it runs.
#[derive(Debug)]
pub(super) struct Known {
    plan: JobPlan,
    pub(super) running_ms: Option<u64>,
}

/// What is measured of running jobs, and what follows.
#[derive(Debug, Default)]
pub(super) struct ClosedLoop {
    pub(super) throughput: Throughput,
    replanner: Replanner,
    /// Works measured while jobs run.
    online: BTreeMap<JobName, Profiles>,
    pub(super) known: BTreeMap<JobName, Known>,
    pub(super) cuts: Cuts,
    pub(super) uses: Uses,
    /// Jobs that this controller saw begin.
    pub(super) witnessed: BTreeSet<JobName>,
}

impl ClosedLoop {
    pub(super) fn take(&mut self, node: &NodeId, report: &Report, now_ms: u64) {
        self.throughput.take(node, report, now_ms);
    }

    pub(super) fn measured(&self, record: &JobRecord, now_ms: u64) -> Option<MeasuredView> {
        self.throughput.measured(&record.job, record.plan.as_ref()?, now_ms, WINDOW_MS)
    }

    pub(super) fn replans(&self, job: &JobName) -> u32 {
        self.replanner.replans(job)
    }

    pub(super) const fn online(&self) -> &BTreeMap<JobName, Profiles> {
        &self.online
    }
}

impl Owner {
    pub(super) fn close_the_loop(&mut self) {
        self.follow_plans();
        self.follow_cuts();
        self.follow_use();
        if !self.awaited().is_empty() || !self.model().settled() {
            return;
        }
        self.lead_around();
        let seen = self.seen();
        for finding in self.closed_loop.replanner.look(&seen) {
            self.act(finding, &seen);
        }
        if self.model().settled() {
            self.divide_cores();
        }
        self.follow_load();
    }

    /// Begins anew with jobs that have another plan than before, and forgets those that have gone.
    pub(super) fn follow_plans(&mut self) {
        let seen = self.seen();
        let committed: Vec<(JobName, JobPlan, bool)> = self
            .model()
            .committed()
            .map(|(record, plan)| {
                let running = self.view(record).state == JobState::Running;
                (record.job.name.clone(), plan.clone(), running)
            })
            .collect();
        let jobs = &self.state.model.jobs;
        let here = |job: &JobName| jobs.get(job).is_some_and(|record| record.phase == Phase::Committed);
        self.closed_loop.throughput.retain(here);
        self.closed_loop.replanner.retain(here);
        self.closed_loop.online.retain(|job, _| here(job));
        self.closed_loop.known.retain(|job, _| here(job));
        self.closed_loop.witnessed.retain(here);
        for (job, plan, running) in committed {
            let known = self.closed_loop.known.get(&job);
            let as_before = known.is_some_and(|known| known.plan == plan);
            // Other limits disturb nobody, and what was counted goes on.
            let since_ms =
                known.filter(|known| only_limits(&known.plan, &plan)).map(|known| known.running_ms);
            if since_ms.is_none() {
                self.closed_loop.throughput.begin(&plan);
            }
            // Until a job is judged, nodes that are only now heard of are no change.
            if !seen.jobs.iter().any(|judged| judged.name == job) || !as_before {
                self.closed_loop.replanner.begin(&job, &seen);
            }
            let running_ms = running.then(|| since_ms.flatten().unwrap_or(self.now_ms));
            self.closed_loop.known.insert(job, Known { plan, running_ms });
        }
    }

    /// Counts a change of a running job that another room made.
    pub(super) fn count_replan(&mut self, job: &JobName) {
        self.closed_loop.replanner.count(job);
    }

    fn act(&mut self, finding: Finding, seen: &Seen) {
        match finding {
            Finding::Replan { cause, jobs } => self.replan(&cause, &jobs, seen),
            Finding::Saturated { direction, rate_bps } => {
                self.nodes.capacities.show(direction, rate_bps, self.now_ms);
            }
            Finding::Shortfall { job, predicted, measured, short } => {
                let text = format!("{measured:.2} items/s measured, {predicted:.2} predicted: {short}");
                self.events.note(self.now_ms, Some(&job), Kind::Shortfall, text);
            }
            Finding::Recovered { job, measured } => {
                let text = format!("{measured:.2} items/s measured, as predicted");
                self.events.note(self.now_ms, Some(&job), Kind::Recovered, text);
            }
        }
    }

    /// Plans these jobs anew; others may change their rates.
    pub(super) fn replan(&mut self, cause: &Cause, jobs: &[JobName], seen: &Seen) {
        self.learn(cause);
        let changes = jobs.iter().map(|job| (job.clone(), Change::Placement)).collect();
        let (commits, kept) = match self.another_way(jobs, &changes) {
            Ok(outcome) => {
                let unplaced = outcome.unplaced.first().map(reason);
                (outcome.commits, unplaced.unwrap_or_else(|| "nothing better was found".to_owned()))
            }
            Err(error) => (Vec::new(), error.to_string()),
        };
        let notes: Vec<_> = commits.iter().filter_map(|it| self.replanned(cause, it, seen)).collect();
        if !commits.is_empty() && self.state.commit(Event::Committed { commits }).is_err() {
            tracing::error!("a re-plan is not journaled and not made");
            return;
        }
        let (asked, others): (Vec<_>, Vec<_>) = notes.into_iter().partition(|(job, _)| jobs.contains(job));
        let changed: Vec<JobName> = asked.iter().map(|(job, _)| job.clone()).collect();
        for (kind, (job, text)) in asked
            .into_iter()
            .map(|note| (Kind::Replan, note))
            .chain(others.into_iter().map(|note| (Kind::Changed, note)))
        {
            self.events.note(self.now_ms, Some(&job), kind, text);
        }
        for job in jobs.iter().filter(|job| !changed.contains(job)) {
            let text = format!("{cause}; the plan stays: {kept}");
            self.events.note(self.now_ms, Some(job), Kind::Kept, text);
        }
        self.closed_loop.replanner.acted(cause, jobs, &changed, seen);
        self.follow_plans();
        self.advance();
    }

    /// What a re-plan is told as, before it is made.
    fn replanned(&self, cause: &Cause, commit: &Commit, seen: &Seen) -> Option<(JobName, String)> {
        let job = &commit.plan.job;
        let measured = seen.jobs.iter().find(|it| it.name == *job).and_then(|it| it.measured);
        let measured = measured.map(|items| format!(", {items:.2} items/s measured")).unwrap_or_default();
        let before = self.model().jobs.get(job)?.plan.as_ref()?;
        let reason = commit.plan.reasons.first().filter(|reason| before.reasons.first() != Some(reason));
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        Some((job.clone(), format!("{cause}{measured}: {}{reason}", difference(before, &commit.plan))))
    }

    /// Keeps a measured work for all classes: it is counted in time of a reference core.
    fn learn(&mut self, cause: &Cause) {
        let Cause::Task { job, task, node, measured_s, cores, .. } = cause else { return };
        let Some(record) = self.model().jobs.get(job) else { return };
        let Some(program) = record.job.tasks.get(task) else { return };
        let requested = program.program.resources.cpu;
        let cores = if requested.0 == 0 { *cores } else { cores.min(f64::from(requested.0) / 1000.0) };
        let core_speed = self.nodes.capacities.speed(node).unwrap_or(1.0);
        let measured = TaskProfile {
            work_s: *measured_s,
            wall_s: measured_s / (core_speed * cores),
            core_speed,
            memory_peak: program.program.resources.memory,
        };
        let before = profiles(self.model(), self.closed_loop.online.get(job), record).remove(task);
        let before = before.unwrap_or_default();
        let profile = |class: String| {
            let memory_peak = before.get(&class).map_or(measured.memory_peak, |profile| profile.memory_peak);
            (class, TaskProfile { memory_peak, ..measured })
        };
        let classes = self.nodes.schedulable().into_iter().map(|node| profile(node.class)).collect();
        self.closed_loop.online.entry(job.clone()).or_default().insert(task.clone(), classes);
    }
}

/// Whether nothing differs but limits and what follows from them.
fn only_limits(before: &JobPlan, after: &JobPlan) -> bool {
    before.placement == after.placement && before.flows == after.flows
}
