//! Blobs on disk, by digest, up to a budget.
//!
//! ```text
//! whole/<hex>     verified
//! partial/<hex>   begun: the first bytes of the blob, to go on from
//! ```
//!
//! Both count. When the budget is exceeded, what was used longest ago goes, whatever it is; who reads it just
//! then reads on, since an open file outlives its name.

use edgeloom_common::digest::{Digest, Hash};
use edgeloom_common::units::Bytes;
use std::collections::HashMap;
use std::fs::{self, File, FileTimes};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Why the store does not open.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot use {} for image blobs: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
}

#[derive(Debug, Clone, Copy)]
struct Held {
    bytes: u64,
    used: SystemTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Partial,
    Whole,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Partial, Self::Whole];

    const fn folder(self) -> &'static str {
        match self {
            Self::Partial => "partial",
            Self::Whole => "whole",
        }
    }
}

/// A handle; clones share the store.
#[derive(Debug, Clone)]
pub struct Store {
    folder: Arc<Path>,
    budget: u64,
    held: Arc<Mutex<HashMap<(Kind, Digest), Held>>>,
}

impl Store {
    /// Opens the store in a folder of its own. What is over the budget goes; a budget of 0 keeps nothing.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn open(folder: &Path, budget: Bytes) -> Result<Self, StoreError> {
        let mut held = HashMap::new();
        for kind in Kind::ALL {
            let path = folder.join(kind.folder());
            let found = list(&path).map_err(|source| StoreError::Folder { path, source })?;
            held.extend(found.into_iter().map(|(digest, entry)| ((kind, digest), entry)));
        }
        let store = Self { folder: folder.into(), budget: budget.0, held: Arc::new(Mutex::new(held)) };
        store.shrink(None);
        Ok(store)
    }

    /// Bytes on disk now.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.lock().values().map(|held| held.bytes).sum())
    }

    /// A blob of this size could be kept.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.budget
    }

    /// The blob, if it is here as a whole, and its length. Counts as a use.
    pub(crate) fn whole(&self, digest: &Digest) -> Option<(File, u64)> {
        let path = self.path(Kind::Whole, digest);
        let Ok(file) = File::open(&path) else {
            self.lock().remove(&(Kind::Whole, *digest));
            return None;
        };
        let bytes = file.metadata().ok()?.len();
        let now = SystemTime::now();
        // On disk too, so that the order of uses outlives the agent; a file system that refuses loses that.
        let _ = file.set_times(FileTimes::new().set_modified(now));
        self.lock().insert((Kind::Whole, *digest), Held { bytes, used: now });
        Some((file, bytes))
    }

    /// All bytes of a small blob, if it is here.
    pub(crate) fn read(&self, digest: &Digest) -> Option<Vec<u8>> {
        let (file, bytes) = self.whole(digest)?;
        let mut read = Vec::new();
        file.take(bytes).read_to_end(&mut read).ok()?;
        if Digest::of(&read) != *digest {
            self.discard(digest);
            return None;
        }
        Some(read)
    }

    /// Keeps a small blob that is here already as bytes.
    pub(crate) fn put(&self, digest: &Digest, bytes: &[u8]) -> io::Result<()> {
        if !self.has_room_for(bytes.len() as u64) {
            return Ok(());
        }
        let mut partial = self.resume(digest)?;
        partial.file.set_len(0)?;
        partial.file.write_all(bytes)?;
        self.grown(digest, bytes.len() as u64);
        self.keep(digest, &partial.file)
    }

    /// What is here of a blob that was begun: the file, to append to, and the digest so far. Reads all of it.
    pub(crate) fn resume(&self, digest: &Digest) -> io::Result<Partial> {
        let path = self.path(Kind::Partial, digest);
        let mut file = File::options().read(true).append(true).create(true).open(&path)?;
        let (mut hash, mut bytes) = (Hash::default(), 0);
        let mut chunk = vec![0; crate::CHUNK_BYTES];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                read => {
                    hash.update(&chunk[..read]);
                    bytes += read as u64;
                }
            }
        }
        Ok(Partial { file, hash, bytes })
    }

    /// A begun blob, for one who follows its download; whole by now, maybe.
    pub(crate) fn open_partial(&self, digest: &Digest) -> io::Result<File> {
        File::open(self.path(Kind::Partial, digest)).or_else(|_| File::open(self.path(Kind::Whole, digest)))
    }

    /// So much of a begun blob is here now.
    pub(crate) fn grown(&self, digest: &Digest, bytes: u64) {
        let held = Held { bytes, used: SystemTime::now() };
        self.lock().insert((Kind::Partial, *digest), held);
        self.shrink(Some(digest));
    }

    /// The begun blob is complete and has its digest. It is not synced: who reads it sees whether it is what it
    /// was, and a blob that a power cut took is fetched again.
    pub(crate) fn keep(&self, digest: &Digest, file: &File) -> io::Result<()> {
        fs::rename(self.path(Kind::Partial, digest), self.path(Kind::Whole, digest))?;
        let held = Held { bytes: file.metadata()?.len(), used: SystemTime::now() };
        let mut all = self.lock();
        all.remove(&(Kind::Partial, *digest));
        all.insert((Kind::Whole, *digest), held);
        drop(all);
        self.shrink(Some(digest));
        Ok(())
    }

    /// Forgets a blob, begun or whole: it is not what it should be.
    pub(crate) fn discard(&self, digest: &Digest) {
        Kind::ALL.into_iter().for_each(|kind| self.remove(kind, digest));
    }

    /// Removes what was used longest ago until the rest fits; not the one that is just being written.
    fn shrink(&self, spared: Option<&Digest>) {
        loop {
            let oldest = {
                let all = self.lock();
                if all.values().map(|held| held.bytes).sum::<u64>() <= self.budget {
                    return;
                }
                let others = all.iter().filter(|((_, digest), _)| Some(digest) != spared);
                others.min_by_key(|(key, held)| (held.used, **key)).map(|(key, _)| *key)
            };
            let Some((kind, digest)) = oldest else { return };
            self.remove(kind, &digest);
        }
    }

    fn remove(&self, kind: Kind, digest: &Digest) {
        let path = self.path(kind, digest);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "a blob stays on disk");
            }
            _ => {}
        }
        self.lock().remove(&(kind, *digest));
    }

    fn path(&self, kind: Kind, digest: &Digest) -> PathBuf {
        self.folder.join(kind.folder()).join(digest.hex())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Kind, Digest), Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A blob that was begun.
