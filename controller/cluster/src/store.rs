//! The materialised state in sled: what the journal adds up to, so that a start need not replay all of it.
//!
//! The journal is the truth. The store says which journal sequence it stands for, under a checksum of its
//! own; if sled does not open, panics on what it finds or does not come to an end, the store is thrown away
//! and written anew. It may be deleted at any time. Nothing else in this package names sled.

use crate::model::Model;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

const CACHE_BYTES: u64 = 4 * 1024 * 1024;
/// The key of `sequence u64 | crc32 u32 | state`, big-endian; the checksum covers sequence and state.
const STATE: &[u8] = b"state";
/// How long sled may take to open: on some damaged files it does not come to an end.
const OPEN_WAIT: Duration = Duration::from_secs(20);
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

    /// The state and the journal sequence that it stands for.
    pub(crate) fn load(&self) -> Option<(u64, Model)> {
        let read = || unpack(&self.db.get(STATE).ok()??);
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_default()
    }

    /// Writes the state as of `sequence`.
    pub(crate) fn save(&self, sequence: u64, model: &Model) -> Result<(), StoreError> {
        let packed = pack(sequence, &serde_json::to_vec(model)?);
        let write = || self.db.insert(STATE, packed).and_then(|_| self.db.flush());
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

fn pack(sequence: u64, state: &[u8]) -> Vec<u8> {
    let mut packed = sequence.to_be_bytes().to_vec();
    packed.extend(checksum(sequence, state).to_be_bytes());
    packed.extend(state);
    packed
}

fn unpack(packed: &[u8]) -> Option<(u64, Model)> {
    let (sequence, rest) = packed.split_first_chunk()?;
    let (crc, state) = rest.split_first_chunk()?;
    let sequence = u64::from_be_bytes(*sequence);
    let sound = checksum(sequence, state) == u32::from_be_bytes(*crc);
    Some((sequence, sound.then(|| serde_json::from_slice(state).ok())??))
}

fn checksum(sequence: u64, state: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&sequence.to_be_bytes());
    hasher.update(state);
    hasher.finalize()
}

/// On a thread of its own, which is left behind if it does not come back.
fn open(path: &Path) -> Result<sled::Db, StoreError> {
    let (answer, answered) = sync_channel(1);
    let place = path.to_owned();
    let open = move || {
        let config =
            || sled::Config::new().path(place).cache_capacity(CACHE_BYTES).flush_every_ms(None).open();
        // Whoever waited may have given up.
        let _ = answer.send(catch_unwind(AssertUnwindSafe(config)));
    };
    std::thread::Builder::new().name("store".to_owned()).spawn(open).map_err(StoreError::Thread)?;
    match answered.recv_timeout(OPEN_WAIT) {
        Ok(Ok(Ok(db))) => Ok(db),
        Ok(Ok(Err(source))) => Err(StoreError::Sled { path: path.to_owned(), source }),
        Ok(Err(_)) | Err(_) => Err(StoreError::Damaged { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_kept_with_the_sequence_that_it_stands_for() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store")).unwrap();
        assert_eq!(store.load(), None);
        let model = Model { epoch: 7, ..Model::default() };
        store.save(3, &model).unwrap();
        assert_eq!(store.load(), Some((3, model)));
    }

    #[test]
    fn a_state_with_a_flipped_bit_is_not_believed() {
        let packed = pack(3, &serde_json::to_vec(&Model { epoch: 7, ..Model::default() }).unwrap());
        assert!(unpack(&packed).is_some());
        for bit in 0..packed.len() * 8 {
            let mut flipped = packed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unpack(&flipped), None, "bit {bit}");
        }
        assert!((0..packed.len()).all(|length| unpack(&packed[..length]).is_none()));
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
        assert_eq!(Store::open(&path).unwrap().load(), None);
    }
}
