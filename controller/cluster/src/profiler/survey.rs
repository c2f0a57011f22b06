//! What there is to measure of a job: each task with a `measure` block, on each hardware class that could
//! take it.

use super::candidate::{Candidate, Field};
use super::subject::{Subject, limit};
use crate::model::Model;
use crate::nodes::Nodes;
use crate::owner::Order;
use crate::pulls::Pulls;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::job::{Measure, Task};
use edgeloom_common::measure::{MeasureCommand, ProfileView};
use edgeloom_common::units::Bytes;

/// How to survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyRequest {
    /// Measure what is kept, too.
    pub again: bool,
    /// For each run.
    pub timeout_s: u32,
}

/// One task on one hardware class.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub task: TaskName,
    /// Empty where no node can take the task.
    pub class: String,
    pub verdict: Verdict,
}

/// What is to be done about a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing: it was measured before.
    Kept(Box<ProfileView>),
    Run(Box<Run>),
    /// It cannot be measured now, for this reason.
    Refused(String),
}

/// A measurement to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub node: NodeId,
    pub command: MeasureCommand,
    pub(crate) subject: Subject,
}

impl Run {
    /// Whether both measure the same program on the same class.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.subject == other.subject
    }
}

/// The trials of a job, by task and class.
pub(crate) fn survey(model: &Model, nodes: &Nodes, (order, request): (&Order, SurveyRequest)) -> Vec<Trial> {
    let (known, pulls) = (nodes.schedulable(), Pulls::after(model, nodes));
    let field = Field { model, nodes, known: &known, pulls: &pulls };
    let mut trials = Vec::new();
    for (name, task) in &order.job.tasks {
        let (Some(measure), Some(image)) = (&task.measure, order.images.get(name)) else { continue };
        let asked = Asked { job: &order.job.name, name, task, measure, image: &image.reference, request };
        match field.candidates(task, image) {
            Ok(classes) => trials.extend(classes.into_iter().map(|(class, found)| {
                let verdict = asked.verdict(model, &class, found);
                Trial { task: name.clone(), class, verdict }
            })),
            Err(reason) => {
                let verdict = Verdict::Refused(reason);
                trials.push(Trial { task: name.clone(), class: String::new(), verdict });
            }
        }
    }
    trials
}

/// One task to measure.
struct Asked<'a> {
    job: &'a JobName,
    name: &'a TaskName,
    task: &'a Task,
    measure: &'a Measure,
    image: &'a ImageRef,
    request: SurveyRequest,
}

impl Asked<'_> {
    fn verdict(&self, model: &Model, class: &str, found: Result<Candidate, String>) -> Verdict {
        let subject = Subject::of(self.task, self.measure, (self.image, class));
        if let Some(kept) = model.profiles.of(&subject).filter(|_| !self.request.again) {
            return Verdict::Kept(Box::new(kept.view()));
        }
        match found {
            Ok(candidate) => {
                let command = self.command(candidate.free.memory);
                Verdict::Run(Box::new(Run { node: candidate.node, command, subject }))
            }
            Err(reason) => Verdict::Refused(reason),
        }
    }

    /// Where the document names no memory, the peak is what is looked for: half of what is free bounds it.
    fn command(&self, free: Bytes) -> MeasureCommand {
        let program = &self.task.program;
        let mut environment = program.environment.clone();
        environment.insert("EDGELOOM_JOB".to_owned(), self.job.to_string());
        environment.insert("EDGELOOM_TASK".to_owned(), self.name.to_string());
        if let Some(work) = self.task.work {
            environment.insert("EDGELOOM_WORK_NS".to_owned(), work.0.to_string());
        }
        let requested = program.resources.memory;
        let memory =
            if program.resources.memory_sized { requested.max(Bytes(free.0 / 2)) } else { requested };
        MeasureCommand {
            image: self.image.clone(),
            command: self.measure.command.clone(),
            environment,
            cpu: limit(self.task),
            memory,
            items: self.measure.items,
            timeout_s: self.request.timeout_s,
            login: None,
            cancel: false,
        }
    }
}
