//! When a running job is planned anew: decisions on what is seen, without clock, state or planner.
//!
//! In: one [`Seen`] a second. Out: [`Finding`]s: a cause with the jobs that it concerns, a link that carries
//! less than it says, a shortfall to tell of. Whoever acts on a cause says so by [`Replanner::acted`].
//!
//! What keeps it calm: a shortfall has to last, capacities and speeds come in steady ([`steady`]), a job is
//! re-planned at most once a minute, and a cause that comes up again waits longer each time ([`pause`]).

mod cause;
mod pause;
mod seen;
mod shortfall;
pub(crate) mod steady;
#[cfg(test)]
mod tests;

pub(crate) use cause::{Cause, CauseKey, Short};
pub(crate) use seen::{Direction, FlowSeen, JobSeen, LinkSeen, Seen, TaskSeen};

use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::view::Bound;
use pause::Pauses;
use shortfall::Watch;
use std::collections::BTreeMap;

/// Part of its prediction that a job may miss before it falls short.
pub(crate) const SHARE: f64 = 0.25;
/// Reservations may be over what is usable by this factor: rounding, and values that move a little.
const OVERBOOKED: f64 = 1.01;
/// Gains below this part of what was are no reason to plan anew.
const GAIN: f64 = 1.25;

/// What came of a look.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    /// These jobs are to be planned anew.
    Replan {
        cause: Cause,
        jobs: Vec<JobName>,
    },
    /// The first line of this path carries only so much, in bits a second.
    Saturated {
        direction: Direction,
        rate_bps: f64,
    },
    /// Told once, until the job has recovered.
    Shortfall {
        job: JobName,
        predicted: f64,
        measured: f64,
        short: Short,
    },
    Recovered {
        job: JobName,
        measured: f64,
    },
}

/// Links and speeds as they were when a job was planned.
#[derive(Debug, Default)]
struct Basis {
    links: BTreeMap<Direction, f64>,
    speeds: BTreeMap<NodeId, f64>,
}

/// One job under its present plan.
#[derive(Debug, Default)]
struct Record {
    basis: Basis,
    watch: Watch,
}

/// Everything remembered between looks.
#[derive(Debug, Default)]
pub(crate) struct Replanner {
    jobs: BTreeMap<JobName, Record>,
    pauses: Pauses,
    replans: BTreeMap<JobName, u32>,
}

impl Replanner {
    /// A job got a plan: what holds now is what it was planned with.
    pub(crate) fn begin(&mut self, job: &JobName, seen: &Seen) {
        let links = seen.links.iter().map(|(direction, link)| (direction.clone(), link.usable_bps)).collect();
        let basis = Basis { links, speeds: seen.speeds.clone() };
        // A shortfall that was told of stays told until it is over.
        let watch = self.jobs.remove(job).map(|record| record.watch.again()).unwrap_or_default();
        self.jobs.insert(job.clone(), Record { basis, watch });
    }

    /// Forgets jobs for which `keep` says no.
    pub(crate) fn retain(&mut self, keep: impl Fn(&JobName) -> bool) {
        self.jobs.retain(|job, _| keep(job));
        self.replans.retain(|job, _| keep(job));
        self.pauses.retain(keep);
    }

    /// How often a job was re-planned.
    pub(crate) fn replans(&self, job: &JobName) -> u32 {
        self.replans.get(job).copied().unwrap_or(0)
    }

    /// Notes what became of a [`Finding::Replan`]: of the `asked` jobs, those `changed` got new plans. What
    /// holds now is what all of them were planned with.
    pub(crate) fn acted(&mut self, cause: &Cause, asked: &[JobName], changed: &[JobName], seen: &Seen) {
        self.pauses.note_cause(cause.key(), seen.now_ms);
        for job in asked {
            self.begin(job, seen);
            self.pauses.note_job(job.clone(), seen.now_ms);
        }
        changed.iter().for_each(|job| self.count(job));
    }

    /// A running job got a new plan for what happened to it.
    pub(crate) fn count(&mut self, job: &JobName) {
        *self.replans.entry(job.clone()).or_default() += 1;
    }

