//! What happened here, bounded: restarts of each task and the last events, in sled.
//!
//! Nothing depends on it: if it cannot be opened, or opening it panics (as sled does on some damaged
//! files), it is moved aside and begun anew, and if that fails too the agent runs without.

use super::StateError;
use crate::engine::TaskKey;
use edgeloom_common::desired::Version;
use serde::{Deserialize, Serialize};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Least memory that the page cache works with; the history is small and seldom read.
const CACHE_BYTES: u64 = 64 * 1024;
/// Events kept: about a day of a busy node.
const EVENTS_MAX: usize = 256;

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
}

impl History {
    /// Opens the history in the state directory, begins anew if that fails; the text says what was lost.
    #[must_use]
    pub(crate) fn open(state_dir: &Path) -> (Self, Option<String>) {
        let [directory, aside] = directories(state_dir);
        if let Some(database) = open(&directory) {
            return (Self { database: Some(database) }, None);
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
        (Self { database }, Some(lost))
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
        let read = |database: &sled::Db| database.open_tree("restarts").ok()?.get(key.to_string()).ok()?;
        let value = self.database.as_ref().and_then(read);
        value.and_then(|bytes| bytes.as_ref().try_into().ok().map(u32::from_be_bytes)).unwrap_or(0)
    }

    /// Remembers the count; zero forgets the task.
    pub(crate) fn set_restarts(&self, key: &TaskKey, restarts: u32) {
        self.write("restarts", |tree| match restarts {
            0 => tree.remove(key.to_string()).map(drop),
            _ => tree.insert(key.to_string(), &restarts.to_be_bytes()).map(drop),
        });
    }

    /// Appends an event and drops the oldest beyond the bound.
    pub(crate) fn append(&self, event: &Event) {
        let Ok(bytes) = serde_json::to_vec(event) else {
            return;
        };
        self.write("events", |tree| {
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
        let tree = self.database.as_ref().and_then(|database| database.open_tree("events").ok());
        let values =
            tree.iter().flat_map(sled::Tree::iter).filter_map(|entry| entry.ok().map(|(_, value)| value));
        values.filter_map(|value| serde_json::from_slice(&value).ok()).collect()
    }

    fn write(&self, tree: &str, change: impl FnOnce(&sled::Tree) -> sled::Result<()>) {
        let Some(database) = &self.database else { return };
        if let Err(error) = database.open_tree(tree).and_then(|tree| change(&tree)) {
            tracing::warn!(%error, tree, "the history could not be written");
        }
    }
}

/// Where the history is, and where a damaged one is moved.
fn directories(state_dir: &Path) -> [PathBuf; 2] {
    ["history", "history.damaged"].map(|name| state_dir.join(name))
}

/// Opens and reads every entry, since some damage shows only then.
fn open(directory: &Path) -> Option<sled::Db> {
    let config = sled::Config::new()
        .path(directory)
        .cache_capacity(CACHE_BYTES)
        .mode(sled::Mode::LowSpace)
        // No flusher thread: whatever is lost with the power is no loss.
        .flush_every_ms(None);
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let database = config.open().ok()?;
        let sound = database
            .tree_names()
            .iter()
            .all(|name| database.open_tree(name).is_ok_and(|tree| tree.iter().all(|entry| entry.is_ok())));
        sound.then_some(database)
    }));
    opened.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::spec;

    fn key() -> TaskKey {
        TaskKey::of(&spec("a", "h"))
    }

    #[test]
    fn restarts_and_events_outlive_the_agent() {
        let directory = tempfile::tempdir().unwrap();
        let event = Event::Taken(Version { epoch: 1, generation: 2 });
        {
            let (history, lost) = History::open(directory.path());
            assert_eq!(lost, None);
            history.set_restarts(&key(), 3);
            history.append(&event);
        }
        let (history, _) = History::open(directory.path());
        assert_eq!(history.restarts(&key()), 3);
        assert_eq!(history.events(), [event]);
    }

    #[test]
    fn the_oldest_events_are_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let (history, _) = History::open(directory.path());
        for generation in 0..300 {
            history.append(&Event::Taken(Version { epoch: 1, generation }));
        }
        let events = history.events();
        assert_eq!(events.len(), EVENTS_MAX);
        assert_eq!(events[0], Event::Taken(Version { epoch: 1, generation: 300 - 256 }));
    }

    #[test]
    fn a_damaged_history_is_begun_anew() {
        let directory = tempfile::tempdir().unwrap();
        drop(History::open(directory.path()));
        for file in ["db", "conf"] {
            std::fs::write(directory.path().join("history").join(file), b"this is no database").unwrap();
        }
        let (history, lost) = History::open(directory.path());
        assert!(lost.is_some());
        history.set_restarts(&key(), 1);
        assert_eq!(history.restarts(&key()), 1);
        drop(history);
        History::remove(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
