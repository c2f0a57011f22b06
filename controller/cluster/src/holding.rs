//! What nodes show of moves: who may still have a container, which images are there, what runs.
//!
//! While a new node pulls, everything that is not confirmed stays as it was before: a plan leans on all
//! changes that were committed before it. Where nothing is known of a node, the careful answer is given,
//! but for nodes that are away when a job goes back, and for lost ones: those must not keep it from running,
//! and whatever they have is cut off, since all routes lead elsewhere.

use crate::documents::{Documents, Ground, documents};
use crate::known;
use crate::model::{Image, JobRecord, Model};
use crate::moves::{Goal, Occupied, Phase};
use crate::nodes::{NodeRecord, Nodes};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::report::{ContainerPhase, ContainerState};
use edgeloom_sched::plan::JobPlan;

/// A task on its way to another node.
#[derive(Debug)]
pub(crate) struct Move<'a> {
    pub(crate) job: &'a JobName,
    pub(crate) task: &'a TaskName,
    pub(crate) from: &'a NodeId,
    pub(crate) to: &'a NodeId,
    pub(crate) image: &'a Image,
}

/// Tasks that a change not yet confirmed takes to another node.
pub(crate) fn moves(model: &Model) -> impl Iterator<Item = Move<'_>> {
    model.committed().flat_map(|(record, plan)| {
        let before = record.previous.iter().flat_map(|before| &before.placement);
        before.filter_map(|(task, from)| {
            let (to, image) = (plan.placement.get(task)?, record.images.get(task)?);
            (to != from).then_some(Move { job: &record.job.name, task, from, to, image })
        })
    })
}

/// What to publish next.
pub(crate) fn goal(model: &Model, nodes: &Nodes, ground: &Ground<'_>) -> Goal {
    let (last, occupied) = (documents(model, ground), occupied(model, nodes));
    if !moves(model).any(|it| pulls(model, nodes, &it)) {
        return Goal::toward(last, &model.published, &occupied);
    }
    let mut before = documents(&held(model), ground);
    for (node, document) in &mut before {
        let kept = std::mem::replace(&mut document.images, last[node].images.clone());
        let others = kept.into_iter().filter(|image| !last[node].images.contains(image));
        document.images.extend(others.collect::<Vec<_>>());
        document.logins.extend(last[node].logins.clone());
    }
    let goal = Goal::toward(before, &model.published, &occupied);
    match goal.phase {
        Phase::Last => Goal { phase: Phase::Pulling, ..goal },
        _ => goal,
    }
}

/// The old container still runs, and the new node has not shown the image yet.
pub(crate) fn pulls(model: &Model, nodes: &Nodes, it: &Move<'_>) -> bool {
    let old = model.published.get(it.from).into_iter().flat_map(|document| &document.containers);
    let stays = old.into_iter().any(|spec| (&spec.job, &spec.task) == (it.job, it.task));
    stays && !nodes.table.get(it.to).is_some_and(|known| has_image(known, &model.published, it))
}

fn has_image(known: &NodeRecord, published: &Documents, it: &Move<'_>) -> bool {
    let reference = &it.image.reference;
    let in_store = known.inventory.as_ref().is_some_and(|inventory| {
        let layers = it.image.layers(&inventory.architecture);
        layers.is_some_and(|layers| known::has_image(inventory, layers))
    });
    let document = published.get(it.to);
    let runs = |state: &ContainerState| {
        (&state.job, &state.task) == (it.job, it.task) && state.phase == ContainerPhase::Running
    };
    known.observed.as_ref().is_some_and(|seen| {
        if known.online && seen.containers.iter().any(runs) {
            return true;
        }
        let listed = document.is_some_and(|document| {
            document.version() == seen.version && document.images.contains(reference)
        });
        let pulled = seen.pulls.iter().any(|pull| pull.done && pull.image == reference.name);
        listed && (in_store || pulled || seen.converged)
    })
}

/// The plan that nodes carry out: the one before, as long as it has a container whose task will move.
pub(crate) fn in_force<'a>(model: &Model, record: &'a JobRecord) -> Option<&'a JobPlan> {
    let (plan, before) = (record.plan.as_ref()?, record.previous.as_ref());
    let stays = |before: &&JobPlan| {
        before.placement.iter().any(|(task, node)| {
            let published = model.published.get(node).into_iter().flat_map(|document| &document.containers);
            let lists = published.into_iter().any(|spec| (&spec.job, &spec.task) == (&record.job.name, task));
            plan.placement.get(task) != Some(node) && lists
        })
    };
    before.filter(stays).or(Some(plan))
}

/// The model as of the last time that everything was confirmed; jobs that have begun since go on.
fn held(model: &Model) -> Model {
    let mut model = model.clone();
    let published = std::mem::take(&mut model.published);
    for record in model.jobs.values_mut() {
        if let Some(before) = &record.previous {
            record.plan = Some(before.clone());
        } else if !record.confirmed && !begun(record, &published) {
            record.plan = None;
        }
    }
    Model { published, ..model }
}

fn begun(record: &JobRecord, published: &Documents) -> bool {
    let name = &record.job.name;
    published.values().any(|document| {
        document.containers.iter().any(|spec| spec.job == *name)
            || document.flows.iter().any(|flow| flow.id.job == *name)
    })
}

fn occupied(model: &Model, nodes: &Nodes) -> Occupied {
    let mut occupied = Occupied::new();
    for (record, _) in model.committed() {
        let job = &record.job.name;
        let returns = record.previous.is_none();
        // A lost node that has come back is waited for like any other.
        let away = |node: &NodeId, known: &NodeRecord| {
            let cut_off = model.cut_off.contains_key(node) && !known.online;
            cut_off || (returns && (known.silent || !known.online))
        };
        let mut note = |task: &TaskName, node: &NodeId| {
            occupied.entry((job.clone(), task.clone())).or_default().insert(node.clone());
        };
        for (node, known) in nodes.table.iter().filter(|(node, known)| !away(node, known)) {
            let seen = known.observed.iter().flat_map(|seen| &seen.containers);
            seen.filter(|state| state.job == *job).for_each(|state| note(&state.task, node));
        }
        for (task, node) in &record.left {
            let known = nodes.table.get(node);
            let listed = known.and_then(|known| known.observed.as_ref()).is_some_and(|seen| seen.listed);
            let clear = known.is_some_and(|known| away(node, known))
                || (listed && nodes.confirmed(node, &model.published));
            if !clear {
                note(task, node);
            }
        }
    }
    occupied
}

/// The first moved task that does not run at its new node yet.
pub(crate) fn not_running<'a>(model: &'a Model, nodes: &Nodes) -> Option<Move<'a>> {
    moves(model).find(|it| shows(nodes, it.to, it) != Some(ContainerPhase::Running))
}

/// The phase of the moving task's container on a node, if there is one.
pub(crate) fn shows(nodes: &Nodes, node: &NodeId, it: &Move<'_>) -> Option<ContainerPhase> {
    let seen = nodes.table.get(node)?.observed.as_ref()?;
    let mut containers = seen.containers.iter();
    containers.find(|state| (&state.job, &state.task) == (it.job, it.task)).map(|state| state.phase)
}
