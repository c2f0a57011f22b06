//! The durable state: every event goes to the journal first, then into the model.

use crate::error::StartError;
use crate::journal::{Journal, JournalError};
use crate::model::{Event, Model};
use crate::store::Store;
use std::path::Path;

/// A journal longer than this is compacted.
const COMPACT_BYTES: u64 = 16 * 1024 * 1024;
/// So many events may pass until the store is written again; a start replays at most these.
const STORE_EVERY: u64 = 256;

/// Model, journal and store as one.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) model: Model,
    journal: Journal,
    store: Store,
    stored: u64,
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
        let mut state = Self { model, journal, store, stored };
        state.write_store();
        Ok(state)
    }

    /// Journals, then applies.
    pub(crate) fn commit(&mut self, event: Event) -> Result<(), JournalError> {
        let payload = serde_json::to_vec(&event).expect("an event is plain data with text keys");
        self.journal.append(&payload)?;
        self.model.apply(event);
        if self.journal.bytes() > COMPACT_BYTES {
            let snapshot = Event::Snapshot(Box::new(self.model.clone()));
            let payload = serde_json::to_vec(&snapshot).expect("an event is plain data with text keys");
            self.journal.compact(&payload)?;
            self.write_store();
        } else if self.journal.sequence() >= self.stored + STORE_EVERY {
            self.write_store();
        }
        Ok(())
    }

    /// The store only saves time: that it fails is no reason to stop.
    pub(crate) fn write_store(&mut self) {
        let sequence = self.journal.sequence();
        if sequence == self.stored {
            return;
        }
        match self.store.save(sequence, &self.model) {
            Ok(()) => self.stored = sequence,
            Err(error) => tracing::warn!(%error, "the store is not written; the journal has everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_be_written_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = State::open(dir.path()).unwrap();
        // sled keeps large values in files of their own, which a missing directory refuses.
        std::fs::remove_dir_all(dir.path().join("store")).unwrap();
        let neighbours =
            (0..60_000).map(|n| (format!("node-{n}").parse().unwrap(), [10, 0, 0, 1].into())).collect();
        state.commit(Event::Topology { node: "n1".parse().unwrap(), neighbours }).unwrap();
        state.write_store();
        assert_ne!(state.stored, state.journal.sequence(), "the store was written after all");
        state.commit(Event::EpochRaised { epoch: 7 }).unwrap();
        let model = state.model.clone();
        drop(state);
        assert_eq!(State::open(dir.path()).unwrap().model, model);
    }
}
