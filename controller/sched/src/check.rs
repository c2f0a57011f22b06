//! The hard rules, held against any decision before it is committed, whoever made it.
//!
//! One function a rule. Sums run over all jobs that hold resources after the decision; a plan for a running
//! job replaces its former one. A node or link that is overbooked without the decision's doing (its
//! capacity shrank) is not held against plans that leave it alone.

mod job;
mod rules;
mod sums;

use edgeloom_common::ids::{FlowId, JobName, NodeId, TaskName};
use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, UNKNOWN};
use crate::plan::{Decision, JobPlan};
use crate::snapshot::{Change, Snapshot};
use crate::world::World;

/// A broken rule, with the object and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The plan is for a job that neither waits nor runs, or comes twice.
    #[error("job {job}: {text}")]
    Job { job: JobName, text: &'static str },
    /// A task is missing, unknown, or on a node that cannot have it.
    #[error("job {job}, task {task}: {text}")]
    Task { job: JobName, task: TaskName, text: String },
    /// A node would be asked for more than it has.
    #[error("node {node}: {text}")]
    Node { node: NodeId, text: String },
    /// A flow is missing, needless, or cannot go this way.
    #[error("flow {flow}: {text}")]
    Flow { flow: FlowId, text: String },
    /// More is given away than the link has to give.
    #[error("link {from} to {to}: {given} bit/s given, {capacity} bit/s to give")]
    Link { from: NodeId, to: NodeId, given: u64, capacity: u64 },
    /// The predicted throughput is no positive number.
    #[error("job {job}: predicted throughput is not a positive finite number")]
    Prediction { job: JobName },
}

/// Every broken rule of a decision; empty for a sound one.
#[must_use]
pub fn check(decision: &Decision, snapshot: &Snapshot) -> Vec<Violation> {
    let world = World::of(snapshot);
    let mut violations = Vec::new();
    let mut held: HeldJobs<'_> = HeldJobs::new();
    for running in &snapshot.running {
        held.insert(running.job.name.clone(), Held::of(running));
    }
    let known: BTreeMap<_, _> = snapshot
        .running
        .iter()
        .map(|running| (&running.job.name, (&running.job, &running.profiles, running.change)))
        .chain(
            snapshot
                .waiting
                .iter()
                .map(|waiting| (&waiting.job.name, (&waiting.job, &waiting.profiles, Change::Placement))),
        )
        .collect();
    let mut seen: Vec<&JobPlan> = Vec::new();
    let mut moved: Vec<&JobPlan> = Vec::new();
    for plan in &decision.plans {
        let Some((job, profiles, change)) = known.get(&plan.job).copied() else {
            violations.push(Violation::Job { job: plan.job.clone(), text: "neither waits nor runs" });
            continue;
        };
        if seen.iter().any(|other| other.job == plan.job) {
            violations.push(Violation::Job { job: plan.job.clone(), text: "has more than one plan" });
        }
        seen.push(plan);
        if let Some(text) = held.get(&plan.job).and_then(|held| may_not_change(&held.plan, plan, change)) {
            violations.push(Violation::Job { job: plan.job.clone(), text });
        }
        if held.get(&plan.job).is_none_or(|held| held.plan.placement != plan.placement) {
            moved.push(plan);
        }
        let mut graph = JobGraph::of(&world, job, profiles);
        if let Some(held) = held.get(&plan.job) {
            graph = graph.running_with(&held.plan.shares);
        }
        violations.extend(job::check(&world, &graph, plan));
        let plan = Cow::Borrowed(plan);
        held.insert(plan.job.clone(), Held { job, plan, profiles, change, enough: &UNKNOWN });
    }
    violations.extend(rules::hold(&world, &held, &moved));
    violations.extend(sums::nodes_hold(&world, &held, &seen));
    violations.extend(sums::links_hold(&world, &held, &seen));
    violations
}

/// Whether what a running job has passes the rules that look at it alone: its nodes and links are there.
pub(crate) fn stands(world: &World<'_>, held: &Held<'_>) -> bool {
    let graph = JobGraph::of(world, held.job, held.profiles).running_with(&held.plan.shares);
    job::check(world, &graph, &held.plan).is_empty()
}

/// What a running job's new plan changes though it may not.
fn may_not_change(old: &JobPlan, new: &JobPlan, change: Change) -> Option<&'static str> {
    let paths = |plan: &JobPlan| plan.flows.iter().map(|flow| flow.path.clone()).collect::<Vec<_>>();
    match change {
        Change::Placement => None,
        _ if old.placement != new.placement => Some("runs and may not be moved"),
        Change::Routes => None,
        _ if paths(old) != paths(new) => Some("runs and may not be rerouted"),
        Change::Rates => None,
        Change::Nothing => Some("runs and may not be changed"),
    }
}
