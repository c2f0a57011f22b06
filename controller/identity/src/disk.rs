//! Files of state: private, replaced as a whole, synced, and checked when they are read.
//!
//! Each carries its checksum: a flipped bit must not turn a revoked serial number into another one that nobody
//! revoked.

use edgeloom_disk::{Unsealed, hand_over, seal, unseal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Far above the state of a thousand nodes.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// Why state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file or its directory.
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file or its directory; nothing was changed.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Cut off or altered. Going on without it would forget who was revoked, so a person decides.
    #[error(
        "{} is damaged: its checksum does not match; restore it from a backup, or remove the directory, start anew and join every node again", path.display()
    )]
    Damaged { path: PathBuf },
    /// Half of the state is there.
    #[error(
        "{} is missing, though what belongs to it is there; restore it from a backup, or remove the directory, start anew and join every node again", path.display()
    )]
    Missing { path: PathBuf },
    /// Whole, but of another version.
    #[error("{} does not read: {source}", path.display())]
    Format { path: PathBuf, source: serde_json::Error },
}

/// A directory for its owner alone.
pub(crate) fn private_directory(path: &Path) -> Result<(), DiskError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path).and_then(|()| hand_over(path));
    made.map_err(|source| DiskError::Write { path: path.to_owned(), source })
}

/// The value of a file; none if there is none.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, DiskError> {
    let read = edgeloom_disk::read(path, FILE_MAX);
    let Some(bytes) = read.map_err(|source| DiskError::Read { path: path.to_owned(), source })? else {
        return Ok(None);
    };
    let Unsealed::Sound(body) = unseal(&bytes) else {
        return Err(DiskError::Damaged { path: path.to_owned() });
    };
    let format = |source| DiskError::Format { path: path.to_owned(), source };
    serde_json::from_slice(body).map(Some).map_err(format)
}

/// Replaces a file with the value and its checksum.
pub(crate) fn save<T: Serialize>(path: &Path, value: &T) -> Result<(), DiskError> {
    let body = serde_json::to_vec_pretty(value)
        .map_err(|error| DiskError::Write { path: path.to_owned(), source: error.into() })?;
    replace(path, &seal(&body))
}

/// Replaces a file: after a power cut it is the old one or the new one, whole, and private always.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    edgeloom_disk::replace(path, bytes).map_err(|source| DiskError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_cut_or_altered_anywhere_is_damaged_and_never_another_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        save(&path, &vec!["serial-1", "serial-2"]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(load::<Vec<String>>(&path), Err(DiskError::Damaged { .. })), "cut at {length}");
        }
        for position in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            std::fs::write(&path, &flipped).unwrap();
            assert!(matches!(load::<Vec<String>>(&path), Err(DiskError::Damaged { .. })), "bit {position}");
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(load::<Vec<String>>(&path).unwrap().unwrap(), ["serial-1", "serial-2"]);
    }
}
