//! The durable state: every event goes to the journal first, then into the model.

use crate::directory::{Directory, snapshot};
use crate::error::StartError;
use crate::journal::{Journal, JournalError};
use crate::model::{Event, Model};
use crate::rebuild::{Rebuilt, rebuild};
use crate::store::Writer;
use crate::usage::archive::{self, Archive};
use edgeloom_disk::Lock;
use std::path::Path;

/// A journal longer than this is compacted, if that at least halves it.
const COMPACT_BYTES: u64 = 16 * 1024 * 1024;
/// So many events may pass until the store is written again; a start replays at most these.
const STORE_EVERY: u64 = 256;

/// Model, journal and store as one.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) model: Model,
    /// Closed records of what containers used.
    pub(crate) archive: Archive,
    journal: Journal,
    store: Writer,
    /// The sequence of the copy last handed to the store.
    stored: u64,
    /// The journal is compacted when it is longer, in bytes.
    compact_at: u64,
    /// Nobody else works on the directory.
    _lock: Lock,
}

impl State {
    /// Opens what is in `directory`, or begins with epoch 1. Refuses where acknowledged changes are lost.
    pub(crate) fn open(directory: &Path) -> Result<Self, StartError> {
        let Directory { lock, disk, found, store, stored } = Directory::open(directory)?;
        let written = stored.as_ref().map_or(0, |(sequence, _)| *sequence);
        let Rebuilt { model, from } = rebuild(&found, stored)?;
        let journal = match from {
            Some(from) => Journal::open(Box::new(disk), &found, from)?,
            None => {
                tracing::error!(
                    sequence = written,
                    "both copies of the journal are damaged in the same place; the store stands in, nothing is lost"
                );
                Journal::begin_anew(Box::new(disk), &found, found.beyond(), &snapshot(&model))?
            }
        };
        drop(found);
        let store = Writer::start(store)?;
        let path = directory.join(archive::FOLDER);
        let archive = Archive::open(&path).map_err(|source| StartError::Directory { path, source })?;
        let mut state =
            Self { model, archive, journal, store, stored: written, compact_at: COMPACT_BYTES, _lock: lock };
        state.write_store();
        Ok(state)
    }

    /// Journals, then applies.
    pub(crate) fn commit(&mut self, event: Event) -> Result<(), JournalError> {
        let payload = serde_json::to_vec(&event).expect("an event is plain data with text keys");
        self.journal.append(&payload)?;
        self.model.apply(event);
        if self.journal.bytes() > self.compact_at {
            self.compact();
        } else if self.journal.sequence() >= self.stored + STORE_EVERY {
            self.write_store();
        }
        Ok(())
    }

    /// Puts one snapshot in the place of all records. The event that led here is kept already, so a failure
    /// is no reason to refuse it; the next try comes when the journal has doubled.
    fn compact(&mut self) {
        match self.journal.compact(&snapshot(&self.model)) {
            Ok(_) => self.write_store(),
            Err(error) => tracing::warn!(%error, "the journal is not compacted"),
        }
        self.compact_at = COMPACT_BYTES.max(2 * self.journal.bytes());
    }

    /// The store only saves time: that it fails is no reason to stop.
    pub(crate) fn write_store(&mut self) {
        let sequence = self.journal.sequence();
        if sequence == self.stored {
            return;
        }
        if !self.store.write(sequence, &self.model) {
            tracing::warn!("the store is still being written; the journal has everything");
        }
        // Either way the next attempt has its turn: a copy costs as much as the state is large.
        self.stored = sequence;
    }
}
