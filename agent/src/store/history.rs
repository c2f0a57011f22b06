//! What happened here, bounded: restarts of each task, how those ended that run to an end, and the last events,
//! in sled.
//!
//! Counts are read once, at the start; changes go to a thread that ends when there is nothing to write, so that
//! a slow disk holds up nobody. Nothing depends on it: if it cannot be opened, or opening it panics or does not
//! end (as sled does on some damaged files), it is moved aside and begun anew, and if that fails too the agent
//! runs without. A panic later ends the history, not the agent. Counts carry a checksum of their own.

#[cfg(test)]
mod tests;
mod writer;

use super::StateError;
use crate::engine::TaskKey;
use edgeloom_common::desired::Version;
use edgeloom_common::report::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use writer::{Write, Writer};

/// Least memory that the page cache works with; the history is small and seldom read.
const CACHE_BYTES: u64 = 64 * 1024;
/// A history is a few kilobytes: what takes longer does not come to an end.
const OPEN_WAIT: Duration = Duration::from_secs(10);
/// Counts that are read: far more than a node has tasks.
const COUNTS_MAX: usize = 4096;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// A document was taken.
    Taken(Version),
    /// A container ended and was started again.
    Restarted { job: String, task: String, exit_code: Option<i32> },
}

/// How a container ended that is not started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Of the container: another specification has not ended.
    pub(crate) spec_hash: String,
    pub(crate) outcome: Outcome,
    pub(crate) started_ms: Option<u64>,
    pub(crate) finished_ms: Option<u64>,
}

/// The history, or nothing.
#[derive(Debug)]
pub(crate) struct History {
    /// By the task's name, as the disk has them or will have.
    restarts: BTreeMap<String, u32>,
    ends: BTreeMap<String, End>,
    writer: Option<Writer>,
}

impl History {
    /// Opens the history in the state directory, begins anew if that fails; the text says what was lost.
    #[must_use]
    pub(crate) fn open(state_dir: &Path) -> (Self, Option<String>) {
        let [directory, aside] = directories(state_dir);
        if let Some((database, Kept { restarts, ends })) = open(&directory) {
            return (Self { restarts, ends, writer: Some(Writer::over(database)) }, None);
        }
        let _ = std::fs::remove_dir_all(&aside);
        let _ = std::fs::rename(&directory, &aside);
        let writer = open(&directory).map(|(database, _)| Writer::over(database));
        let outcome = if writer.is_some() { "began a new one" } else { "going on without" };
        let lost = format!(
            "history {} was damaged and moved to {}; {outcome}",
            directory.display(),
            aside.display()
        );
        (Self { restarts: BTreeMap::new(), ends: BTreeMap::new(), writer }, Some(lost))
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
        self.restarts.get(&key.to_string()).copied().unwrap_or(0)
    }

    /// Remembers the count; zero forgets the task.
    pub(crate) fn set_restarts(&mut self, key: &TaskKey, restarts: u32) {
        let name = key.to_string();
        let before = match restarts {
            0 => self.restarts.remove(&name),
            _ => self.restarts.insert(name.clone(), restarts),
        };
        if before.unwrap_or(0) != restarts {
            self.write(Write::Restarts(name, restarts));
        }
    }

    /// How the task's container ended for good, if it did.
    #[must_use]
    pub(crate) fn end(&self, key: &TaskKey) -> Option<&End> {
        self.ends.get(&key.to_string())
    }

    pub(crate) fn set_end(&mut self, key: &TaskKey, end: End) {
        let name = key.to_string();
        if let Ok(bytes) = serde_json::to_vec(&end) {
            self.write(Write::End(name.clone(), Some(bytes)));
        }
        self.ends.insert(name, end);
    }

    /// Forgets tasks that are neither wanted nor there.
    pub(crate) fn retain(&mut self, stays: impl Fn(&TaskKey) -> bool) {
        let goes = |name: &&String| key_of(name).is_none_or(|key| !stays(&key));
        let ends: Vec<String> = self.ends.keys().filter(goes).cloned().collect();
        let restarts: Vec<String> = self.restarts.keys().filter(goes).cloned().collect();
        for name in ends {
            self.ends.remove(&name);
            self.write(Write::End(name, None));
        }
        for name in restarts {
            self.restarts.remove(&name);
            self.write(Write::Restarts(name, 0));
        }
    }

    /// Appends an event; the oldest beyond the bound are dropped.
    pub(crate) fn append(&self, event: &Event) {
        if let Ok(bytes) = serde_json::to_vec(event) {
            self.write(Write::Event(bytes));
        }
    }

    fn write(&self, write: Write) {
        if let Some(writer) = &self.writer {
            writer.add(write);
        }
    }

    /// The events, oldest first.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn events(&self) -> Vec<Event> {
        let values = self.writer.as_ref().map(Writer::events).unwrap_or_default();
        values.iter().filter_map(|value| serde_json::from_slice(value).ok()).collect()
    }
}

/// The task of a name.
fn key_of(name: &str) -> Option<TaskKey> {
    let (job, task) = name.split_once('/')?;
    Some(TaskKey { job: job.parse().ok()?, task: task.parse().ok()? })
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
    sum([name.as_bytes(), &count.to_be_bytes()])
}

fn sum(parts: [&[u8]; 2]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.into_iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// `crc32 u32 | JSON`, big-endian; the checksum covers name and text.
fn pack_end(name: &str, text: &[u8]) -> Vec<u8> {
    let mut packed = sum([name.as_bytes(), text]).to_be_bytes().to_vec();
    packed.extend_from_slice(text);
    packed
}

fn unpack_end(name: &str, packed: &[u8]) -> Option<End> {
    let (crc, text) = packed.split_first_chunk()?;
    let whole = sum([name.as_bytes(), text]).to_be_bytes() == *crc;
    whole.then(|| serde_json::from_slice(text).ok())?
}

/// Where the history is, and where a damaged one is moved.
fn directories(state_dir: &Path) -> [PathBuf; 2] {
    ["history", "history.damaged"].map(|name| state_dir.join(name))
}

/// Opens and reads every entry, since some damage shows only then. On a thread of its own, which is left
/// behind if it does not come back.
fn open(directory: &Path) -> Option<(sled::Db, Kept)> {
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
        let kept = if sound { kept(&database).ok()? } else { return None };
        Some((database, kept))
    };
    let (answer, answered) = sync_channel(1);
    let open = move || {
        // Whoever waited may have given up.
        let _ = answer.send(catch_unwind(AssertUnwindSafe(look)).ok().flatten());
    };
    thread::Builder::new().name("history".to_owned()).spawn(open).ok()?;
    answered.recv_timeout(OPEN_WAIT).ok().flatten()
}

/// What was written and still is what it was.
struct Kept {
    restarts: BTreeMap<String, u32>,
    ends: BTreeMap<String, End>,
}

fn kept(database: &sled::Db) -> sled::Result<Kept> {
    let restarts = entries(&database.open_tree(writer::RESTARTS)?, unpack)?;
    let ends = entries(&database.open_tree(writer::ENDS)?, unpack_end)?;
    Ok(Kept { restarts, ends })
}

fn entries<T>(tree: &sled::Tree, unpack: fn(&str, &[u8]) -> Option<T>) -> sled::Result<BTreeMap<String, T>> {
    let mut found = BTreeMap::new();
    for entry in tree.iter().take(COUNTS_MAX) {
        let (name, packed) = entry?;
        let name = String::from_utf8_lossy(&name).into_owned();
        if let Some(value) = unpack(&name, &packed) {
            found.insert(name, value);
        }
    }
    Ok(found)
}
