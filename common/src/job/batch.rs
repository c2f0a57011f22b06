//! `kind: Batch`: containers that run to their end, each for itself or all of them together.
//!
//! The fields of a task are those of `kind: Job` without what makes a pipeline, and `count`, `retries` and
//! `depends_on`. A task with a count becomes as many tasks as it says, which know their number from the
//! environment. Tasks depend on names of the document, so that a thousand on a thousand are one entry each.

use super::disconnect::disconnect;
use super::document::{NAME_REMEDY, TASKS_MAX, drafts, names, tasks};
use super::fields::{self, Fields};
use super::graph::{self, Drafts};
use super::problems::{Place, Problems, excerpt};
use super::sla;
use super::tree::Node;
use super::{Job, Kind, Run, Task, Until};
use crate::ids::TaskName;
use std::collections::BTreeMap;

/// Retries of a task that says none.
pub const RETRIES_DEFAULT: u32 = 3;
/// The most retries.
pub const RETRIES_MAX: u32 = 100;

const ROOT_FIELDS: &[&str] = &["kind", "name", "profile", "gang", "tasks", "disconnect", "sla"];
const TASK_FIELDS: &[&str] = &[
    "image",
    "command",
    "environment",
    "resources",
    "secrets",
    "count",
    "retries",
    "depends_on",
    "constraints",
    "labels",
    "tolerations",
    "preferences",
    "affinity",
    "anti_affinity",
    "spread",
];
const DEPENDS_REMEDY: &str = "write `depends_on: { prepare: succeeded }`; or `finished`, or `started`";

/// A task beside its program.
#[derive(Debug)]
struct Written {
    /// None: one container, named like the task.
    count: Option<(u32, Place)>,
    retries: u32,
    depends_on: BTreeMap<TaskName, (Until, Place)>,
}

type Runs = BTreeMap<TaskName, Written>;

/// Reads the document as a batch.
pub(super) fn job(root: &Node, place: &Place, problems: &mut Problems) -> Option<Job> {
    let fields = Fields::open(root, place, ROOT_FIELDS, problems)?;
    let (name, profile) = names(&fields, problems);
    let gang = fields.optional("gang").and_then(|(node, place)| {
        fields::parsed::<bool>(node, &place, "write `gang: true` or `gang: false`", problems)
    });
    let kind = if gang == Some(true) { Kind::Batch } else { Kind::Bag };
    let drafts = drafts(&fields, TASK_FIELDS, problems)?;
    let runs = fields.optional("tasks").map(|(node, place)| runs(node, &place, problems))?;
    let away = fields.optional("disconnect").and_then(|(node, place)| disconnect(node, &place, problems));
    let classes = fields.optional("sla").and_then(|(node, place)| sla::sla(node, &place, problems));
    check_rules(kind, (&drafts, &runs), problems);
    check_dependencies((&drafts, &runs), kind, problems);
    check_counts((&drafts, &runs), problems);
    if let Some(written) = &classes {
        sla::check_batch(written, &drafts, problems);
    }
    let sla = classes.map(|written| written.sla).unwrap_or_default();
    let mut tasks = counted(tasks(drafts)?, &runs);
    sla.apply(&mut tasks);
    let (source, disconnect) = (None, away.unwrap_or_default());
    Some(Job { name: name?, kind, profile, source, tasks, disconnect, sla })
}

fn runs(node: &Node, place: &Place, problems: &mut Problems) -> Runs {
    let Some(fields) = Fields::any(node, place, &mut Problems::default()) else { return Runs::new() };
    let read = |(key, node, place): (&str, &Node, Place)| {
        let fields = Fields::any(node, &place, &mut Problems::default())?;
        Some((key.parse().ok()?, run(&fields, problems)))
    };
    fields.iter().filter_map(read).collect()
}

fn run(fields: &Fields<'_>, problems: &mut Problems) -> Written {
    let count = fields.optional("count").and_then(|(node, place)| {
        let most = u32::try_from(TASKS_MAX).unwrap_or(u32::MAX);
        Some((number((node, &place), 1..=most, problems)?, place))
    });
    let retries = fields.optional("retries");
    let retries = retries.and_then(|(node, place)| number((node, &place), 0..=RETRIES_MAX, problems));
    let depends_on = fields
        .optional("depends_on")
        .and_then(|(node, place)| Fields::any(node, &place, problems))
        .map(|entries| entries.iter().filter_map(|entry| dependency(entry, problems)).collect());
    Written { count, retries: retries.unwrap_or(RETRIES_DEFAULT), depends_on: depends_on.unwrap_or_default() }
}

fn number(
    (node, place): (&Node, &Place),
    allowed: std::ops::RangeInclusive<u32>,
    problems: &mut Problems,
) -> Option<u32> {
    let text = fields::text(node, place, problems)?;
    match text.parse() {
        Ok(number) if allowed.contains(&number) => Some(number),
        _ => {
            let (least, most) = allowed.into_inner();
            let problem = format!("{:?} is no number from {least} to {most}", excerpt(text));
            problems.add(place, problem, "write a whole number");
            None
        }
    }
}

