//! The desired state in force, as one JSON file.

use edgeloom_common::desired::DesiredState;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The controller refuses documents over 512 KiB; twice that is no document of ours.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}; the state would be lost at the next start", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} does not read: {source}; going on without a desired state until the controller sends one", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
}

/// The file and its directory.
#[derive(Debug, Clone)]
pub(crate) struct DesiredFile {
    directory: PathBuf,
}

impl DesiredFile {
    /// The file in the state directory, which is made when it is missing.
    pub(crate) fn open(directory: &Path) -> Result<Self, StateError> {
        let write = |source| StateError::Write { path: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(write)?;
        Ok(Self { directory: directory.to_owned() })
    }

    fn path(&self) -> PathBuf {
        self.directory.join("desired.json")
    }

    /// Left behind by a power cut only.
    fn temporary(&self) -> PathBuf {
        self.directory.join("desired.json.new")
    }

    /// The document on disk; none when there was never one.
    pub(crate) fn load(&self) -> Result<Option<DesiredState>, StateError> {
        let path = self.path();
        let mut bytes = Vec::new();
        let read = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
            Ok(file) => file.take(FILE_MAX_BYTES).read_to_end(&mut bytes),
        };
        read.map_err(|source| StateError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&bytes).map(Some).map_err(|source| StateError::Damaged { path, source })
    }

    /// Replaces the document: after a power cut the file is the old one or the new one, whole.
    pub(crate) fn save(&self, document: &DesiredState) -> Result<(), StateError> {
        let path = self.path();
        let bytes = serde_json::to_vec(document).map_err(io::Error::from);
        let written = bytes.and_then(|bytes| self.replace(&path, &bytes));
        written.map_err(|source| StateError::Write { path, source })
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.temporary();
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        // The rename itself is durable only with its directory.
        File::open(&self.directory)?.sync_all()
    }

    /// Forgets the document.
    pub(crate) fn remove(&self) -> Result<(), StateError> {
        for path in [self.temporary(), self.path()] {
            if let Err(source) = std::fs::remove_file(&path)
                && source.kind() != io::ErrorKind::NotFound
            {
                return Err(StateError::Write { path, source });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{document, spec};

    #[test]
    fn what_was_saved_is_loaded_and_a_later_save_replaces_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = DesiredFile::open(directory.path()).unwrap();
        assert!(file.load().unwrap().is_none());
        file.save(&document(1, vec![])).unwrap();
        let newer = document(2, vec![spec("a", "h")]);
        file.save(&newer).unwrap();
        assert_eq!(file.load().unwrap(), Some(newer));
        file.remove().unwrap();
        assert!(file.load().unwrap().is_none());
    }

    #[test]
    fn a_file_cut_off_anywhere_is_reported_and_can_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let file = DesiredFile::open(directory.path()).unwrap();
        file.save(&document(1, vec![spec("a", "h")])).unwrap();
        let whole = std::fs::read(file.path()).unwrap();
        for length in 0..whole.len() {
            std::fs::write(file.path(), &whole[..length]).unwrap();
            assert!(matches!(file.load(), Err(StateError::Damaged { .. })), "cut at {length}");
        }
        file.save(&document(2, vec![])).unwrap();
        assert_eq!(file.load().unwrap(), Some(document(2, vec![])));
    }
}
