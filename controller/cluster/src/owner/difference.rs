//! What a plan changes, in words for events.

use edgeloom_common::ids::TaskName;
use edgeloom_sched::plan::{FlowPlan, JobPlan};

/// Tasks of a batch that an event names.
const TOLD_MAX: usize = 8;

/// Where the tasks are: `detect on n2, track on n3`.
pub(super) fn places(plan: &JobPlan) -> String {
    let tasks = plan.placement.iter().map(|(task, node)| format!("{task} on {node}"));
    tasks.collect::<Vec<_>>().join(", ")
}

/// What of a batch is placed now: `3 tasks: work-1 on n2, ...`.
pub(super) fn begins(before: Option<&JobPlan>, after: &JobPlan) -> String {
    let had = |task: &TaskName| before.is_some_and(|before| before.placement.contains_key(task));
    let fresh: Vec<_> = after.placement.iter().filter(|(task, _)| !had(task)).collect();
    if fresh.is_empty() {
        return "limits of containers change".to_owned();
    }
    let told = fresh.iter().take(TOLD_MAX).map(|(task, node)| format!("{task} on {node}"));
    let told = told.collect::<Vec<_>>().join(", ");
    let more = if fresh.len() > TOLD_MAX { ", ..." } else { "" };
    format!("{} tasks: {told}{more}", fresh.len())
}

/// What is other than before: tasks that move, routes, rates, limits, and the prediction.
pub(super) fn difference(before: &JobPlan, after: &JobPlan) -> String {
    let mut lines = Vec::new();
    for (task, node) in &after.placement {
        match before.placement.get(task) {
            Some(old) if old != node => lines.push(format!("{task} moves from {old} to {node}")),
            _ => {}
        }
    }
    for flow in &after.flows {
        let old = before.flows.iter().find(|old| old.id == flow.id);
        lines.extend(flow_difference(old, flow));
    }
    lines.extend(after.shares.iter().filter_map(|(task, share)| {
        let old = before.shares.get(task).filter(|old| *old != share)?;
        let cpu = (old.cpu != share.cpu).then(|| format!("{} CPU instead of {}", share.cpu, old.cpu));
        let memory =
            (old.memory != share.memory).then(|| format!("{} instead of {}", share.memory, old.memory));
        let both: Vec<String> = cpu.into_iter().chain(memory).collect();
        Some(format!("{task} gets {}", both.join(" and ")))
    }));
    let (was, now) = (before.prediction.items_per_s, after.prediction.items_per_s);
    lines.push(format!("{now:.2} items/s predicted instead of {was:.2}"));
    lines.join("; ")
}

fn flow_difference(old: Option<&FlowPlan>, flow: &FlowPlan) -> Option<String> {
    let name = format!("{} -> {}", flow.id.from, flow.id.to);
    match old {
        Some(old) if old.path != flow.path => {
            Some(format!("{name} goes over {} at {} instead of {}", path(flow), flow.rate, path(old)))
        }
        Some(old) if old.rate != flow.rate => {
            Some(format!("{name} gets {} instead of {}", flow.rate, old.rate))
        }
        Some(_) => None,
        None => Some(format!("{name} goes over {} at {}", path(flow), flow.rate)),
    }
}

fn path(flow: &FlowPlan) -> String {
    let nodes: Vec<&str> = flow.path.iter().map(edgeloom_common::ids::NodeId::as_str).collect();
    nodes.join(" > ")
}
