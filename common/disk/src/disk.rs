//! The operations on one folder that decide what a power cut leaves.

use std::fmt::Debug;
use std::io;

/// One folder. Names are plain file names.
///
/// A written file is on the medium after [`sync`](Self::sync), a new name or a rename after
/// [`sync_names`](Self::sync_names), as fsync(2) promises and no more.
pub trait Disk: Debug + Send + Sync {
    /// What can be read of the file, and why no more; none without such a file.
    fn read(&self, name: &str) -> Option<(Vec<u8>, Option<io::Error>)>;

    /// Begins the file anew, or cuts it to nothing.
    fn create(&self, name: &str) -> io::Result<()>;

    /// Writes at `offset` of a file that is there.
    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file that is there.
    fn truncate(&self, name: &str, length: u64) -> io::Result<()>;

    /// Content and length of the file are on the medium (fdatasync).
    fn sync(&self, name: &str) -> io::Result<()>;

    /// In place of `to`, if that is there.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// A file that is not there is no error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Which names there are, and what they stand for, is on the medium (fsync of the folder).
    fn sync_names(&self) -> io::Result<()>;

    /// Every name.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Appends where the file ends, at `offset`; when this returns the bytes are on the medium.
    fn append(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(name, offset, bytes)?;
        self.sync(name)
    }

    /// Writes a new file whole; when this returns it is on the medium. Not atomic: for a name that nobody
    /// reads yet.
    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create(name)?;
        self.write_at(name, 0, bytes)?;
        self.sync(name)?;
        self.sync_names()
    }

    /// Puts `bytes` in the place of the file: after a power cut it is the old one or the new one, whole.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.prepare(name, bytes)?;
        self.adopt(name)
    }

    /// The first half of [`replace`](Self::replace): the new content is on the medium under another name.
    fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_new(&fresh_name(name), bytes)
    }

    /// The second half: what was prepared takes the file's place.
    fn adopt(&self, name: &str) -> io::Result<()> {
        self.rename(&fresh_name(name), name)?;
        self.sync_names()
    }

    /// Forgets what was prepared; only a power cut leaves it behind otherwise.
    fn discard(&self, name: &str) -> io::Result<()> {
        self.remove(&fresh_name(name))
    }
}

fn fresh_name(name: &str) -> String {
    format!("{name}.new")
}
