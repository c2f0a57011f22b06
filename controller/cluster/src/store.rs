//! The materialised state in sled: what the journal adds up to, so that a start need not replay all of it.
//!
//! The journal is the truth. The store says which journal sequence it stands for; if that differs, or sled
//! does not open or panics on what it finds, the store is thrown away and written anew. Nothing else in
//! this package names sled.

use crate::model::Model;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

const CACHE_BYTES: u64 = 4 * 1024 * 1024;
const STATE: &[u8] = b"state";
const SEQUENCE: &[u8] = b"sequence";
/// How long an end waits for what is being written.
const END_WAIT: Duration = Duration::from_secs(2);

/// Why the store does not serve.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// sled refused.
    #[error("store {path}: {source}")]
    Sled { path: PathBuf, source: sled::Error },
    /// sled panicked, which it does on some damaged files.
    #[error("store {path}: its files are damaged")]
    Damaged { path: PathBuf },
    /// The old files cannot be removed.
    #[error("store {path}: cannot be removed: {source}")]
    Remove { path: PathBuf, source: std::io::Error },
    /// The thread that writes does not start.
    #[error("the store's thread does not start: {0}")]
    Thread(std::io::Error),
    /// The state does not serialise.
    #[error("state does not serialise: {0}")]
    Encode(#[from] serde_json::Error),
}

/// The open store.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    db: sled::Db,
}

impl Store {
    /// Opens the store, throwing away what does not open.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        match open(path) {
            Ok(db) => Ok(Self { path: path.to_owned(), db }),
            Err(error) => {
                tracing::warn!(%error, "the store is rebuilt from the journal");
                if path.exists() {
                    std::fs::remove_dir_all(path)
                        .map_err(|source| StoreError::Remove { path: path.to_owned(), source })?;
                }
                Ok(Self { path: path.to_owned(), db: open(path)? })
            }
        }
    }

    /// The state, if it stands for exactly this journal sequence.
    pub(crate) fn load(&self, sequence: u64) -> Option<Model> {
        let read = || -> Option<Model> {
            let found = self.db.get(SEQUENCE).ok()??;
            if found.as_ref() != sequence.to_be_bytes() {
                return None;
            }
            serde_json::from_slice(&self.db.get(STATE).ok()??).ok()
        };
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_default()
    }

    /// Writes the state as of `sequence`, both or neither.
    pub(crate) fn save(&self, sequence: u64, model: &Model) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        batch.insert(STATE, serde_json::to_vec(model)?);
        batch.insert(SEQUENCE, &sequence.to_be_bytes()[..]);
        let write = || self.db.apply_batch(batch).and_then(|()| self.db.flush());
        match catch_unwind(AssertUnwindSafe(write)) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(source)) => Err(StoreError::Sled { path: self.path.clone(), source }),
            Err(_) => Err(StoreError::Damaged { path: self.path.clone() }),
        }
    }
}

/// Writes the store on a thread of its own: after a write that failed sled 0.34 waits for ever when it is let
/// go, and the owner of the state must not wait with it.
#[derive(Debug)]
pub(crate) struct Writer {
    /// None once the end has begun.
    copies: Option<SyncSender<(u64, Model)>>,
    /// Closed when the thread has let go of the store.
    ended: Receiver<()>,
}

impl Writer {
    pub(crate) fn start(store: Store) -> Result<Self, StoreError> {
        let (copies, received) = sync_channel::<(u64, Model)>(1);
        let (end, ended) = sync_channel(0);
        let thread = std::thread::Builder::new().name("store".to_owned());
        let write = move || {
            for (sequence, model) in received {
                if let Err(error) = store.save(sequence, &model) {
                    tracing::warn!(%error, "the store is not written; the journal has everything");
                }
            }
            drop(store);
            drop(end);
        };
        thread.spawn(write).map_err(StoreError::Thread)?;
        Ok(Self { copies: Some(copies), ended })
    }

    /// Hands a copy of the state over; false if the copy before is not written yet.
    pub(crate) fn write(&self, sequence: u64, model: &Model) -> bool {
        self.copies.as_ref().is_some_and(|copies| copies.try_send((sequence, model.clone())).is_ok())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.copies = None;
        // Nothing is ever sent: the answer is the end of the thread, or that it does not come.
        let _ = self.ended.recv_timeout(END_WAIT);
    }
}

fn open(path: &Path) -> Result<sled::Db, StoreError> {
    let config = || sled::Config::new().path(path).cache_capacity(CACHE_BYTES).flush_every_ms(None).open();
    match catch_unwind(AssertUnwindSafe(config)) {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(source)) => Err(StoreError::Sled { path: path.to_owned(), source }),
        Err(_) => Err(StoreError::Damaged { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_another_sequence_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        let model = Model { epoch: 7, ..Model::default() };
        store.save(3, &model).unwrap();
        assert_eq!(store.load(3), Some(model));
        assert_eq!(store.load(4), None);
    }

    #[test]
    fn garbage_in_place_of_the_files_gives_an_empty_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        Store::open(&path).unwrap().save(3, &Model::default()).unwrap();
        for entry in std::fs::read_dir(&path).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                std::fs::write(entry.path(), [0xA5; 777]).unwrap();
            }
        }
        assert_eq!(Store::open(&path).unwrap().load(3), None);
    }
}