pub(crate) struct Partial {
    pub(crate) file: File,
    pub(crate) hash: Hash,
    pub(crate) bytes: u64,
}

/// Files that are named by a digest, made if the folder is not there. Others are none of ours.
fn list(folder: &Path) -> io::Result<Vec<(Digest, Held)>> {
    fs::create_dir_all(folder)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(digest) = entry.file_name().to_str().and_then(Digest::from_hex) else { continue };
        let about = entry.metadata()?;
        let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        found.push((digest, Held { bytes: about.len(), used }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &Store, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        store.put(&digest, bytes).unwrap();
        digest
    }

    fn holds(store: &Store, digest: &Digest) -> bool {
        store.whole(digest).is_some()
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_also_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Bytes(25)).unwrap();
        let [a, b] = [&[1; 10], &[2; 10]].map(|bytes| put(&store, bytes));
        assert!(holds(&store, &a));
        let again = Store::open(folder.path(), Bytes(25)).unwrap();
        let c = put(&again, &[3; 10]);
        assert_eq!((holds(&again, &a), holds(&again, &b), holds(&again, &c)), (true, false, true));
        assert_eq!(again.bytes(), Bytes(20));
        assert_eq!(Store::open(folder.path(), Bytes(0)).unwrap().bytes(), Bytes(0));
    }

    #[test]
    fn a_begun_blob_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let digest = Digest::of(b"hello world");
        let store = Store::open(folder.path(), Bytes(100)).unwrap();
        store.resume(&digest).unwrap().file.write_all(b"hello ").unwrap();
        let again = Store::open(folder.path(), Bytes(100)).unwrap();
        assert_eq!(again.bytes(), Bytes(6));
        let mut partial = again.resume(&digest).unwrap();
        assert_eq!(partial.bytes, 6);
        partial.file.write_all(b"world").unwrap();
        partial.hash.update(b"world");
        assert_eq!(partial.hash.end(), digest);
        again.keep(&digest, &partial.file).unwrap();
        let (mut file, bytes) = again.whole(&digest).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), bytes, again.bytes()), ("hello world", 11, Bytes(11)));
    }

    #[test]
    fn a_blob_that_somebody_removed_is_not_here() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Bytes(100)).unwrap();
        let digest = put(&store, b"gone");
        fs::remove_file(store.path(Kind::Whole, &digest)).unwrap();
        assert!(!holds(&store, &digest));
        assert_eq!(store.bytes(), Bytes(0));
    }
}
