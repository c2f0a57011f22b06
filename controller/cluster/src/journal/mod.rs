//! The journal: every acknowledged change of the cluster's state, appended and synced before anyone hears
//! of it.
//!
//! It is kept twice, in files of equal content, one synced after the other. What a power cut or a flipped bit
//! takes from one of them is taken from the other when the journal is opened; a damaged file is kept aside.
//! Only where both copies lack the same record something is lost, and then the journal does not open: it
//! says what is missing, and changes nothing.

mod found;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use found::Found;
pub use found::Loss;
use found::Worth;
pub(crate) use record::Record;

use edgeloom_disk::Disk;
use record::{HEADER, encode, end_mark};
use std::io;

/// The copies, in the order in which they are written.
pub(crate) const COPIES: [&str; 2] = ["journal", "journal.copy"];

/// Why the journal does not serve.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused.
    #[error("{file}: {source}")]
    Io { file: &'static str, source: io::Error },
    /// A record would be larger than a reader accepts.
    #[error("a record of {bytes} bytes is over the journal's limit of {max}")]
    TooLarge { bytes: usize, max: usize },
    /// An earlier write failed, so the end of the file is unknown.
    #[error("the journal does not know what its files hold since a write failed; start the controller again")]
    Broken,
}

/// The open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Box<dyn Disk>,
    sequence: u64,
    /// Of each copy, with its end mark.
    bytes: u64,
    broken: bool,
}

/// Reads both copies; changes nothing. An unreadable part of a file is as good as missing.
pub(crate) fn read(disk: &dyn Disk) -> Found {
    Found::new(COPIES.map(|name| {
        let (content, error) = disk.read(name)?;
        if let Some(error) = error {
            tracing::error!(file = name, %error, "the journal reads only in part");
        }
        Some(content)
    }))
}

impl Journal {
    /// Makes both copies hold the records from `from` on, which have to be complete, and goes on behind
    /// them. A copy that is damaged is kept aside first.
    pub(crate) fn open(disk: Box<dyn Disk>, found: &Found, from: u64) -> Result<Self, JournalError> {
        let canonical = found.canonical(from)?;
        for (name, copy) in COPIES.into_iter().zip(&found.copies) {
            let io = |source| JournalError::Io { file: name, source };
            if copy.content.as_deref() == Some(canonical.as_slice()) {
                // A killed controller may have left it to the kernel alone.
                disk.sync(name).map_err(io)?;
                continue;
            }
            match (copy.worth(found.last()), &copy.content) {
                (Worth::Damaged, Some(content)) => {
                    let kept = keep_aside(&*disk, name, content).map_err(io)?;
                    tracing::error!(file = name, gaps = ?copy.gaps, kept, "the file is damaged; it is written anew, nothing is lost");
                }
                (Worth::Torn, _) => {
                    tracing::warn!(file = name, gaps = ?copy.gaps, "a write that was not acknowledged is cut off");
                }
                _ => tracing::info!(file = name, "the journal's copy is brought up to date"),
            }
            disk.replace(name, &canonical).map_err(io)?;
        }
        disk.sync_names().map_err(|source| JournalError::Io { file: COPIES[0], source })?;
        Ok(Self { disk, sequence: found.last(), bytes: canonical.len() as u64, broken: false })
    }

    /// Keeps both copies aside, whatever they hold, and begins with one record in their place.
    pub(crate) fn begin_anew(
        disk: Box<dyn Disk>,
        found: &Found,
        sequence: u64,
        payload: &[u8],
    ) -> Result<Self, JournalError> {
        for (name, copy) in COPIES.into_iter().zip(&found.copies) {
            if let Some(content) = &copy.content {
                let io = |source| JournalError::Io { file: name, source };
                keep_aside(&*disk, name, content).map_err(io)?;
            }
        }
        let mut journal = Self { disk, sequence: sequence.saturating_sub(1), bytes: 0, broken: false };
        journal.compact(payload)?;
        Ok(journal)
    }

    /// The last record's sequence; 0 before the first.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The length of one copy.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends one record; when this returns it is on the medium, twice.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        if self.broken {
            return Err(JournalError::Broken);
        }
        let sequence = self.sequence + 1;
        let mut record = encode(sequence, payload)?;
        let grown = self.bytes + record.len() as u64;
        record.extend(end_mark(sequence));
        for name in COPIES {
            // Over the end mark.
            if let Err(source) = self.disk.append(name, self.bytes - HEADER as u64, &record) {
                self.take_back();
                return Err(JournalError::Io { file: name, source });
            }
        }
        (self.sequence, self.bytes) = (sequence, grown);
        Ok(sequence)
    }

    /// A full disk must not end the journal: both copies are cut to what was acknowledged. If that fails too,
    /// the kernel may hold what the medium does not, and nothing more is appended.
    fn take_back(&mut self) {
        let mark = end_mark(self.sequence);
        let cut = |name: &str| {
            self.disk.truncate(name, self.bytes)?;
            self.disk.append(name, self.bytes - HEADER as u64, &mark)
        };
        // The second one first: until it ends cleanly the first one does, with the record or without.
        self.broken = COPIES.into_iter().rev().any(|name| cut(name).is_err());
    }

    /// Replaces all records by one that says the same; the sequence goes on.
    pub(crate) fn compact(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        let sequence = self.sequence + 1;
        let mut content = encode(sequence, payload)?;
        content.extend(end_mark(sequence));
        for name in COPIES {
            if let Err(source) = self.disk.prepare(name, &content) {
                // Nothing has changed, and the space may be needed.
                COPIES.into_iter().for_each(|name| drop(self.disk.discard(name)));
                return Err(JournalError::Io { file: name, source });
            }
        }
        for name in COPIES {
            if let Err(source) = self.disk.adopt(name) {
                // Which of the two is the copy is not known: opening again sorts it out.
                self.broken = true;
                return Err(JournalError::Io { file: name, source });
            }
        }
        (self.sequence, self.bytes, self.broken) = (sequence, content.len() as u64, false);
        Ok(sequence)
    }
}

/// Writes what a file held under a name that is free; damage may be worth more to someone than to us.
fn keep_aside(disk: &dyn Disk, name: &str, content: &[u8]) -> io::Result<String> {
    let names = disk.names()?;
    let free = (1_u32..).map(|number| format!("{name}.damaged-{number}"));
    let free = free.into_iter().find(|name| !names.contains(name));
    let free = free.expect("a folder has fewer names than numbers");
    disk.write_new(&free, content)?;
    Ok(free)
}
