//! Reads a posted document: YAML or JSON in, a checked [`Job`] or every problem at once out.
//!
//! The order: bytes to a located tree (`tree`), fields to typed values (`fields`, `program`), then the graph
//! as a whole (`graph`). A problem never ends the reading of its neighbours; only a text that is no
//! single mapping, or another kind of document, ends it at once.

use super::disconnect::disconnect;
use super::fields::{self, Fields};
use super::graph::{self, Draft, Drafts};
use super::hosting;
use super::measure::measure;
use super::problems::{Place, Problems, excerpt};
use super::rules;
use super::sla::{self, Service};
use super::source::source;
use super::tree::{self, Node, Value};
use super::words::Condition;
use super::{Constraint, Job, Kind, Program, Source, Task, batch, program, total};
use crate::ids::{JobName, TaskName};
use crate::units::{Bytes, Work};
use crate::view::ProblemItem;
use std::collections::BTreeMap;

/// The most tasks of one job.
pub const TASKS_MAX: usize = 1000;

const CONSTRAINTS_MAX: usize = 32;
const ROOT_FIELDS: &[&str] =
    &["kind", "name", "profile", "source", "resources", "tasks", "disconnect", "sla"];
const TASK_FIELDS: &[&str] = &[
    "image",
    "command",
    "environment",
    "resources",
    "secrets",
    "work",
    "inputs",
    "outputs",
    "constraints",
    "measure",
    "labels",
    "tolerations",
    "preferences",
    "affinity",
    "anti_affinity",
    "spread",
    "ports",
    "volumes",
];

pub(super) const NAME_REMEDY: &str = "write a name such as `detect-2`";
const BYTES_REMEDY: &str = "write bytes with a unit, for instance `120KB`";

/// Reads a job.
///
/// # Errors
/// Every problem of the document in line order, never none.
pub fn parse(text: &[u8]) -> Result<Job, Vec<ProblemItem>> {
    let root = tree::read(text).map_err(|problem| vec![problem])?;
    let mut problems = Problems::default();
    let job = job(&root, &mut problems);
    problems.finish(job)
}

/// The line of a field such as `tasks.detect.image`, from 1; 0 where the document has none. For what is
/// found out only after the reading.
#[must_use]
pub fn line_of(text: &[u8], field: &str) -> usize {
    let Ok(root) = tree::read(text) else { return 0 };
    let (mut node, mut line) = (&root, 0);
    for name in field.split('.') {
        let Value::Map(entries) = &node.value else { return line };
        let Some(entry) = entries.iter().find(|entry| entry.key == name) else { return line };
        (node, line) = (&entry.value, entry.line);
    }
    line
}

fn job(root: &Node, problems: &mut Problems) -> Option<Job> {
    let place = Place::root(root.line);
    if !matches!(root.value, Value::Map(_)) {
        let problem = format!("the document is {}, not a job", root.value.kind());
        problems.add(&place, problem, "write a mapping with `kind: Job`, `name` and `tasks`");
        return None;
    }
    // Another kind has other fields: telling of each of them would only hide the one thing to say.
    match written(root, &place, problems)? {
        Written::Job => pipeline(root, &place, problems),
        Written::Batch => batch::job(root, &place, problems),
    }
}

