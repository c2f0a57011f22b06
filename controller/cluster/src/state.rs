//! The durable state: every event goes to the journal first, then into the model.

use crate::error::StartError;
use crate::journal::{Journal, JournalError};
use crate::model::{Event, Model};
use crate::store::{Store, Writer};
use std::path::Path;

/// A journal longer than this is compacted, if that at least halves it.
const COMPACT_BYTES: u64 = 16 * 1024 * 1024;
/// So many events may pass until the store is written again; a start replays at most these.
const STORE_EVERY: u64 = 256;

/// Model, journal and store as one.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) model: Model,
    journal: Journal,
    store: Writer,
    /// The sequence of the copy last handed to the store.
    stored: u64,
    /// The journal is compacted when it is longer, in bytes.
    compact_at: u64,
}

impl State {
    /// Opens what is in `directory`, or begins with epoch 1.
    pub(crate) fn open(directory: &Path) -> Result<Self, StartError> {
        std::fs::create_dir_all(directory)
            .map_err(|source| StartError::Directory { path: directory.to_owned(), source })?;
        let (journal, replay) = Journal::open(&directory.join("journal"))?;
        if let Some(damage) = &replay.damage {
            tracing::error!(?damage, "the journal's end was damaged and is cut off; a copy lies beside it");
        }
        let store = Store::open(&directory.join("store"))?;
        let mut stored = journal.sequence();
        let model = match store.load(stored).filter(|_| stored > 0) {
            Some(model) => model,
            None => {
                stored = 0;
                let mut model = Model { epoch: 1, ..Model::default() };
                for record in &replay.records {
                    let event: Event = serde_json::from_slice(&record.payload)
                        .map_err(|source| StartError::Record { sequence: record.sequence, source })?;
                    model.apply(event);
                }
                model
            }
        };
        let mut state =
            Self { model, journal, store: Writer::start(store)?, stored, compact_at: COMPACT_BYTES };
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
        let snapshot = Event::Snapshot(Box::new(self.model.clone()));
        let payload = serde_json::to_vec(&snapshot).expect("an event is plain data with text keys");
        match self.journal.compact(&payload) {
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
