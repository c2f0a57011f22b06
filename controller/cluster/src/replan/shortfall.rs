//! A job that achieves less than its prediction: since when, and why.

use super::cause::{Cause, Short};
use super::{Direction, Finding, FlowSeen, JobSeen, SHARE, Seen, TaskSeen};

/// How long a shortfall has to last.
const LASTS_MS: u64 = 15_000;
/// Part of the prediction from which a job that fell short has recovered.
const RECOVERED: f64 = 0.85;
/// Part of its limit from which a task counts as held by it.
const AT_LIMIT: f64 = 0.9;
/// A program of one thread goes no further than this, whatever its limit.
const ONE_CORE: std::ops::RangeInclusive<f64> = 0.95..=1.05;
/// A measured work explains nothing while it is less than this times the planned.
const HEAVIER: f64 = 1.1;
/// Part of the time in which a class has to have a backlog to count as limited by the network.
const BACKLOGGED: f64 = 0.5;

/// One job's shortfall.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Watch {
    since_ms: Option<u64>,
    told: bool,
}

impl Watch {
    /// The watch over the same job under another plan.
    pub(super) fn again(self) -> Self {
        Self { since_ms: None, ..self }
    }

    /// Looks at the job now. A shortfall is told of once; its cause is given as long as it lasts.
    pub(super) fn look(&mut self, job: &JobSeen, seen: &Seen, findings: &mut Vec<Finding>) -> Option<Cause> {
        let Some(measured) = job.measured.filter(|_| job.predicted > 0.0) else {
            self.since_ms = None;
            return None;
        };
        if self.told && measured >= job.predicted * RECOVERED {
            self.told = false;
            findings.push(Finding::Recovered { job: job.name.clone(), measured });
        }
        if measured >= job.predicted * (1.0 - SHARE) {
            self.since_ms = None;
            return None;
        }
        let since_ms = *self.since_ms.get_or_insert(seen.now_ms);
        if seen.now_ms.saturating_sub(since_ms) < LASTS_MS {
            return None;
        }
        let short = why(job, measured, seen);
        if let Short::Flow { direction, .. } = &short {
            let (direction, rate_bps) = (direction.clone(), carried(direction, seen));
            findings.push(Finding::Saturated { direction, rate_bps });
        }
        if !std::mem::replace(&mut self.told, true) {
            let (name, predicted, short) = (job.name.clone(), job.predicted, short.clone());
            findings.push(Finding::Shortfall { job: name, predicted, measured, short });
        }
        match short {
            Short::Task(cause) => Some(cause),
            Short::Flow { .. } | Short::Source => None,
        }
    }
}

/// The network first: a stage behind a starved flow may well be at its limit for a moment.
fn why(job: &JobSeen, measured: f64, seen: &Seen) -> Short {
    let starved = job.flows.iter().find_map(|flow| Some((flow, narrow(flow, seen)?)));
    if let Some((flow, direction)) = starved {
        let (given_bps, measured_bps) = (flow.given_bps, flow.measured_bps);
        return Short::Flow { id: flow.id.clone(), direction, given_bps, measured_bps };
    }
    let heavier = job.tasks.iter().filter_map(|task| heavier(job, task, measured, seen));
    let most = heavier.max_by(|x, y| x.0.total_cmp(&y.0));
    most.map_or(Short::Source, |(_, cause)| Short::Task(cause))
}

/// Where on its way a flow is held up: before the first line if its class has a backlog; else on a line
/// where packets wait, unless more passes the other way, which may be what waits.
fn narrow(flow: &FlowSeen, seen: &Seen) -> Option<Direction> {
    if flow.measured_bps >= flow.given_bps * (1.0 - SHARE) {
        return None;
    }
    let mut hops = flow.path.windows(2).map(|hop| (hop[0].clone(), hop[1].clone()));
    if flow.backlogged >= BACKLOGGED {
        return hops.next();
    }
    hops.find(|hop| {
        let queued = seen.links.get(hop).is_some_and(|link| link.queued);
        queued && carried(hop, seen) > carried(&(hop.1.clone(), hop.0.clone()), seen)
    })
}

/// Bits a second that flows together get over a line.
fn carried(direction: &Direction, seen: &Seen) -> f64 {
    let over =
        |flow: &&FlowSeen| flow.path.windows(2).any(|hop| (&hop[0], &hop[1]) == (&direction.0, &direction.1));
    seen.jobs.iter().flat_map(|job| &job.flows).filter(over).map(|flow| flow.measured_bps).sum()
}

/// How near its limit a task is, if it is there and needs more an item than planned.
fn heavier(job: &JobSeen, task: &TaskSeen, measured: f64, seen: &Seen) -> Option<(f64, Cause)> {
    let held = |used: &f64| *used >= task.cores_limit * AT_LIMIT || ONE_CORE.contains(used);
    let used = task.cores_used.filter(held)?;
    let speed = seen.speeds.get(&task.node)?;
    let measured_s = used * speed / measured;
    (measured_s.is_finite() && measured_s > task.work_s * HEAVIER).then(|| {
        let cause = Cause::Task {
            job: job.name.clone(),
            task: task.name.clone(),
            node: task.node.clone(),
            planned_s: task.work_s,
            measured_s,
            cores: used,
        };
        (used / task.cores_limit, cause)
    })
}