fn pipeline(root: &Node, place: &Place, problems: &mut Problems) -> Option<Job> {
    let fields = Fields::open(root, place, ROOT_FIELDS, problems)?;
    let (name, profile) = names(&fields, problems);
    let source_written = fields.optional("source");
    let mut source = source_written.as_ref().and_then(|(node, place)| source(node, place, problems));
    let total =
        fields.optional("resources").and_then(|(node, place)| total::memory_total(node, &place, problems));
    let mut drafts = drafts(&fields, TASK_FIELDS, problems)?;
    let away = fields.optional("disconnect").and_then(|(node, place)| disconnect(node, &place, problems));
    let classes = fields.optional("sla").and_then(|(node, place)| sla::sla(node, &place, problems));
    graph::check(&drafts, source_written.is_some(), problems);
    hosting::check(&drafts, problems);
    if let Some(written) = &classes {
        sla::check(written, (&drafts, source_written.is_some()), problems);
    }
    let sla = classes.map(|written| written.sla).unwrap_or_default();
    if let Some(total) = &total {
        let copies = sla.redundancy.map_or(1, Service::copies);
        total::hold((total, copies), programs(&mut source, &mut drafts), problems);
    }
    let mut tasks = tasks(drafts)?;
    sla.apply(&mut tasks);
    Some(Job {
        name: name?,
        kind: Kind::Pipeline,
        profile,
        source,
        tasks,
        disconnect: away.unwrap_or_default(),
        sla,
    })
}

/// The job's name and its profile's.
pub(super) fn names(fields: &Fields<'_>, problems: &mut Problems) -> (Option<JobName>, Option<String>) {
    let name = fields
        .required("name", "name the job, for instance `name: object-attributes`", problems)
        .and_then(|(node, place)| fields::parsed::<JobName>(node, &place, NAME_REMEDY, problems));
    let profile = fields.optional("profile").and_then(|(node, place)| {
        fields::parsed::<JobName>(node, &place, "write a profile's name, for instance `edgeloom`", problems)
    });
    (name, profile.map(String::from))
}

/// Everything that runs in a container, by name.
fn programs<'a>(
    source: &'a mut Option<Source>,
    drafts: &'a mut BTreeMap<TaskName, Draft>,
) -> impl Iterator<Item = (&'a str, &'a mut Program)> {
    let source = source.as_mut().and_then(|source| source.container.as_mut());
    let tasks = drafts.iter_mut().filter_map(|(name, draft)| Some((name.as_str(), draft.program.as_mut()?)));
    source.map(|program| ("source", program)).into_iter().chain(tasks)
}

/// Kinds of documents.
enum Written {
    Job,
    Batch,
}

/// Without a kind the document is read as a job, so that its other problems are told too.
fn written(root: &Node, place: &Place, problems: &mut Problems) -> Option<Written> {
    let remedy = "write `kind: Job`, or `kind: Batch` for containers that run to their end";
    let Some(kind) =
        Fields::any(root, place, &mut Problems::default()).and_then(|fields| fields.optional("kind"))
    else {
        problems.add(&place.field("kind", place.line), "is missing", remedy);
        return Some(Written::Job);
    };
    let (node, place) = kind;
    let problem = match &node.value {
        Value::Text(kind) if kind == "Job" => return Some(Written::Job),
        Value::Text(kind) if kind == "Batch" => return Some(Written::Batch),
        Value::Text(kind) if kind == "Service" => {
            format!("`kind: {kind}` is not supported by this version")
        }
        Value::Text(kind) => format!("{:?} is no kind of document known here", excerpt(kind)),
        other => format!("is {}, not a kind", other.kind()),
    };
    problems.add(&place, problem, remedy);
    None
}

/// The tasks as far as they read, each of these fields.
pub(super) fn drafts(
    fields: &Fields<'_>,
    known: &'static [&'static str],
    problems: &mut Problems,
) -> Option<Drafts> {
    let (node, place) = fields.required("tasks", "write at least one task under `tasks`", problems)?;
    let fields = Fields::any(node, &place, problems)?;
    let count = fields.iter().count();
    if !(1..=TASKS_MAX).contains(&count) {
        let problem = format!("there are {count} tasks, a job has 1 to {TASKS_MAX}");
        problems.add(&place, problem, "add a task, or split the job");
        return None;
    }
    let mut drafts = Drafts::new();
    for (key, node, place) in fields.iter() {
        let draft = Fields::open(node, &place, known, problems)
            .map_or_else(|| Draft::new(place.clone()), |fields| draft(&fields, problems));
        match key.parse::<TaskName>() {
            Ok(name) if name.is_source() => {
                problems.add(&place, "the name `source` stands for the job's source", "rename the task");
            }
            Ok(name) => {
                drafts.insert(name, draft);
            }
            Err(error) => problems.add(&place, excerpt(&error.to_string()), NAME_REMEDY),
        }
    }
    Some(drafts)
}

