//! What happened here, bounded: restarts of each task and the last events, in sled.
//!
//! Nothing depends on it: if it cannot be opened, or opening it panics or does not end (as sled does on some
//! damaged files), it is moved aside and begun anew, and if that fails too the agent runs without. A panic
//! later ends the history, not the agent. Counts carry a checksum of their own.

#[cfg(test)]
mod tests;

use super::StateError;
use crate::engine::TaskKey;
use edgeloom_common::desired::Version;
use serde::{Deserialize, Serialize};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// Least memory that the page cache works with; the history is small and seldom read.
const CACHE_BYTES: u64 = 64 * 1024;
/// Events kept: about a day of a busy node.
const EVENTS_MAX: usize = 256;
/// A history is a few kilobytes: what takes longer does not come to an end.
const OPEN_WAIT: Duration = Duration::from_secs(10);
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// A document was taken.
    Taken(Version),
    /// A container ended and was started again.
    Restarted { job: String, task: String, exit_code: Option<i32> },
}

/// The history, or nothing.
#[derive(Debug)]
pub(crate) struct History {
    database: Option<sled::Db>,
    /// sled has panicked: it is not asked again.
    broken: AtomicBool,
}

impl History {
    /// Opens the history in the state directory, begins anew if that fails; the text says what was lost.
    #[must_use]
    pub(crate) fn open(state_dir: &Path) -> (Self, Option<String>) {
        let [directory, aside] = directories(state_dir);
        if let Some(database) = open(&directory) {
            return (Self::over(Some(database)), None);
        }
        let _ = std::fs::remove_dir_all(&aside);
        let _ = std::fs::rename(&directory, &aside);
        let database = open(&directory);
        let outcome = if database.is_some() { "began a new one" } else { "going on without" };
        let lost = format!(
            "history {} was damaged and moved to {}; {outcome}",
            directory.display(),
            aside.display()
        );
        (Self::over(database), Some(lost))
    }

    fn over(database: Option<sled::Db>) -> Self {
        Self { database, broken: AtomicBool::new(false) }
    }

    /// Removes the history, also one that was moved aside; nobody may have it open.
    pub(crate) fn remove(state_dir: &Path) -> Result<(), StateError> {
        for path in directories(state_dir) {
            if let Err(source) = std::fs::remove_dir_all(&path)
                && source.kind() != io::ErrorKind::NotFound
            {
                return Err(StateError::Write { path, source });
            }
        }
        Ok(())
    }

    /// How often the task's container was started again, over all starts of the agent.
    #[must_use]
    pub(crate) fn restarts(&self, key: &TaskKey) -> u32 {
        let name = key.to_string();
        let value = self.ask(|database| database.open_tree("restarts")?.get(&name));
        value.flatten().and_then(|packed| unpack(&name, &packed)).unwrap_or(0)
    }

    /// Remembers the count; zero forgets the task.
    pub(crate) fn set_restarts(&self, key: &TaskKey, restarts: u32) {
        let name = key.to_string();
        self.ask(|database| {
            let tree = database.open_tree("restarts")?;
            match restarts {
                0 => tree.remove(&name).map(drop),
                _ => tree.insert(&name, &pack(&name, restarts)).map(drop),
            }
        });
    }

    /// Appends an event and drops the oldest beyond the bound.
    pub(crate) fn append(&self, event: &Event) {
        let Ok(bytes) = serde_json::to_vec(event) else {
            return;
        };
        self.ask(|database| {
            let tree = database.open_tree("events")?;
            let last = tree.last()?.and_then(|(key, _)| key.as_ref().try_into().ok().map(u64::from_be_bytes));
            tree.insert((last.unwrap_or(0) + 1).to_be_bytes(), bytes)?;
            while EVENTS_MAX < tree.len() {
                tree.pop_min()?;
            }
            Ok(())
        });
    }

    /// The events, oldest first.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn events(&self) -> Vec<Event> {
        let values: Option<Vec<sled::IVec>> =
            self.ask(|database| database.open_tree("events")?.iter().values().collect());
        let values = values.unwrap_or_default();
        values.iter().filter_map(|value| serde_json::from_slice(value).ok()).collect()
    }

    /// What sled answers; none where there is no history, or no more.
    fn ask<T>(&self, question: impl FnOnce(&sled::Db) -> sled::Result<T>) -> Option<T> {
        let database = self.database.as_ref().filter(|_| !self.broken.load(Ordering::Relaxed))?;
        match catch_unwind(AssertUnwindSafe(|| question(database))) {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the history does not answer");
                None
            }
            Err(_) => {
                self.broken.store(true, Ordering::Relaxed);
                tracing::error!("the history is damaged; going on without until the next start");
                None
            }
        }
    }
}

impl Drop for History {
    /// After a write that failed sled waits for ever when it is let go; the agent does not wait with it.
    fn drop(&mut self) {
        let Some(database) = self.database.take() else { return };
        let (ended, end) = sync_channel::<()>(0);
        let close = move || {
            drop(database);
            drop(ended);
        };
        if thread::Builder::new().name("history".to_owned()).spawn(close).is_ok() {
            // Nothing is ever sent: the answer is the end of the thread, or that it does not come.
            let _ = end.recv_timeout(CLOSE_WAIT);
        }
    }
}

/// `count u32 | crc32 u32`, big-endian; the checksum covers name and count.
fn pack(name: &str, count: u32) -> [u8; 8] {
    let mut packed = [0; 8];
    packed[..4].copy_from_slice(&count.to_be_bytes());
    packed[4..].copy_from_slice(&checksum(name, count).to_be_bytes());
    packed
}

fn unpack(name: &str, packed: &[u8]) -> Option<u32> {
    let (count, crc) = packed.split_first_chunk()?;
    let count = u32::from_be_bytes(*count);
    (checksum(name, count).to_be_bytes() == crc).then_some(count)
}

fn checksum(name: &str, count: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(&count.to_be_bytes());
    hasher.finalize()
}

/// Where the history is, and where a damaged one is moved.
fn directories(state_dir: &Path) -> [PathBuf; 2] {
    ["history", "history.damaged"].map(|name| state_dir.join(name))
}

/// Opens and reads every entry, since some damage shows only then. On a thread of its own, which is left
/// behind if it does not come back.
fn open(directory: &Path) -> Option<sled::Db> {
    let config = sled::Config::new()
        .path(directory)
        .cache_capacity(CACHE_BYTES)
        .mode(sled::Mode::LowSpace)
        // No flusher thread: whatever is lost with the power is no loss, and an idle agent writes nothing.
        .flush_every_ms(None);
    let look = move || {
        let database = config.open().ok()?;
        let sound = database
            .tree_names()
            .iter()
            .all(|name| database.open_tree(name).is_ok_and(|tree| tree.iter().all(|entry| entry.is_ok())));
        sound.then_some(database)
    };
    let (answer, answered) = sync_channel(1);
    let open = move || {
        // Whoever waited may have given up.
        let _ = answer.send(catch_unwind(AssertUnwindSafe(look)).ok().flatten());
    };
    thread::Builder::new().name("history".to_owned()).spawn(open).ok()?;
    answered.recv_timeout(OPEN_WAIT).ok().flatten()
}
