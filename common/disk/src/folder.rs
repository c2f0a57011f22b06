//! A folder of a file system.

use crate::disk::Disk;
use crate::file::hand_over;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// State holds what tasks are given in their environment: for the daemon's own user alone.
const MODE: u32 = 0o600;

/// The folder at a path. Files are opened for each operation: the kernel reports an error of an earlier
/// write to whoever opens and syncs the file next (errseq, Linux 4.16).
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// Longer files are not read to their end.
    bytes_max: u64,
}

impl Folder {
    /// The folder, which is made, durably, when it is missing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            std::fs::create_dir_all(path)?;
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent)?.sync_all()?;
            }
        }
        Ok(Self::at(path))
    }

    /// The folder, which has to be there when something is written.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), bytes_max: u64::MAX }
    }

    /// The same folder, of whose files no more than this is read.
    #[must_use]
    pub fn reading_at_most(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    fn write(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join(name))
    }
}

impl Disk for Folder {
    fn read(&self, name: &str) -> Option<(Vec<u8>, Option<io::Error>)> {
        let mut bytes = Vec::new();
        let read = match File::open(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Err(error),
            Ok(file) => file.take(self.bytes_max).read_to_end(&mut bytes),
        };
        Some((bytes, read.err()))
    }

    fn create(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(&path)?;
        hand_over(&path)
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(name)?.write_all_at(bytes, offset)
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        self.write(name)?.set_len(length)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.write(name)?.sync_data()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_passes_the_contract() {
        let place = tempfile::tempdir().unwrap();
        crate::fakes::contract(&Folder::open(&place.path().join("state")).unwrap());
    }

    #[test]
    fn no_more_than_asked_is_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        folder.replace("a", b"0123456789").unwrap();
        assert_eq!(folder.reading_at_most(4).read("a").unwrap().0, b"0123");
    }
}
