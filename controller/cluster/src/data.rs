//! Tasks beside their data: what was mounted stays on its node, also when its job is gone.
//!
//! In: a job, its plan if it has one, and the volumes that nodes told of. Out: the job with tasks held to the nodes
//! that have what they mount. Nothing is remembered here: nodes tell what they hold, and of one that is not known
//! nobody waits for data.

use crate::model::{JobRecord, Phase};
use crate::nodes::Nodes;
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Attribute, Constraint, Job, Origin, Task};
use edgeloom_common::view::ProblemItem;
use edgeloom_common::volume::HeldVolume;
use std::collections::BTreeMap;

/// Where a task's volumes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) node: NodeId,
    /// The first of them there.
    volume: HeldVolume,
    /// Nodes that have volumes of these names too, which are not used.
    others: Vec<NodeId>,
}

/// The job, with tasks that have mounted something held to the nodes that have it, wherever the rest goes.
pub(crate) fn beside(record: &JobRecord, nodes: &Nodes) -> Job {
    let mut job = record.job.clone();
    let homes = homes(record, nodes);
    for (name, task) in job.tasks.iter_mut().filter(|(_, task)| !task.placement.mounts.is_empty()) {
        let placed = record.plan.as_ref().and_then(|plan| plan.placement.get(name));
        if let Some(node) = placed.or_else(|| homes.get(name).map(|home| &home.node)) {
            let value = node.to_string();
            task.constraints.push(Constraint { attribute: Attribute::Name, equal: true, value });
        }
    }
    job
}

/// Of the tasks with volumes that some node has.
fn homes(record: &JobRecord, nodes: &Nodes) -> BTreeMap<TaskName, Home> {
    let tasks = record.job.tasks.iter();
    tasks.filter_map(|(name, task)| Some((name.clone(), home(record, (name, task), nodes)?))).collect()
}

/// A node that has some of what the task mounts: rather one that its own constraints allow, then the one that has
/// most, then one that is there, then the first by name.
fn home(record: &JobRecord, (name, task): (&TaskName, &Task), nodes: &Nodes) -> Option<Home> {
    let wanted: Vec<HeldVolume> = volumes(record, (name, task)).collect();
    if wanted.is_empty() {
        return None;
    }
    let allows = |node: &NodeId| {
        let inventory = nodes.table.get(node).and_then(|known| known.inventory.as_ref());
        let holds = |constraint: &Constraint| {
            inventory.is_some_and(|inventory| constraint.holds(node, &inventory.labels))
        };
        task.constraints.iter().all(holds)
    };
    let holders = nodes.table.iter().filter_map(|(node, known)| {
        let held = &known.inventory.as_ref()?.volumes;
        let count = wanted.iter().filter(|volume| held.contains(volume)).count();
        (count > 0).then_some((count, allows(node), known.ready(), node))
    });
    let mut holders: Vec<_> = holders.collect();
    holders.sort_by_key(|(count, allowed, ready, node)| (!allowed, usize::MAX - count, !ready, *node));
    let (.., node) = *holders.first()?;
    let held = &nodes.table[node].inventory.as_ref()?.volumes;
    let volume = wanted.into_iter().find(|volume| held.contains(volume))?;
    let others = holders[1..].iter().map(|(.., other)| (*other).clone()).collect();
    Some(Home { node: node.clone(), volume, others })
}

/// The volumes that a task mounts.
pub(crate) fn volumes(
    record: &JobRecord,
    (name, task): (&TaskName, &Task),
) -> impl Iterator<Item = HeldVolume> {
    task.placement.mounts.iter().filter_map(move |mount| match &mount.from {
        Origin::Volume(volume) => {
            let (job, task) = (record.job.name.clone(), name.clone());
            Some(HeldVolume { job, task, volume: volume.clone() })
        }
        Origin::Host(_) => None,
    })
}

/// What people should know of the job's volumes: why it waits for a node, and which data it does not use.
pub(crate) fn notes(record: &JobRecord, nodes: &Nodes) -> Vec<String> {
    let note = |(task, home): (TaskName, Home)| {
        let Home { node, volume, others } = home;
        let at = record.plan.as_ref().and_then(|plan| plan.placement.get(&task));
        let others: Vec<&NodeId> =
            others.iter().chain([&node]).filter(|it| at.is_some_and(|at| at != *it)).collect();
        match (at, others.as_slice()) {
            (None, _) => Some(format!(
                "task {task} goes where its volume {volume} is, to node {node}; {}",
                give_up(&node, &volume)
            )),
            (Some(_), []) => None,
            (Some(at), [other, ..]) => Some(format!(
                "task {task} uses its volume {volume} on node {at}; node {other} has one of this name with other \
                 data; {}",
                give_up(other, &volume)
            )),
        }
    };
    match record.phase {
        Phase::Waiting | Phase::Committed => homes(record, nodes).into_iter().filter_map(note).collect(),
        Phase::Stopping | Phase::Ended => Vec::new(),
    }
}

/// Why a job that is held to its data fits nowhere.
pub(crate) fn problems(record: &JobRecord, nodes: &Nodes) -> Vec<ProblemItem> {
    let problem = |(task, Home { node, volume, .. }): (TaskName, Home)| ProblemItem {
        line: 0,
        field: format!("tasks.{task}.volumes"),
        problem: format!("node {node} has its volume {volume}, so it goes there"),
        remedy: give_up(&node, &volume),
    };
    homes(record, nodes).into_iter().map(problem).collect()
}

fn give_up(node: &NodeId, volume: &HeldVolume) -> String {
    format!("`edgeloom volume remove {node} {volume}` gives that data up")
}
