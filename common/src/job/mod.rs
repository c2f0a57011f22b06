//! The job document: what a user posts, checked as a whole, then carried as [`Job`].
//!
//! `document` reads YAML or JSON and answers either with a [`Job`] in which every promise below holds
//! or with every problem at once, each with its line and the remedy.

mod batch;
mod disconnect;
mod document;
mod fields;
mod graph;
mod hosting;
mod measure;
mod placement;
mod problems;
mod program;
mod rules;
mod sla;
mod source;
#[cfg(test)]
mod tests;
mod total;
mod tree;
pub(crate) mod words;

pub use batch::{RETRIES_DEFAULT, RETRIES_MAX};
pub use disconnect::{Disconnect, LOST_AFTER_S, Reconcile};
pub use document::{TASKS_MAX, line_of, parse};
pub use measure::ITEMS_MAX;
pub use placement::{
    ANYWHERE, Affinity, Effect, HostPort, Mount, Origin, Placement, Preference, Protocol, Selector, Spread,
    Taint, TaintError, Term, Toleration, Volume, is_within,
};
pub use program::{CPU_DEFAULT, MEMORY_DEFAULT};
pub use sla::{REPUTATION_LABEL, Service, Sla, reputation};
pub use tree::DOCUMENT_MAX_BYTES;

use crate::ids::{JobName, NodeId, SecretName, TaskName};
use crate::units::{Bytes, MilliCores, Work};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The port on which every task listens; each task has an address of its own, so one port serves all.
pub const TASK_PORT: u16 = 7000;

/// Where a container finds its secrets, as with Compose and Swarm.
pub const SECRETS_FOLDER: &str = "/run/secrets";

/// An accepted job: names are unique, edges join known tasks, the graph has no cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub name: JobName,
    #[serde(default, skip_serializing_if = "Kind::is_pipeline")]
    pub kind: Kind,
    /// The scheduling profile; none: the controller's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub tasks: BTreeMap<TaskName, Task>,
    /// What happens when a node of the job is out of reach.
    #[serde(default, skip_serializing_if = "Disconnect::is_default")]
    pub disconnect: Disconnect,
    /// Reputation and redundancy are in `tasks` already.
    #[serde(default, skip_serializing_if = "Sla::is_default")]
    pub sla: Sla,
}

/// What a job's tasks are to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// They pass items on for as long as the job is there.
    #[default]
    Pipeline,
    /// They run to their end and pass nothing on. They start together or not at all: a container that needs
    /// no other is a job of its own.
    Batch,
    /// A bag of tasks: they run to their end and pass nothing on, and each starts as soon as there is room.
    Bag,
}

impl Kind {
    fn is_pipeline(&self) -> bool {
        *self == Self::Pipeline
    }

    /// Its containers run to an end of their own.
    #[must_use]
    pub fn ends(self) -> bool {
        self != Self::Pipeline
    }
}

/// Where a job's items come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub node: NodeId,
    /// Bytes an item, sent to each task that lists `source` among its inputs.
    pub item: Bytes,
    /// Items a second that the source makes at most; none: as fast as the job takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// A container that produces the items; none: a process on the node's own address does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Program>,
}

/// What runs in a container and what it may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    pub image: String,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub resources: Resources,
    /// Each is a file of this name below [`SECRETS_FOLDER`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<SecretName>,
}

/// One vertex of the job's graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    #[serde(flatten)]
    pub program: Program,
    /// Reference-core time an item; none: unknown, counted as nothing in predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Bytes an item to each downstream task.
    #[serde(default)]
    pub outputs: BTreeMap<TaskName, Bytes>,
    /// Tasks upstream, and `source` if the task reads it. Consistent with the others' `outputs`.
    #[serde(default)]
    pub inputs: Vec<TaskName>,
    /// All have to hold of a task's node.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// None: the profiler leaves the task out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// The task that this is a further container of; all of them are on different nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<TaskName>,
    /// Rules and wishes beside the constraints.
    #[serde(default, skip_serializing_if = "Placement::is_anywhere")]
    pub placement: Placement,
    /// Of a task that runs to its end; none: once, after no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// How a task runs to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The document's name of it, which several containers may share: `work` of `work-17`.
    pub of: TaskName,
    /// How often the container is started again when it ends with a code other than 0.
    pub retries: u32,
    /// Names of the document, with what all of their containers have to have done before this one starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub depends_on: BTreeMap<TaskName, Until>,
}

/// How far a task has to be for those that depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    Started,
    /// Ended, whatever the code.
    Finished,
    Succeeded,
}

/// Requests, which are limits too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub cpu: MilliCores,
    pub memory: Bytes,
    #[serde(default)]
    pub storage: Bytes,
    /// The document names no CPU: `cpu` is a floor, and the planner may give more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cpu_sized: bool,
    /// The document names no memory: a measured peak may take the place of `memory`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_sized: bool,
}

/// How the profiler runs a task: this command instead of the task's, for so many items, ending by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    pub command: Vec<String>,
    /// Items that one run of the command computes; also in its environment as `EDGELOOM_ITEMS`.
    pub items: u32,
}

/// `node.name == x`, `node.labels.gpu != true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    pub attribute: Attribute,
    /// False for `!=`.
    pub equal: bool,
    pub value: String,
}

/// What a constraint looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    Name,
    Label(String),
}

impl Attribute {
    /// What a node has for it.
    #[must_use]
    pub fn of<'n>(&self, node: &'n NodeId, labels: &'n BTreeMap<String, String>) -> Option<&'n str> {
        match self {
            Self::Name => Some(node.as_str()),
            Self::Label(key) => labels.get(key).map(String::as_str),
        }
    }
}

impl Constraint {
    /// Whether a node satisfies it. A missing label equals nothing.
    #[must_use]
    pub fn holds(&self, node: &NodeId, labels: &BTreeMap<String, String>) -> bool {
        (self.attribute.of(node, labels) == Some(self.value.as_str())) == self.equal
    }
}

impl Task {
    /// One that is joined to no other and may run anywhere; of its work nothing is known.
    #[must_use]
    pub fn alone(image: &str, resources: Resources) -> Self {
        let program = Program {
            image: image.to_owned(),
            command: Vec::new(),
            environment: BTreeMap::new(),
            resources,
            secrets: BTreeSet::new(),
        };
        Self {
            program,
            work: None,
            outputs: BTreeMap::new(),
            inputs: Vec::new(),
            constraints: Vec::new(),
            measure: None,
            copy_of: None,
            placement: Placement::default(),
            run: None,
        }
    }
}

impl Job {
    /// A pipeline of these tasks, as a document has it that says no more.
    #[must_use]
    pub fn of(name: JobName, tasks: BTreeMap<TaskName, Task>) -> Self {
        Self {
            name,
            kind: Kind::Pipeline,
            profile: None,
            source: None,
            tasks,
            disconnect: Disconnect::default(),
            sla: Sla::default(),
        }
    }

    /// Every edge with its bytes an item, the source's included, in a fixed order.
    pub fn edges(&self) -> impl Iterator<Item = (TaskName, TaskName, Bytes)> + '_ {
        let from_source = self.source.iter().flat_map(|source| {
            self.tasks
                .iter()
                .filter(|(_, task)| task.inputs.iter().any(TaskName::is_source))
                .map(|(name, _)| (TaskName::source(), name.clone(), source.item))
        });
        let between = self.tasks.iter().flat_map(|(name, task)| {
            task.outputs.iter().map(|(to, bytes)| (name.clone(), to.clone(), *bytes))
        });
        from_source.chain(between)
    }
}
