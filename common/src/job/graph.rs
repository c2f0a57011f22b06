//! The job's graph as a whole: every edge joins known tasks, both ends agree, no cycle, no task starves.

use super::problems::{Place, Problems, nearest};
use super::{Constraint, Measure, Placement, Program};
use crate::ids::TaskName;
use crate::units::{Bytes, Work};
use std::collections::{BTreeMap, BTreeSet};

/// So many cycles are named, one problem each.
const CYCLES_MAX: usize = 10;

/// A task as read so far; what did not read is none or absent and has been told.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) place: Place,
    pub(super) program: Option<Program>,
    pub(super) work: Option<Work>,
    /// None: not written, so the others' outputs say it.
    pub(super) inputs: Option<(Vec<(TaskName, Place)>, Place)>,
    pub(super) outputs: BTreeMap<TaskName, (Option<Bytes>, Place)>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) measure: Option<Measure>,
    pub(super) placement: Placement,
    /// Tasks that the placement's rules name.
    pub(super) named: Vec<(TaskName, Place)>,
}

impl Draft {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            program: None,
            work: None,
            inputs: None,
            outputs: BTreeMap::new(),
            constraints: Vec::new(),
            measure: None,
            placement: Placement::default(),
            named: Vec::new(),
        }
    }

    fn reads_source(&self) -> bool {
        self.inputs.iter().flat_map(|(names, _)| names).any(|(name, _)| name.is_source())
    }
}

pub(super) type Drafts = BTreeMap<TaskName, Draft>;

/// Who sends to whom, and who reads the source: downstream task to its upstream tasks.
pub(super) fn inputs(drafts: &Drafts) -> BTreeMap<TaskName, Vec<TaskName>> {
    let mut upstream: BTreeMap<TaskName, BTreeSet<TaskName>> = BTreeMap::new();
    for (name, draft) in drafts {
        for to in draft.outputs.keys() {
            upstream.entry(to.clone()).or_default().insert(name.clone());
        }
        if draft.reads_source() {
            upstream.entry(name.clone()).or_default().insert(TaskName::source());
        }
    }
    upstream.into_iter().map(|(name, from)| (name, from.into_iter().collect())).collect()
}

/// Tells everything that is wrong with the edges.
pub(super) fn check(drafts: &Drafts, has_source: bool, problems: &mut Problems) {
    let upstream = inputs(drafts);
    for (name, draft) in drafts {
        check_outputs(name, draft, drafts, problems);
        check_inputs(name, draft, drafts, problems);
        check_named(name, draft, drafts, problems);
        check_agreement(name, draft, upstream.get(name).map_or(&[], Vec::as_slice), problems);
        if draft.reads_source() && !has_source {
            let place = draft.inputs.as_ref().map_or(&draft.place, |(_, place)| place);
            problems.add(
                place,
                "reads `source`, but the job has none",
                "add `source` to the job or remove the input",
            );
        }
        if has_source && !upstream.contains_key(name) {
            problems.add(
                &draft.place,
                "nothing reaches this task: no task sends to it and it does not read the source",
                "write `inputs: [source]`, or an output of another task to it",
            );
        }
    }
    check_cycles(drafts, problems);
}

fn check_outputs(name: &TaskName, draft: &Draft, drafts: &Drafts, problems: &mut Problems) {
    for (to, (_, place)) in &draft.outputs {
        if to == name {
            problems.add(place, "the task sends to itself", "remove the output");
        } else if to.is_source() {
            problems.add(place, "the source takes no input", "remove the output");
        } else if !drafts.contains_key(to) {
            unknown_task(to, place, drafts, problems);
        }
    }
}

fn check_inputs(name: &TaskName, draft: &Draft, drafts: &Drafts, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (from, place) in draft.inputs.iter().flat_map(|(names, _)| names) {
        if !seen.insert(from) {
            problems.add(place, format!("{from} is listed twice"), "remove one");
        } else if from.is_source() {
            // Checked against the job's source by the caller.
        } else if from == name {
            problems.add(place, "the task reads itself", "remove the input");
        } else {
            match drafts.get(from) {
                None => unknown_task(from, place, drafts, problems),
                Some(upstream) if !upstream.outputs.contains_key(name) => problems.add(
                    place,
                    format!("{from} has no output to {name}"),
                    format!("add `outputs: {{ {name}: <bytes an item> }}` to {from}, or remove the input"),
                ),
                Some(_) => {}
            }
        }
    }
}

/// Rules name other tasks of the job.
pub(super) fn check_named(name: &TaskName, draft: &Draft, drafts: &Drafts, problems: &mut Problems) {
    for (other, place) in &draft.named {
        if other == name {
            problems.add(place, "the task names itself", "name another task");
        } else if other.is_source() {
            let remedy = "write `constraints: [\"node.name == <the source's node>\"]`";
            problems.add(place, "the source is on its node already", remedy);
        } else if !drafts.contains_key(other) {
            unknown_task(other, place, drafts, problems);
        }
    }
}

