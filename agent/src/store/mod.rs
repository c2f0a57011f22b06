//! What the agent keeps on disk, in its state directory:
//!
//! ```text
//! desired.json   the desired state in force: the truth, replaced in one rename
//! history/       sled: restarts of tasks and the last documents taken; may be lost
//! lock           held by the one agent that runs here
//! ```
//!
//! A damaged file never stops the agent: it goes on with what it can read and reports the rest.

mod desired;
mod history;
mod lock;

pub(crate) use desired::{DesiredFile, StateError};
pub(crate) use history::{Event, History};
pub(crate) use lock::{Lock, LockError};
