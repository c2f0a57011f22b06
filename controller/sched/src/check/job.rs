//! The rules that look at one job alone: tasks, flows, prediction.

use edgeloom_common::ids::FlowId;
use std::collections::BTreeMap;

use super::Violation;
use crate::job_graph::JobGraph;
use crate::plan::{FlowPlan, JobPlan};
use crate::world::World;

/// All rules for one plan.
pub(super) fn check(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Vec<Violation> {
    let mut violations = tasks_are_placed(world, graph, plan);
    violations.extend(constraints_hold(world, graph, plan));
    violations.extend(copies_are_apart(graph, plan));
    violations.extend(shares_suffice(graph, plan));
    violations.extend(flows_match_edges(graph, plan));
    for flow in &plan.flows {
        let problem = path_joins(world, plan, flow)
            .or_else(|| path_can_carry(world, flow))
            .or_else(|| rate_is_given(flow));
        violations.extend(problem.map(|text| Violation::Flow { flow: flow.id.clone(), text }));
    }
    let items_per_s = plan.prediction.items_per_s;
    if !items_per_s.is_finite() || items_per_s <= 0.0 {
        violations.push(Violation::Prediction { job: plan.job.clone() });
    }
    violations
}

/// Every task exactly once on a known, ready node; the source on its own; nothing else.
fn tasks_are_placed(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut broken = |task: &edgeloom_common::ids::TaskName, text: String| {
        violations.push(Violation::Task { job: plan.job.clone(), task: task.clone(), text });
    };
    for (index, vertex) in graph.vertices.iter().enumerate() {
        let Some(node) = plan.placement.get(&vertex.name) else {
            broken(&vertex.name, "has no node".to_owned());
            continue;
        };
        match world.index(node).map(|index| world.nodes[index].ready) {
            None => broken(&vertex.name, format!("node {node} is not known")),
            Some(false) => broken(&vertex.name, format!("node {node} is not ready")),
            Some(true) => {}
        }
        if let Some(own) = graph.fixed(index).filter(|own| *own != node) {
            broken(&vertex.name, format!("is on {node}, its node is {own}"));
        }
    }
    for task in plan.placement.keys().filter(|task| graph.vertices.iter().all(|vertex| vertex.name != **task))
    {
        broken(task, "is no task of the job".to_owned());
    }
    violations
}

/// Every constraint of every task holds of its node.
fn constraints_hold(world: &World<'_>, graph: &JobGraph<'_>, plan: &JobPlan) -> Vec<Violation> {
    let mut violations = Vec::new();
    for vertex in &graph.vertices {
        let node = plan.placement.get(&vertex.name).and_then(|node| world.index(node));
        let Some(node) = node.map(|index| world.nodes[index]) else {
            continue;
        };
        if vertex.constraints.iter().any(|constraint| !constraint.holds(&node.id, &node.labels)) {
            let text = format!("a constraint does not hold of {}", node.id);
            violations.push(Violation::Task { job: plan.job.clone(), task: vertex.name.clone(), text });
        }
    }
    violations
}

/// No two containers of a task are on one node.
fn copies_are_apart(graph: &JobGraph<'_>, plan: &JobPlan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut seen = BTreeMap::new();
    for (vertex, original) in graph.vertices.iter().zip(graph.originals()) {
        let Some(node) = plan.placement.get(&vertex.name) else { continue };
        if let Some(other) = seen.insert((original, node), &vertex.name) {
            let text = format!("is on the same node as {other}, a container of the same task");
            violations.push(Violation::Task { job: plan.job.clone(), task: vertex.name.clone(), text });
        }
    }
    violations
}

/// No limit is below what its task requests, and only tasks of the job have one.
fn shares_suffice(graph: &JobGraph<'_>, plan: &JobPlan) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (task, share) in &plan.shares {
        let text = match graph.vertices.iter().find(|vertex| vertex.name == *task) {
            None => "has a share but is no task of the job".to_owned(),
            Some(vertex) => {
                let has = vertex.sized(*share);
                let unlimited = share.cpu.0 == 0;
                if (unlimited || has.cpu >= vertex.need.cpu) && has.memory >= vertex.need.memory {
                    continue;
                }
                format!("gets {} and {}, less than it requests", share.cpu, share.memory)
            }
        };
        violations.push(Violation::Task { job: plan.job.clone(), task: task.clone(), text });
    }
    violations
}

/// One flow for each edge whose ends are apart, of the edge's volume, and no other.
fn flows_match_edges(graph: &JobGraph<'_>, plan: &JobPlan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut wanted = Vec::new();
    for edge in &graph.edges {
        let (from, to) = (&graph.vertices[edge.from].name, &graph.vertices[edge.to].name);
        if plan.placement.get(from) != plan.placement.get(to) {
            let id = FlowId { job: plan.job.clone(), from: from.clone(), to: to.clone() };
            wanted.push((id, edge.volume));
        }
    }
    for (id, volume) in &wanted {
        let text = match plan.flows.iter().filter(|flow| flow.id == *id).count() {
            0 => "is missing",
            1 if plan.flows.iter().any(|flow| flow.id == *id && flow.volume != *volume) => {
                "has another volume"
            }
            1 => continue,
            _ => "comes more than once",
        };
        violations.push(Violation::Flow { flow: id.clone(), text: text.to_owned() });
    }
    for flow in plan.flows.iter().filter(|flow| wanted.iter().all(|(id, _)| *id != flow.id)) {
        let text = "joins no tasks that are apart".to_owned();
        violations.push(Violation::Flow { flow: flow.id.clone(), text });
    }
    violations
}

/// From the sender's node to the receiver's, link by link, no node twice.
fn path_joins(world: &World<'_>, plan: &JobPlan, flow: &FlowPlan) -> Option<String> {
    if flow.path.len() < 2 || flow.path.first() != plan.placement.get(&flow.id.from) {
        return Some("does not start at its sender's node".to_owned());
    }
    if flow.path.last() != plan.placement.get(&flow.id.to) {
        return Some("does not end at its receiver's node".to_owned());
    }
    let twice = flow.path.iter().enumerate().find(|(at, node)| flow.path[..*at].contains(node));
    if let Some((_, node)) = twice {
        return Some(format!("passes {node} twice"));
    }
    let unjoined = flow.path.windows(2).find(|hop| !world.joined(&hop[0], &hop[1]));
    unjoined.map(|hop| format!("no link joins {} and {}", hop[0], hop[1]))
}

/// All nodes of the path are ready, and all that send can shape and route.
fn path_can_carry(world: &World<'_>, flow: &FlowPlan) -> Option<String> {
    let node = |id| world.index(id).map(|index| world.nodes[index]);
    let idle = flow.path.iter().find(|id| node(id).is_none_or(|node| !node.ready));
    if let Some(id) = idle {
        return Some(format!("node {id} is not ready"));
    }
    let (_, senders) = flow.path.split_last()?;
    let unable = senders.iter().find(|id| node(id).is_none_or(|node| !node.shapes_flows));
    unable.map(|id| format!("node {id} cannot shape and route flows"))
}

fn rate_is_given(flow: &FlowPlan) -> Option<String> {
    (flow.rate.0 == 0).then(|| "has no rate".to_owned())
}