/// Inputs that are written have to name every task that sends here.
fn check_agreement(name: &TaskName, draft: &Draft, upstream: &[TaskName], problems: &mut Problems) {
    let Some((written, place)) = &draft.inputs else {
        return;
    };
    for from in upstream.iter().filter(|from| *from != name) {
        if !written.iter().any(|(listed, _)| listed == from) {
            problems.add(
                place,
                format!("{from} sends to {name}, but is not listed"),
                format!("add {from} to the inputs, or leave `inputs` out"),
            );
        }
    }
}

pub(super) fn unknown_task(name: &TaskName, place: &Place, drafts: &Drafts, problems: &mut Problems) {
    // The search for a near name is costly: only while its answer is still told.
    let near = match problems.full() {
        true => None,
        false => nearest(name.as_str(), drafts.keys().map(TaskName::as_str)),
    };
    let remedy = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name a task of this job".to_owned(),
    };
    problems.add(place, format!("there is no task {name}"), remedy);
}

fn check_cycles(drafts: &Drafts, problems: &mut Problems) {
    let outputs = drafts
        .iter()
        .map(|(name, draft)| {
            let known = |to: &&TaskName| *to != name && drafts.contains_key(*to);
            (name, draft.outputs.keys().filter(known).collect())
        })
        .collect();
    for cycle in cycles(outputs) {
        let (last, first) = (cycle[cycle.len() - 1], cycle[0]);
        let place = drafts.get(last).and_then(|draft| draft.outputs.get(first)).map(|(_, place)| place);
        if let Some(place) = place {
            let problem = format!("the tasks form a cycle: {}", shown(&cycle));
            problems.add(place, problem, "remove one of these outputs");
        }
    }
}

/// Each name with those that it leads to.
pub(super) type Steps<'a> = BTreeMap<&'a TaskName, BTreeSet<&'a TaskName>>;

/// Some cycles of these steps, each without its first name at the end again.
pub(super) fn cycles(mut left: Steps<'_>) -> Vec<Vec<&TaskName>> {
    let mut found = Vec::new();
    for _ in 0..CYCLES_MAX {
        drop_dead_ends(&mut left);
        let Some(cycle) = walk_cycle(&left) else { break };
        for name in &cycle {
            left.remove(name);
        }
        found.push(cycle);
    }
    found
}

/// `a -> b -> a`.
pub(super) fn shown(cycle: &[&TaskName]) -> String {
    let names: Vec<&str> = cycle.iter().map(|name| name.as_str()).collect();
    format!("{} -> {}", shortened(&names), cycle[0])
}

/// Removes, again and again, the tasks that send to nobody left: what remains leads into a cycle.
fn drop_dead_ends(left: &mut Steps<'_>) {
    let mut senders: BTreeMap<&TaskName, Vec<&TaskName>> = BTreeMap::new();
    let names: BTreeSet<&TaskName> = left.keys().copied().collect();
    for (name, to) in left.iter_mut() {
        to.retain(|to| names.contains(to));
        for to in to.iter() {
            senders.entry(*to).or_default().push(*name);
        }
    }
    let mut ended: Vec<&TaskName> =
        left.iter().filter(|(_, to)| to.is_empty()).map(|(name, _)| *name).collect();
    while let Some(name) = ended.pop() {
        left.remove(name);
        for sender in senders.remove(name).unwrap_or_default() {
            if let Some(to) = left.get_mut(sender) {
                to.remove(name);
                if to.is_empty() {
                    ended.push(sender);
                }
            }
        }
    }
}

/// Follows first outputs until a task comes again. The cycle starts at its first name in order.
fn walk_cycle<'a>(left: &Steps<'a>) -> Option<Vec<&'a TaskName>> {
    let mut path = vec![*left.keys().next()?];
    let mut position = BTreeMap::from([(path[0], 0)]);
    loop {
        let next = *left.get(path[path.len() - 1])?.iter().next()?;
        if let Some(start) = position.insert(next, path.len()) {
            let mut cycle = path.split_off(start);
            let first = (0..cycle.len()).min_by_key(|index| cycle[*index])?;
            cycle.rotate_left(first);
            return Some(cycle);
        }
        path.push(next);
    }
}

/// `a -> b -> c`, the middle left out of a long one.
fn shortened(names: &[&str]) -> String {
    if names.len() <= 12 {
        return names.join(" -> ");
    }
    format!("{} -> ... ({} more) -> {}", names[..10].join(" -> "), names.len() - 11, names[names.len() - 1])
}
