//! The `sla` block of a job: a service in each of four classes.
//!
//! `satisfaction` says how long the job waits, `reputation` on which nodes it runs, `resources` how many cores
//! its tasks get, `redundancy` how many copies of each run. What is left out promises nothing. Reading the
//! block turns reputation into constraints and redundancy into further tasks, so that every profile keeps
//! them; [`Service::level`] is what schedulers compare.

use super::fields::{self, Fields};
use super::graph::Draft;
use super::problems::{Place, Problems, excerpt};
use super::tree::Node;
use super::{Attribute, Constraint, TASKS_MAX, Task};
use crate::ids::TaskName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The label that says a node's reputation.
pub const REPUTATION_LABEL: &str = "reputation";
const HIGH: &str = "high";
const LOW: &str = "low";

const SLA_FIELDS: &[&str] = &["satisfaction", "reputation", "resources", "redundancy"];
const REMEDY: &str = "write `premium`, `advanced` or `best-effort`";

/// The service that a user chose in each class; none: no class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sla {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satisfaction: Option<Service>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reputation: Option<Service>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Service>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<Service>,
}

/// One of the three services of a class; the better is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    BestEffort,
    Advanced,
    Premium,
}

impl Service {
    /// All, the best first.
    pub const ALL: [Self; 3] = [Self::Premium, Self::Advanced, Self::BestEffort];

    /// As a document writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Premium => "premium",
            Self::Advanced => "advanced",
            Self::BestEffort => "best-effort",
        }
    }

    /// The paper's priority: 3, 2 or 1.
    #[must_use]
    pub const fn level(self) -> u32 {
        match self {
            Self::Premium => 3,
            Self::Advanced => 2,
            Self::BestEffort => 1,
        }
    }

    /// Containers of a task in all, the first one counted: the paper's example of 3, 2 and 1.
    #[must_use]
    pub const fn copies(self) -> u32 {
        self.level()
    }
}

impl Sla {
    /// Nothing differs from a block left out.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The same service in every class.
    #[must_use]
    pub const fn all(service: Service) -> Self {
        let some = Some(service);
        Self { satisfaction: some, reputation: some, resources: some, redundancy: some }
    }

    /// Binds the tasks to nodes of the reputation, and adds the copies of each.
    pub fn apply(&self, tasks: &mut BTreeMap<TaskName, Task>) {
        for task in tasks.values_mut() {
            task.constraints.extend(self.reputation.into_iter().flat_map(reputed));
        }
        for (name, original) in tasks.clone() {
            for copy in self.copies(&name).flatten() {
                tasks.insert(copy, Task { copy_of: Some(name.clone()), ..original.clone() });
            }
        }
    }

    /// Names of the further containers of a task: `work-2`, `work-3`; none where one is too long.
    fn copies(&self, task: &TaskName) -> impl Iterator<Item = Option<TaskName>> + use<> {
        let task = task.clone();
        let copies = self.redundancy.map_or(1, Service::copies);
        (2..=copies).map(move |number| format!("{task}-{number}").parse().ok())
    }
}

/// Whose service a node with these labels is for: high reputation is premium, low is best effort, and any
/// other word, or none, is average.
#[must_use]
pub fn reputation(labels: &BTreeMap<String, String>) -> Service {
    match labels.get(REPUTATION_LABEL).map(String::as_str) {
        Some(HIGH) => Service::Premium,
        Some(LOW) => Service::BestEffort,
        _ => Service::Advanced,
    }
}

/// The constraints that say the same as [`reputation`].
fn reputed(service: Service) -> Vec<Constraint> {
    let label = |equal: bool, value: &str| Constraint {
        attribute: Attribute::Label(REPUTATION_LABEL.to_owned()),
        equal,
        value: value.to_owned(),
    };
    match service {
        Service::Premium => vec![label(true, HIGH)],
        Service::Advanced => vec![label(false, HIGH), label(false, LOW)],
        Service::BestEffort => vec![label(true, LOW)],
    }
}

/// The block as read, with the places of what the tasks may contradict.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) sla: Sla,
    resources: Place,
    redundancy: Place,
}

/// Reads the block; what does not read is a problem and counts as left out.
pub(super) fn sla(node: &Node, place: &Place, problems: &mut Problems) -> Option<Written> {
    let fields = Fields::open(node, place, SLA_FIELDS, problems)?;
    let mut class = |name: &str| match fields.optional(name) {
        Some((node, place)) => (service(node, &place, problems), place),
        None => (None, place.clone()),
    };
    let (satisfaction, _) = class("satisfaction");
    let (reputation, _) = class("reputation");
    let (resources, resources_at) = class("resources");
    let (redundancy, redundancy_at) = class("redundancy");
    let sla = Sla { satisfaction, reputation, resources, redundancy };
    Some(Written { sla, resources: resources_at, redundancy: redundancy_at })
}

fn service(node: &Node, place: &Place, problems: &mut Problems) -> Option<Service> {
    let text = fields::text(node, place, problems)?;
    let found = Service::ALL.into_iter().find(|service| service.name() == text);
    if found.is_none() {
        problems.add(place, format!("{:?} is no service", excerpt(text)), REMEDY);
    }
    found
}

/// Tells what the tasks of a batch contradict.
pub(super) fn check_batch(written: &Written, drafts: &BTreeMap<TaskName, Draft>, problems: &mut Problems) {
    check_sized(written, drafts, problems);
    if written.sla.redundancy.map_or(1, Service::copies) > 1 {
        let problem = "would run each container several times, and a batch runs it once";
        problems.add(&written.redundancy, problem, "remove it, or write `best-effort`");
    }
}

fn check_sized(written: &Written, drafts: &BTreeMap<TaskName, Draft>, problems: &mut Problems) {
    let sized = |draft: &Draft| draft.program.as_ref().is_none_or(|program| program.resources.cpu_sized);
    if written.sla.resources.is_some() && !drafts.values().any(sized) {
        let problem = "sizes tasks that name no `cpu`, and every task names one";
        problems.add(&written.resources, problem, "remove it, or the `cpu` of a task that it shall size");
    }
}

/// Tells what the tasks contradict.
pub(super) fn check(
    written: &Written,
    (drafts, has_source): (&BTreeMap<TaskName, Draft>, bool),
    problems: &mut Problems,
) {
    check_sized(written, drafts, problems);
    let copies = written.sla.redundancy.map_or(1, Service::copies);
    let joined = has_source || drafts.values().any(|draft| !draft.outputs.is_empty());
    if copies > 1 && joined {
        let problem = format!("{copies} copies of each task would double the items that pass between them");
        let remedy = "write `best-effort`, or run the tasks as a job without edges";
        problems.add(&written.redundancy, problem, remedy);
    } else if copies > 1 {
        copies_have_names(written, drafts, problems);
    }
}

fn copies_have_names(written: &Written, drafts: &BTreeMap<TaskName, Draft>, problems: &mut Problems) {
    let copies = drafts.keys().flat_map(|task| written.sla.copies(task));
    if drafts.len() + copies.count() > TASKS_MAX {
        let problem = format!("with its copies the job has more than {TASKS_MAX} tasks");
        problems.add(&written.redundancy, problem, "split the job");
    }
    for task in drafts.keys() {
        let taken = |copy: &TaskName| drafts.contains_key(copy);
        let problem = match written.sla.copies(task).find(|copy| copy.as_ref().is_none_or(taken)) {
            None => continue,
            Some(Some(copy)) => format!("a copy of {task} is named {copy}, as another task is"),
            Some(None) => format!("the name {task} is too long for copies"),
        };
        problems.add(&written.redundancy, problem, "rename the task");
    }
}
