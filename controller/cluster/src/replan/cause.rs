//! Why a job is planned anew, in figures and in words.

use super::SHARE;
use super::seen::Direction;
use edgeloom_common::ids::{FlowId, JobName, NodeId, TaskName};
use edgeloom_common::units::BitRate;
use std::fmt;

/// What the cause of a re-plan is remembered by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CauseKey {
    /// The lower name first: both directions are one line.
    Link(NodeId, NodeId),
    Node(NodeId),
    Task(JobName, TaskName),
}

impl CauseKey {
    pub(crate) fn link(a: &NodeId, b: &NodeId) -> Self {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        Self::Link(low.clone(), high.clone())
    }

    /// The job that the cause lies in, if it lies in one.
    pub(crate) fn job(&self) -> Option<&JobName> {
        match self {
            Self::Task(job, _) => Some(job),
            _ => None,
        }
    }
}

/// What was measured that no longer fits the plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cause {
    /// Rates that flows may reserve, in bits a second.
    Link { from: NodeId, to: NodeId, was_bps: f64, now_bps: f64, reserved_bps: f64 },
    /// Core speeds.
    Node { node: NodeId, was: f64, now: f64 },
    /// Reference-core seconds an item, and the cores on which they were measured.
    Task { job: JobName, task: TaskName, node: NodeId, planned_s: f64, measured_s: f64, cores: f64 },
}

impl Cause {
    pub(crate) fn key(&self) -> CauseKey {
        match self {
            Self::Link { from, to, .. } => CauseKey::link(from, to),
            Self::Node { node, .. } => CauseKey::Node(node.clone()),
            Self::Task { job, task, .. } => CauseKey::Task(job.clone(), task.clone()),
        }
    }

    /// Too little to act on again so soon: the link still carries most of what is reserved.
    pub(crate) fn slight(&self) -> bool {
        match self {
            Self::Link { now_bps, reserved_bps, .. } => *now_bps >= reserved_bps * (1.0 - SHARE),
            _ => false,
        }
    }

    /// Something got better rather than worse.
    pub(crate) fn better(&self) -> bool {
        match self {
            Self::Link { was_bps, now_bps, reserved_bps, .. } => now_bps > was_bps && now_bps >= reserved_bps,
            Self::Node { was, now, .. } => now > was,
            Self::Task { .. } => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { from, to, was_bps, now_bps, reserved_bps } => {
                let verb = if now_bps < was_bps { "fell" } else { "rose" };
                let (was, now, reserved) = (rate(*was_bps), rate(*now_bps), rate(*reserved_bps));
                write!(f, "link {from}-{to} {verb}: {now} usable instead of {was}, {reserved} reserved")
            }
            Self::Node { node, was, now } => {
                let verb = if now < was { "slowed down" } else { "sped up" };
                write!(f, "node {node} {verb}: core speed {now:.2} instead of {was:.2}")
            }
            Self::Task { task, node, planned_s, measured_s, .. } => {
                let (planned, measured) = (planned_s * 1e3, measured_s * 1e3);
                write!(
                    f,
                    "task {task} on {node} needs {measured:.1} ms of a reference core an item instead of {planned:.1} ms"
                )
            }
        }
    }
}

/// Why a job falls short though nothing is gained by planning it anew.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Short {
    /// Packets wait for this line, and yet the flow gets less than it was given.
    Flow { id: FlowId, direction: Direction, given_bps: f64, measured_bps: f64 },
    /// A task at its limit.
    Task(Cause),
    /// No backlog anywhere, no task at its limit: less comes in.
    Source,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow { id, direction: (a, b), given_bps, measured_bps } => {
                let (from, to, given, measured) = (&id.from, &id.to, rate(*given_bps), rate(*measured_bps));
                write!(f, "flow {from} -> {to} gets {measured} of {given} with packets waiting on {a}-{b}")
            }
            Self::Task(cause) => cause.fmt(f),
            Self::Source => {
                f.write_str("no flow has packets waiting and no task is at its limit, so less comes in")
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "link rates, far below 2^52")]
pub(super) fn rate(bps: f64) -> BitRate {
    // Four digits are enough for people.
    let step = 10_f64.powf((bps.max(1.0).log10() - 3.0).floor().max(0.0));
    BitRate(((bps / step).round() * step) as u64)
}
