//! What the agent keeps on disk, in its state directory:
//!
//! ```text
//! desired.json, desired.copy.json   the desired state in force, twice: the truth
//! desired*.json.damaged             what a damaged one of them held last
//! secrets.key                       opens the values beside the document, unless agent.toml names another file
//! history/                          sled: restarts and ends of tasks, the last documents taken; may be lost
//! lock                              held by the one agent that runs here
//! ```
//!
//! A damaged file never stops the agent: it goes on with what it can read and reports the rest.

mod desired;
mod history;

pub(crate) use desired::{DesiredFile, Loaded, StateError};
pub(crate) use edgeloom_disk::{Lock, LockError};
pub(crate) use history::{End, Event, History};

use std::path::Path;

/// Below the state directory.
pub(crate) const SECRETS_KEY: &str = "secrets.key";

/// Takes the state directory for this process; a second agent is refused.
pub(crate) fn lock(state_dir: &Path) -> Result<Lock, LockError> {
    Lock::take(state_dir, "edgeloom-agent")
}
