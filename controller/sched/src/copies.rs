//! Further containers of a job's tasks, for profiles that place each task once.
//!
//! The profile decides on the job without them; then each copy goes to a node that has no container of the same
//! task: of those that can take it, the one with the fewest idle cores. It gets the limits that its task got.
//! Jobs with copies have no edges, so neither flows nor the prediction change.

use std::borrow::Cow;

use crate::filter::Fit;
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger, UNKNOWN};
use crate::plan::JobPlan;
use crate::snapshot::{Change, Profiles};
use crate::streaming::{Case, Outcome, Stuck};
use crate::world::World;

/// What is said of a node that has a container of the same task.
pub(crate) const THERE: &str = "another container of the same task is there";

/// Decides on the job with one container a task, then places the others.
pub(crate) fn with_copies(
    case: &Case<'_>,
    others: &HeldJobs<'_>,
    profiles: &Profiles,
    decide: impl FnOnce(&Case<'_>) -> Result<Outcome, Stuck>,
) -> Result<Outcome, Stuck> {
    if !case.graph.has_copies() {
        return decide(case);
    }
    let mut job = case.graph.job.clone();
    job.tasks.retain(|_, task| task.copy_of.is_none());
    let graph = JobGraph::of(case.world, &job, profiles);
    let mut outcome = decide(&Case { graph: &graph, ..*case }).map_err(|stuck| {
        let name = graph.vertices.get(stuck.vertex).map(|vertex| &vertex.name);
        let vertex = case.graph.vertices.iter().position(|vertex| Some(&vertex.name) == name).unwrap_or(0);
        Stuck { vertex, ..stuck }
    })?;
    let mut after = others.clone();
    for plan in &outcome.changed {
        after.entry(plan.job.clone()).and_modify(|held| held.plan = Cow::Borrowed(plan));
    }
    let (plan, change) = (Cow::Borrowed(&outcome.plan), Change::Nothing);
    let own = Held { job: &job, plan, profiles, change, enough: &UNKNOWN };
    after.insert(job.name.clone(), own);
    let ledger = Ledger::of(case.world, after.values());
    outcome.plan = add_copies(case.world, case.graph, (ledger, outcome.plan))?;
    Ok(outcome)
}

/// Adds the copies to the plan of the job without them. The ledger holds what others and that plan take.
fn add_copies(
    world: &World<'_>,
    graph: &JobGraph<'_>,
    (mut ledger, mut plan): (Ledger, JobPlan),
) -> Result<JobPlan, Stuck> {
    let mut graph = graph.clone();
    let originals = graph.originals();
    for index in 0..graph.vertices.len() {
        let original = graph.vertices[originals[index]].name.clone();
        let name = graph.vertices[index].name.clone();
        if let Some(share) = plan.shares.get(&original).copied() {
            graph.vertices[index].need = graph.vertices[index].sized(share);
            plan.shares.insert(name.clone(), share);
        }
        if plan.placement.contains_key(&name) {
            continue;
        }
        let siblings = (0..graph.vertices.len()).filter(|other| originals[*other] == originals[index]);
        let names = siblings.map(|other| &graph.vertices[other].name);
        let there = names.filter_map(|name| world.index(plan.placement.get(name)?));
        let against: Vec<(usize, String)> = there.map(|node| (node, THERE.to_owned())).collect();
        let case = Case { world, graph: &graph, ledger: &ledger };
        let (node, _) = fullest(&case, index, &against)?;
        ledger.hold(&graph, index, node);
        plan.reasons.push(format!("{name} -> {}: apart from other containers of its task", world.name(node)));
        plan.placement.insert(name, world.name(node).clone());
    }
    Ok(plan)
}

/// Of the nodes that can take a vertex and have nothing else against it, the one with the fewest idle cores; and
/// why others are refused.
pub(crate) fn fullest(
    case: &Case<'_>,
    vertex: usize,
    against: &[(usize, String)],
) -> Result<(usize, Vec<Option<String>>), Stuck> {
    let mut refusals = case.refusals(vertex, case.ledger, Fit::AtLeast);
    for (node, text) in against {
        refusals[*node] = Some(text.clone());
    }
    let open = (0..refusals.len()).filter(|node| refusals[*node].is_none());
    match open.min_by_key(|node| (case.ledger.free[*node].cpu, *node)) {
        Some(node) => Ok((node, refusals)),
        None => {
            Err(Stuck { vertex, refusals: refusals.into_iter().map(Option::unwrap_or_default).collect() })
        }
    }
}
