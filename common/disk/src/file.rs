//! One file by its path, with what [`Disk`] promises of names.

use crate::{Disk, Folder};
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

/// The whole file, up to this length; none if there is none.
///
/// # Errors
/// When it is there and does not read to its end.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let (folder, name) = place(path)?;
    match folder.reading_at_most(bytes_max).read(name) {
        None => Ok(None),
        Some((bytes, None)) => Ok(Some(bytes)),
        Some((_, Some(error))) => Err(error),
    }
}

/// Puts `bytes` in the place of the file, for its owner alone: after a power cut it is the old one or the new
/// one, whole.
///
/// # Errors
/// When its folder is missing or refuses.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = place(path)?;
    folder.replace(name, bytes)
}

/// Removes the file and what a power cut may have left beside it.
///
/// # Errors
/// When one is there and stays.
pub fn remove(path: &Path) -> io::Result<()> {
    let (folder, name) = place(path)?;
    folder.discard(name)?;
    folder.remove(name)
}

/// What root makes in a folder of a daemon's user belongs to that user: root joins or repairs, the user runs.
///
/// # Errors
/// When the file is not there, or is not ours to give.
pub fn hand_over(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let (own, folder) = (std::fs::metadata(path)?, std::fs::metadata(folder)?);
    if own.uid() == 0 && folder.uid() != 0 {
        chown(path, Some(folder.uid()), Some(folder.gid()))?;
    }
    Ok(())
}

fn place(path: &Path) -> io::Result<(Folder, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((Folder::at(folder.unwrap_or(Path::new("."))), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_privately_read_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert_eq!(read(&path, 10).unwrap(), None);
        replace(&path, b"old").unwrap();
        replace(&path, b"new and long").unwrap();
        assert_eq!(read(&path, 3).unwrap().unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(folder.path().join("state.json.new"), "cut").unwrap();
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(replace(Path::new("/"), b"").is_err() && read(folder.path(), 1).is_err());
    }

    #[test]
    fn what_root_writes_belongs_to_whom_the_folder_belongs() {
        let folder = tempfile::tempdir().unwrap();
        if chown(folder.path(), Some(4242), Some(4243)).is_err() {
            // Only root gives files away, and only root has to.
            return;
        }
        let path = folder.path().join("state.json");
        replace(&path, b"text").unwrap();
        let file = std::fs::metadata(&path).unwrap();
        assert_eq!((file.uid(), file.gid()), (4242, 4243));
    }
}
