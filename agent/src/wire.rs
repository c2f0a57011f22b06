//! The two typed channels between the agent and its session with the controller.
//!
//! The session turns MQTT into [`Down`] and [`Up`] into MQTT; nothing else in the agent knows topics
//! or payloads, and tests hold the other ends. Both channels are bounded: a full `Up` channel makes
//! its sender wait or drop, as said beside each sender.

use crate::accept::Refusal;
use edgeloom_common::confidential::Confidential;
use edgeloom_common::desired::DesiredState;
use edgeloom_common::measure::MeasureCommand;
use edgeloom_common::report::{Inventory, Links, LogsCommand, Observed, Reply, Report};
use edgeloom_common::volume::VolumeCommand;
use std::sync::Arc;

/// What the agent says. Presence (`Status`) is the session's own affair: it knows when it connects.
#[derive(Debug)]
pub enum Up {
    Report(Report),
    Inventory(Box<Inventory>),
    Links(Links),
    Observed(Observed),
    Reply(Reply),
    /// The document in force, for a controller that asked for it.
    Held(Arc<DesiredState>),
}

/// A document, and the values that came beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub document: DesiredState,
    pub confidential: Confidential,
}

impl From<DesiredState> for Received {
    fn from(document: DesiredState) -> Self {
        Self { document, confidential: Confidential::default() }
    }
}

/// What the agent hears.
#[derive(Debug)]
pub enum Down {
    /// The session is up (again): whatever is published by exception is published once more.
    Connected,
    /// The session ended, in which something was heard last at this time.
    Disconnected(tokio::time::Instant),
    /// A document that parsed; cluster, node and version are the worker's to check.
    Desired(Box<Received>),
    /// A document that did not read, and why.
    Unread(Refusal),
    /// A request for the document in force.
    DocumentAsked,
    /// A request for logs and its id.
    Logs(u64, LogsCommand),
    /// A request to remove a volume, and its id.
    Volume(u64, VolumeCommand),
    /// A request to measure a program, and its id.
    Measure(u64, Box<MeasureCommand>),
}