    /// What is to be done or told now.
    pub(crate) fn look(&mut self, seen: &Seen) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut causes: Vec<(Cause, JobName)> = Vec::new();
        for job in &seen.jobs {
            let Some(record) = self.jobs.get_mut(&job.name) else { continue };
            let changed = record.basis.worse(job, seen).or_else(|| record.basis.better(job, seen));
            let short = record.watch.look(job, seen, &mut findings);
            causes.extend(changed.or(short).map(|cause| (cause, job.name.clone())));
        }
        let due = causes.into_iter().filter(|(cause, job)| {
            let (key, now_ms) = (cause.key(), seen.now_ms);
            let again = cause.slight() && !cause.better() && self.pauses.lately(&key, now_ms);
            !again && self.pauses.job_may(job, now_ms) && self.pauses.cause_may(&key, cause.better(), now_ms)
        });
        let mut replans: BTreeMap<CauseKey, (Cause, Vec<JobName>)> = BTreeMap::new();
        for (cause, job) in due {
            replans.entry(cause.key()).or_insert_with(|| (cause, Vec::new())).1.push(job);
        }
        findings.extend(replans.into_values().map(|(cause, jobs)| Finding::Replan { cause, jobs }));
        findings
    }
}

impl Basis {
    /// What no longer carries the job's plan: a link that is overbooked, a node that got slower.
    fn worse(&self, job: &JobSeen, seen: &Seen) -> Option<Cause> {
        let overbooked = |link: &LinkSeen| link.reserved_bps > link.usable_bps * OVERBOOKED;
        let link = seen.links.iter().find(|(direction, link)| overbooked(link) && job.crosses(direction));
        let link = link.map(|(direction, link)| self.link_cause(direction, link));
        link.or_else(|| {
            let slowed = |task: &&TaskSeen| {
                let (_, now) = self.speed(&task.node, seen);
                task.work_s > 0.0 && task.cores_limit * now / task.work_s < job.predicted * (1.0 - SHARE)
            };
            // A task that was planned too slow from the beginning is no change.
            let changed = |task: &&TaskSeen| {
                let (was, now) = self.speed(&task.node, seen);
                now < was * (1.0 - steady::WITHIN)
            };
            let task = job.tasks.iter().filter(slowed).find(changed)?;
            let (was, now) = self.speed(&task.node, seen);
            Some(Cause::Node { node: task.node.clone(), was, now })
        })
    }

    /// What may carry more than when the job was planned, where the job could gain by it.
    fn better(&self, job: &JobSeen, seen: &Seen) -> Option<Cause> {
        match job.bound {
            Bound::Source => None,
            Bound::Network => {
                let was = |direction: &Direction| self.links.get(direction).copied().unwrap_or(0.0);
                let rose =
                    |(direction, link): &(&Direction, &LinkSeen)| link.usable_bps > was(direction) * GAIN;
                let (direction, link) = seen.links.iter().find(rose)?;
                Some(self.link_cause(direction, link))
            }
            Bound::Compute => {
                let rose = |node: &&NodeId| {
                    let (was, now) = self.speed(node, seen);
                    now > was * GAIN
                };
                let node = seen.speeds.keys().find(rose)?;
                let (was, now) = self.speed(node, seen);
                Some(Cause::Node { node: node.clone(), was, now })
            }
        }
    }

    fn link_cause(&self, direction: &Direction, link: &LinkSeen) -> Cause {
        Cause::Link {
            from: direction.0.clone(),
            to: direction.1.clone(),
            was_bps: self.links.get(direction).copied().unwrap_or(0.0),
            now_bps: link.usable_bps,
            reserved_bps: link.reserved_bps,
        }
    }

    /// A node's speed when the job was planned, and now.
    fn speed(&self, node: &NodeId, seen: &Seen) -> (f64, f64) {
        let was = self.speeds.get(node).copied().unwrap_or(0.0);
        (was, seen.speeds.get(node).copied().unwrap_or(was))
    }
}
