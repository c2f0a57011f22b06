//! What a node's message says, by the topic it came on.

use edgeloom_common::desired::DesiredState;
use edgeloom_common::report::{Inventory, Links, Observed, Reply, Report, Status};
use edgeloom_common::topics::Uplink;
use serde::de::DeserializeOwned;

/// A message of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// Presence, also by Last Will: the reader compares session numbers.
    Status(Status),
    Report(Report),
    Inventory(Box<Inventory>),
    Links(Links),
    Observed(Observed),
    Reply(Reply),
    /// The document that the node holds.
    Held(Box<DesiredState>),
    /// Not said by the node: what was refused in its name, for people.
    Refused(String),
}

impl Incoming {
    /// Reads the payload that came on the topic of `kind`.
    pub(crate) fn parse(kind: Uplink, payload: &[u8]) -> Result<Self, serde_json::Error> {
        fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<T, serde_json::Error> {
            serde_json::from_slice(payload)
        }
        Ok(match kind {
            Uplink::Status => Self::Status(read(payload)?),
            Uplink::Report => Self::Report(read(payload)?),
            Uplink::Inventory => Self::Inventory(read(payload)?),
            Uplink::Links => Self::Links(read(payload)?),
            Uplink::Observed => Self::Observed(read(payload)?),
            Uplink::Reply => Self::Reply(read(payload)?),
            Uplink::Held => Self::Held(read(payload)?),
        })
    }
}
