//! Tasks on nodes that their images have a variant for.
//!
//! In: the nodes' platforms, the variants of each task's image. Out: constraints that keep a task off platforms which
//! its image has no variant for, by a label that nodes carry in the snapshot alone. An image of which no variant is
//! known goes anywhere, and what runs stays where it is.

use crate::model::JobRecord;
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Attribute, Constraint, Job};
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::{Node, PLATFORM, Platforms};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes say what they are.
pub(crate) fn label(nodes: &mut [Node]) {
    for node in nodes {
        node.labels.insert(PLATFORM.to_owned(), node.hosting.platform.clone());
    }
}

/// Keeps the job off what its images `lack`, but for tasks that are there by its plan.
pub(crate) fn hold(
    job: &mut Job,
    plan: Option<&JobPlan>,
    nodes: &[Node],
    lack: impl Fn(&TaskName, &str) -> bool,
) {
    let platforms: BTreeSet<&String> = nodes.iter().map(|node| &node.hosting.platform).collect();
    for (name, task) in &mut job.tasks {
        let at = plan.and_then(|plan| platform_of(nodes, plan.placement.get(name)?));
        let lacking = platforms.iter().filter(|it| at != Some(**it) && lack(name, it));
        task.constraints.extend(lacking.map(|platform| Constraint {
            attribute: Attribute::Label(PLATFORM.to_owned()),
            equal: false,
            value: (*platform).clone(),
        }));
    }
}

fn platform_of<'n>(nodes: &'n [Node], name: &NodeId) -> Option<&'n String> {
    nodes.iter().find(|node| node.id == *name).map(|node| &node.hosting.platform)
}

/// By what is known of the images of a job.
pub(crate) fn of(record: &JobRecord) -> impl Fn(&TaskName, &str) -> bool {
    move |task, platform| record.images.get(task).is_some_and(|image| lacks(&image.platforms, platform))
}

/// By what the scheduler is told of them.
pub(crate) fn told(images: &BTreeMap<TaskName, Platforms>) -> impl Fn(&TaskName, &str) -> bool {
    move |task, platform| images.get(task).is_some_and(|image| lacks(image, platform))
}

fn lacks<T>(variants: &BTreeMap<String, T>, platform: &str) -> bool {
    !variants.is_empty() && !variants.contains_key(platform)
}
