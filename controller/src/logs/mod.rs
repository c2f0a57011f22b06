//! Logs of containers: requests to agents, and their replies to the reader that asked.
//!
//! In: which task on which node, and the agents' replies from the bus. Out: one stream of chunks a
//! request, in order, closed at the last chunk. Ids rise over restarts of the controller, so a reply to
//! an earlier one finds no reader. A stream that is dropped cancels its request at the agent.

mod hub;
mod lines;

pub use hub::{Answer, Command, Logs, LogsError, Piece};
pub use lines::Prefixed;