fn dependency(
    (key, node, place): (&str, &Node, Place),
    problems: &mut Problems,
) -> Option<(TaskName, (Until, Place))> {
    let until = match fields::text(node, &place, problems)? {
        "started" => Some(Until::Started),
        "finished" => Some(Until::Finished),
        "succeeded" => Some(Until::Succeeded),
        other => {
            problems.add(&place, format!("{:?} is no condition", excerpt(other)), DEPENDS_REMEDY);
            None
        }
    };
    match key.parse::<TaskName>() {
        Ok(name) => Some((name, (until?, place))),
        Err(error) => {
            problems.add(&place, excerpt(&error.to_string()), NAME_REMEDY);
            None
        }
    }
}

/// Rules that name tasks want all of these placed at once, each in one container.
fn check_rules(kind: Kind, (drafts, runs): (&Drafts, &Runs), problems: &mut Problems) {
    for (name, draft) in drafts {
        graph::check_named(name, draft, drafts, problems);
        for (other, place) in &draft.named {
            let several = [name, other].iter().any(|it| runs.get(it).is_some_and(|run| run.count.is_some()));
            if kind == Kind::Bag {
                let problem = "names a task, but each task is placed by itself";
                problems.add(place, problem, "write `gang: true`, or `labels` in place of names");
            } else if several {
                let problem = "names a task, but one of the two is several containers";
                problems.add(place, problem, "write `labels` in place of names");
            }
        }
    }
}

fn check_dependencies((drafts, runs): (&Drafts, &Runs), kind: Kind, problems: &mut Problems) {
    for (name, run) in runs {
        for (other, (_, place)) in &run.depends_on {
            if kind == Kind::Batch {
                let problem = "wants an order, but with `gang: true` all tasks start together";
                problems.add(place, problem, "remove it, or `gang`");
            } else if other == name {
                problems.add(place, "the task depends on itself", "name another task");
            } else if !drafts.contains_key(other) {
                graph::unknown_task(other, place, drafts, problems);
            }
        }
    }
    let steps = runs.iter().map(|(name, run)| {
        let others = run.depends_on.keys().filter(|other| *other != name);
        (name, others.collect())
    });
    for cycle in graph::cycles(steps.collect()) {
        let (first, next) = (cycle[0], cycle[1 % cycle.len()]);
        if let Some((_, place)) = runs.get(first).and_then(|run| run.depends_on.get(next)) {
            let problem = format!("the tasks wait for each other: {}", graph::shown(&cycle));
            problems.add(place, problem, "remove one of these conditions");
        }
    }
}

/// Every container needs a name of its own, and there are so many at most.
fn check_counts((drafts, runs): (&Drafts, &Runs), problems: &mut Problems) {
    let total: u64 =
        runs.values().map(|run| run.count.as_ref().map_or(1, |(count, _)| (*count).into())).sum();
    for (name, run) in runs {
        let Some((count, place)) = &run.count else { continue };
        if total > TASKS_MAX as u64 {
            let problem = format!("with this count there are {total} containers, a job has 1 to {TASKS_MAX}");
            problems.add(place, problem, "write a smaller one, or split the job");
            return;
        }
        for number in 1..=*count {
            let problem = match numbered(name, number) {
                None => format!("the name {name} is too long for numbers behind it"),
                Some(taken) if drafts.contains_key(&taken) => {
                    format!("container {number} is named {taken}, as another task is")
                }
                Some(_) => continue,
            };
            problems.add(place, problem, "rename one of the tasks");
            break;
        }
    }
}

/// `work-17`.
fn numbered(name: &TaskName, number: u32) -> Option<TaskName> {
    format!("{name}-{number}").parse().ok()
}

/// Each task as often as its count says.
fn counted(tasks: BTreeMap<TaskName, Task>, runs: &Runs) -> BTreeMap<TaskName, Task> {
    let mut all = BTreeMap::new();
    for (name, task) in tasks {
        let Some(written) = runs.get(&name) else { continue };
        let depends_on = written.depends_on.iter().map(|(other, (until, _))| (other.clone(), *until));
        let run = Run { of: name.clone(), retries: written.retries, depends_on: depends_on.collect() };
        let task = Task { run: Some(run), ..task };
        let Some((count, _)) = written.count else {
            all.insert(name, task);
            continue;
        };
        for number in 1..=count {
            let mut task = task.clone();
            let told = [("EDGELOOM_INDEX", number), ("EDGELOOM_COUNT", count)];
            let told = told.map(|(name, number)| (name.to_owned(), number.to_string()));
            task.program.environment.extend(told);
            all.extend(numbered(&name, number).map(|name| (name, task)));
        }
    }
    all
}