fn draft(fields: &Fields<'_>, problems: &mut Problems) -> Draft {
    let mut draft = Draft::new(fields.place.clone());
    draft.program = program::program(fields, problems);
    draft.work = fields.optional("work").and_then(|(node, place)| {
        fields::parsed::<Work>(
            node,
            &place,
            "write reference-core time an item, for instance `40ms`",
            problems,
        )
    });
    draft.inputs = fields.optional("inputs").and_then(|(node, place)| {
        let items = fields::list(node, &place, TASKS_MAX, problems)?;
        let named = items
            .into_iter()
            .filter_map(|(node, place)| Some((fields::parsed(node, &place, NAME_REMEDY, problems)?, place)));
        Some((named.collect(), place))
    });
    draft.outputs = fields
        .optional("outputs")
        .and_then(|(node, place)| Fields::any(node, &place, problems))
        .map(|outputs| outputs.iter().filter_map(|output| edge(output, problems)).collect())
        .unwrap_or_default();
    draft.constraints = fields
        .optional("constraints")
        .and_then(|(node, place)| constraints(node, &place, problems))
        .unwrap_or_default();
    (draft.placement, draft.named) = rules::placement(fields, problems);
    draft.measure = fields.optional("measure").and_then(|(node, place)| measure(node, &place, problems));
    draft
}

/// `downstream: bytes`. The edge is kept for the graph even when its bytes don't read.
fn edge(
    (key, node, place): (&str, &Node, Place),
    problems: &mut Problems,
) -> Option<(TaskName, (Option<Bytes>, Place))> {
    let bytes = positive_bytes(node, &place, problems);
    match key.parse() {
        Ok(name) => Some((name, (bytes, place))),
        Err(error) => {
            let error: crate::ids::NameError = error;
            problems.add(&place, excerpt(&error.to_string()), NAME_REMEDY);
            None
        }
    }
}

fn constraints(node: &Node, place: &Place, problems: &mut Problems) -> Option<Vec<Constraint>> {
    let items = fields::list(node, place, CONSTRAINTS_MAX, problems)?;
    let remedy = "write `node.name == n1` or `node.labels.camera != true`, in quotes";
    let read = |(node, place): (&Node, Place)| {
        fields::parsed::<Condition>(node, &place, remedy, problems).map(|condition| condition.0)
    };
    Some(items.into_iter().filter_map(read).collect())
}

/// Bytes an item, at least one.
pub(super) fn positive_bytes(node: &Node, place: &Place, problems: &mut Problems) -> Option<Bytes> {
    let bytes: Bytes = fields::parsed(node, place, BYTES_REMEDY, problems)?;
    if bytes.0 == 0 {
        problems.add(place, "an item has at least one byte", BYTES_REMEDY);
        return None;
    }
    Some(bytes)
}

/// The tasks, if every draft is complete; `inputs` become what the graph says.
pub(super) fn tasks(drafts: Drafts) -> Option<BTreeMap<TaskName, Task>> {
    let inputs = graph::inputs(&drafts);
    let finish = |(name, draft): (TaskName, Draft)| {
        let outputs = draft.outputs.into_iter().map(|(to, (bytes, _))| Some((to, bytes?)));
        let task = Task {
            program: draft.program?,
            work: draft.work,
            outputs: outputs.collect::<Option<_>>()?,
            inputs: inputs.get(&name).cloned().unwrap_or_default(),
            constraints: draft.constraints,
            measure: draft.measure,
            copy_of: None,
            placement: draft.placement,
            run: None,
        };
        Some((name, task))
    };
    drafts.into_iter().map(finish).collect()
}
