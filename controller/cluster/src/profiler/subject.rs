//! What a profile is of: the program as it would run, and the hardware class.

use crate::missing::sha256;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::job::{Measure, Task};
use edgeloom_common::units::MilliCores;
use serde::{Deserialize, Serialize};

/// A command is quoted up to so many characters.
const COMMAND_MAX: usize = 80;

/// One program on one hardware class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// Hash of all that decides how the program computes.
    pub(crate) program: String,
    pub(crate) class: String,
    /// For people, as the user wrote it.
    pub(crate) image: String,
    pub(crate) digest: String,
    /// For people: the task's own command, cut where it is long.
    pub(crate) command: String,
    /// Zero: no limit.
    pub(crate) cpu: MilliCores,
    /// Hash of how it was measured.
    pub(crate) measure: String,
    pub(crate) items: u32,
}

impl Subject {
    pub(crate) fn of(task: &Task, measure: &Measure, (image, class): (&ImageRef, &str)) -> Self {
        let command = task.program.command.join(" ");
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        Self {
            program: program(task, image),
            class: class.to_owned(),
            image: image.name.clone(),
            digest: image.digest.clone(),
            command: command.chars().take(COMMAND_MAX).map(clean).collect(),
            cpu: limit(task),
            measure: hash(&(&measure.command, measure.items)),
            items: measure.items,
        }
    }
}

/// Image and command, and what else the program is told that decides how long an item takes.
pub(crate) fn program(task: &Task, image: &ImageRef) -> String {
    let program = &task.program;
    hash(&(&image.digest, &program.command, &program.environment, task.work, limit(task)))
}

/// The CPU limit that the task is measured under; none where the planner is to find it, since any limit
/// would then bound the program without need.
pub(crate) fn limit(task: &Task) -> MilliCores {
    let resources = &task.program.resources;
    if resources.cpu_sized { MilliCores(0) } else { resources.cpu }
}

fn hash(of: &impl Serialize) -> String {
    sha256(&serde_json::to_vec(of).expect("texts and numbers with text keys are JSON"))
}
