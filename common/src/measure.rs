//! The profiler's words: what an agent is told to run (`cmd/measure/<id>`), what it answers, and what the
//! controller tells its users of it.
//!
//! A run computes a stated number of items and ends by itself. What is kept is by item, so runs of
//! different lengths compare. Answers travel as JSON in the text of replies, one a reply.

use crate::confidential::Login;
use crate::desired::ImageRef;
use crate::ids::{NodeId, TaskName};
use crate::units::{Bytes, MilliCores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest command in bytes, as JSON.
pub const COMMAND_MAX: usize = 256 * 1024;

/// How long a run may take where nobody says so, in seconds.
pub const TIMEOUT_DEFAULT_S: u32 = 120;

/// The longest a run may take, in seconds.
pub const TIMEOUT_MAX_S: u32 = 3600;

/// A request to run a program once and measure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureCommand {
    pub image: ImageRef,
    /// Empty: what the image says.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Limits, as the task would have them; zero: none.
    pub cpu: MilliCores,
    pub memory: Bytes,
    /// Items that the run computes.
    pub items: u32,
    /// From its start; a run that is not over by then is killed.
    pub timeout_s: u32,
    /// Who we are at the image's registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// True: end an earlier request of this id.
    #[serde(default)]
    pub cancel: bool,
}

/// One word of an agent about a request; the last one is either `Measured` or `Failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum MeasureReply {
    /// Behind another measurement of the same node.
    Queued,
    Pulling {
        bytes_fetched: Bytes,
        #[serde(default)]
        bytes_total: Option<Bytes>,
    },
    Running {
        seconds: u64,
    },
    Measured(Measured),
    Failed {
        /// With the remedy, where there is one.
        reason: String,
        #[serde(default)]
        exit_code: Option<i32>,
        /// The last lines of its log.
        #[serde(default)]
        log: Vec<String>,
    },
    /// A word of a later version, on the way to one of the last two.
    #[serde(other)]
    Unknown,
}

/// What one run took, by item.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds an item, from the container's start to its end.
    pub wall_s: f64,
    /// Processor seconds an item, of all its threads.
    pub cpu_s: f64,
    pub memory_peak: Bytes,
}

/// A kept profile, as `GET /v1/profiles` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileView {
    /// What the user wrote.
    pub image: String,
    pub digest: String,
    /// The task's command in a line, cut where it is long.
    pub command: String,
    /// Limit that it was measured under; 0: none.
    pub cpu_millicores: u32,
    pub class: String,
    pub node: NodeId,
    pub wall_s_measured: f64,
    pub cpu_s_measured: f64,
    /// Reference-core seconds an item.
    pub work_s: f64,
    pub core_speed: f64,
    pub memory_peak_bytes: u64,
    pub items: u32,
    /// Milliseconds since 1970.
    pub measured_ms: u64,
}

/// `GET /v1/profiles`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileList {
    pub profiles: Vec<ProfileView>,
}

/// How one task fared on one hardware class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureRow {
    pub task: TaskName,
    /// Empty where no node can take the task.
    pub class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    pub outcome: MeasureOutcome,
    /// None: it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileView>,
    /// Why it failed.
    #[serde(default)]
    pub reason: String,
    /// The last lines of its log, where it failed.
    #[serde(default)]
    pub log: Vec<String>,
}

/// Where a row's figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasureOutcome {
    /// Measured now.
    New,
    /// Measured earlier, of the same image.
    Kept,
    Failed,
}

/// One line of the answer to `POST /v1/measure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MeasureLine {
    /// How far one measurement is.
    Progress { task: TaskName, class: String, node: NodeId, text: String },
    /// One measurement is over, or was not needed.
    Row(Box<MeasureRow>),
    /// Nothing more comes: all rows, in the order of tasks and classes.
    Done { rows: Vec<MeasureRow> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_an_agent_reads_back() {
        let measured = Measured { wall_s: 0.5, cpu_s: 0.25, memory_peak: Bytes(7) };
        for reply in [
            MeasureReply::Queued,
            MeasureReply::Measured(measured),
            MeasureReply::Failed { reason: "r".to_owned(), exit_code: Some(3), log: vec!["l".to_owned()] },
        ] {
            let text = serde_json::to_string(&reply).unwrap();
            assert_eq!(serde_json::from_str::<MeasureReply>(&text).unwrap(), reply, "{text}");
        }
    }
}
