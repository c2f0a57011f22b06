//! A plan as the strategy document: placement, ports, routing paths and bandwidth of one job together.
//!
//! Pure: the plan says everything but the addresses, which the commit adds. Equal plans give equal documents.

use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Job, TASK_PORT};
use edgeloom_common::view::{ListenView, StrategyFlowView, StrategyView, TaskGroupView};
use edgeloom_sched::plan::{FlowPlan, JobPlan};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The strategy of a placed job.
pub(crate) fn strategy(job: &Job, plan: &JobPlan, addresses: &BTreeMap<TaskName, Ipv4Addr>) -> StrategyView {
    let mut groups: BTreeMap<&NodeId, Vec<TaskName>> = BTreeMap::new();
    for (task, node) in &plan.placement {
        groups.entry(node).or_default().push(task.clone());
    }
    let group = |(node, tasks): (&NodeId, Vec<TaskName>)| {
        let reads = |task: &&TaskName| job.tasks.get(*task).is_some_and(|task| !task.inputs.is_empty());
        let listens = tasks.iter().filter(reads).map(|task| ListenView {
            task: task.clone(),
            address: addresses.get(task).copied(),
            port: TASK_PORT,
        });
        TaskGroupView {
            listens: listens.collect(),
            previous_nodes: previous(plan, node),
            flows: plan.flows.iter().filter(|flow| flow.path.first() == Some(node)).map(outgoing).collect(),
            node: node.clone(),
            tasks,
        }
    };
    StrategyView { job: job.name.clone(), groups: groups.into_iter().map(group).collect() }
}

fn previous(plan: &JobPlan, node: &NodeId) -> Vec<NodeId> {
    let arriving = plan.flows.iter().filter(|flow| flow.path.last() == Some(node));
    let senders: BTreeSet<&NodeId> = arriving.filter_map(|flow| flow.path.first()).collect();
    senders.into_iter().cloned().collect()
}

fn outgoing(flow: &FlowPlan) -> StrategyFlowView {
    StrategyFlowView {
        from: flow.id.from.clone(),
        to: flow.id.to.clone(),
        next_node: flow.path.last().expect("a path has at least two nodes").clone(),
        next_port: TASK_PORT,
        bandwidth_bps: flow.rate.0,
        routing: flow.path.clone(),
    }
}
