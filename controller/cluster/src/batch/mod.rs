//! Batches: which tasks of a job that runs to its end can start, and how far it is. Pure.
//!
//! In: the record, with the ends that were journaled, and which containers have started. Out: the tasks that wait
//! for nothing but room, counts, and whether anything is left to run. Tasks depend on each other by the names of
//! the document, so everything is counted by these. `parts` puts waiting tasks before the scheduler.

mod parts;

pub(crate) use parts::Parts;

use crate::model::JobRecord;
use crate::nodes::Nodes;
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Task, Until};
use edgeloom_common::report::Outcome;
use edgeloom_common::view::BatchView;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Containers of batches that are placed at a time: what a node's document has room for, should one get all of them.
pub(crate) const ACTIVE_MAX: usize = 256;
/// Ended containers that a node keeps for their logs, those of all jobs together.
pub(crate) const KEPT_MAX: usize = 64;
/// Failures that a reason tells one by one.
const TOLD_MAX: usize = 3;

/// A task that has run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) node: NodeId,
    pub(crate) container_id: String,
    pub(crate) outcome: Outcome,
    /// By the node's clock.
    pub(crate) started_ms: Option<u64>,
    pub(crate) finished_ms: Option<u64>,
    /// When the controller heard of it.
    pub(crate) at_ms: u64,
}

/// The containers of one name of the document.
#[derive(Debug, Default)]
struct Group<'a> {
    depends_on: BTreeMap<&'a TaskName, Until>,
    total: usize,
    started: usize,
    ended: usize,
    succeeded: usize,
    /// What it waits for cannot come any more.
    barred: bool,
}

impl Group<'_> {
    fn is(&self, until: Until) -> bool {
        let count = match until {
            Until::Started => self.started,
            Until::Finished => self.ended,
            Until::Succeeded => self.succeeded,
        };
        count == self.total
    }

    /// It never will be so far.
    fn bars(&self, until: Until) -> bool {
        self.barred || (until == Until::Succeeded && self.succeeded < self.ended)
    }
}

type Groups<'a> = BTreeMap<&'a TaskName, Group<'a>>;

/// The document's name of a task.
fn group_of<'a>(name: &'a TaskName, task: &'a Task) -> &'a TaskName {
    task.run.as_ref().map_or(name, |run| &run.of)
}

fn groups<'a>(record: &'a JobRecord, started: impl Fn(&TaskName) -> bool) -> Groups<'a> {
    let mut groups = Groups::new();
    for (name, task) in &record.job.tasks {
        let group = groups.entry(group_of(name, task)).or_default();
        let end = record.ended.get(name);
        group.total += 1;
        group.started += usize::from(end.is_some() || started(name));
        group.ended += usize::from(end.is_some());
        group.succeeded += usize::from(end.is_some_and(|end| end.outcome.succeeded()));
        group.depends_on =
            task.run.iter().flat_map(|run| &run.depends_on).map(|(on, it)| (on, *it)).collect();
    }
    bar(&mut groups);
    groups
}

/// Who waits for somebody who is barred is barred too; dependencies form no cycle, so this ends.
fn bar(groups: &mut Groups<'_>) {
    loop {
        let bars = |on: &TaskName, until| groups.get(on).is_some_and(|group| group.bars(until));
        let barred = |group: &Group<'_>| group.depends_on.iter().any(|(on, until)| bars(on, *until));
        let next = groups.iter().find(|(_, group)| !group.barred && barred(group)).map(|(name, _)| *name);
        match next.and_then(|name| groups.get_mut(name)) {
            Some(group) => group.barred = true,
            None => return,
        }
    }
}

/// Tasks that wait for room alone, by the document's name of them.
pub(crate) fn ready<'a>(record: &'a JobRecord, nodes: &Nodes) -> BTreeMap<&'a TaskName, Vec<&'a TaskName>> {
    let running = running(record, nodes);
    let groups = groups(record, |task| running.contains(task));
    let met = |group: &Group<'_>| {
        let is = |(on, until): (&&TaskName, &Until)| groups.get(*on).is_none_or(|other| other.is(*until));
        !group.barred && group.depends_on.iter().all(is)
    };
    let open: BTreeSet<&TaskName> =
        groups.iter().filter(|(_, group)| met(group)).map(|(name, _)| *name).collect();
    let mut ready: BTreeMap<&TaskName, Vec<&TaskName>> = BTreeMap::new();
    for (name, task) in &record.job.tasks {
        let placed = record.plan.as_ref().is_some_and(|plan| plan.placement.contains_key(name));
        let group = group_of(name, task);
        if !placed && !record.ended.contains_key(name) && open.contains(group) {
            ready.entry(group).or_default().push(name);
        }
    }
    ready
}

/// Tasks whose container has started, as nodes show it.
fn running<'a>(record: &'a JobRecord, nodes: &'a Nodes) -> BTreeSet<&'a TaskName> {
    let placed = record.plan.iter().flat_map(|plan| &plan.placement);
    let started = |(task, node): &(&TaskName, &NodeId)| {
        let seen = nodes.table.get(*node).and_then(|known| known.observed.as_ref());
        let mut containers = seen.into_iter().flat_map(|seen| &seen.containers);
        containers
            .any(|state| state.job == record.job.name && state.task == **task && state.started_ms.is_some())
    };
    placed.filter(started).map(|(task, _)| task).collect()
}

/// Nothing is left that could run.
pub(crate) fn is_over(record: &JobRecord) -> bool {
    groups(record, |_| false).values().all(|group| group.barred || group.ended == group.total)
        && record.plan.as_ref().is_none_or(|plan| plan.placement.is_empty())
}

/// Every task has ended with code 0.
pub(crate) fn has_succeeded(record: &JobRecord) -> bool {
    record.job.tasks.keys().all(|task| record.ended.get(task).is_some_and(|end| end.outcome.succeeded()))
}

/// How far the job is.
pub(crate) fn view(record: &JobRecord, nodes: &Nodes) -> BatchView {
    let running = running(record, nodes);
    let groups = groups(record, |_| false);
    let placed = record.plan.as_ref().map_or(0, |plan| plan.placement.len());
    let sum = |of: fn(&Group<'_>) -> usize| groups.values().map(of).sum::<usize>();
    let (tasks, ended, succeeded) =
        (sum(|group| group.total), sum(|group| group.ended), sum(|group| group.succeeded));
    let barred = groups.values().filter(|group| group.barred);
    let skipped = barred.map(|group| group.total - group.ended).sum::<usize>();
    BatchView {
        tasks,
        succeeded,
        failed: ended - succeeded,
        skipped,
        running: running.len(),
        waiting: tasks.saturating_sub(ended + skipped + running.len()),
        placed,
    }
}

/// What went wrong, in words; nothing if nothing did.
pub(crate) fn failures(record: &JobRecord) -> Option<String> {
    let failed: Vec<_> = record.ended.iter().filter(|(_, end)| !end.outcome.succeeded()).collect();
    let tell = |(task, end): &(&TaskName, &Ended)| {
        let Outcome { exit_code, attempts } = end.outcome;
        let code = exit_code.map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
        format!("{task} on {} with {code} after {attempts} attempts", end.node)
    };
    let told: Vec<String> = failed.iter().take(TOLD_MAX).map(tell).collect();
    let more = match failed.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (count, all) = (failed.len(), record.job.tasks.len());
    (count > 0).then(|| format!("{count} of {all} tasks failed: {}{more}", told.join(", ")))
}
