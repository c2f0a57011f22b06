//! The journal: every acknowledged change of the cluster's state, appended and synced before anyone hears
//! of it.
//!
//! A record is `length u32 | sequence u64 | crc32 u32 | payload`, little-endian; the checksum covers length,
//! sequence and payload. Sequences rise by one. A damaged end (torn write) is cut off, with a copy kept
//! beside the file; damage with sound records behind it is reported too. Nothing behind damage is believed:
//! a later record may rest on the lost one.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes before the payload.
const HEADER: usize = 16;
/// The largest payload: a snapshot of the whole state has to fit.
const PAYLOAD_MAX: usize = 256 * 1024 * 1024;

/// Why the journal does not serve.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused.
    #[error("journal {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    /// A record would be larger than a reader accepts.
    #[error("a record of {bytes} bytes is over the journal's limit of {PAYLOAD_MAX}")]
    TooLarge { bytes: usize },
    /// An earlier write failed, so the end of the file is unknown.
    #[error("journal {path}: an earlier write failed; start the controller again")]
    Broken { path: PathBuf },
}

/// One change as it lies in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) payload: Vec<u8>,
}

/// What could not be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Where the first unbelievable byte is.
    pub(crate) offset: u64,
    /// Bytes from there to the end.
    pub(crate) bytes: u64,
    /// Sound records were found behind it: no torn write, but a damaged medium.
    pub(crate) records_behind: usize,
}

/// The open file, positioned at its end.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    sequence: u64,
    bytes: u64,
    broken: bool,
}

/// What opening found.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) records: Vec<Record>,
    pub(crate) damage: Option<Damage>,
}

impl Journal {
    /// Opens or creates the file, cuts a damaged end off (keeping a copy) and hands back every record
    /// before it.
    pub(crate) fn open(path: &Path) -> Result<(Self, Replay), JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(io)?;
        let (records, damage) = scan(&content);
        let mut bytes = content.len() as u64;
        if let Some(damage) = &damage {
            let copy = path.with_extension(format!("damaged-{}", damage.offset));
            std::fs::write(&copy, &content).map_err(io)?;
            file.set_len(damage.offset).map_err(io)?;
            file.sync_all().map_err(io)?;
            bytes = damage.offset;
        }
        file.seek(SeekFrom::Start(bytes)).map_err(io)?;
        sync_directory(path).map_err(io)?;
        let sequence = records.last().map_or(0, |record| record.sequence);
        let journal = Self { path: path.to_owned(), file, sequence, bytes, broken: false };
        Ok((journal, Replay { records, damage }))
    }

    /// The last record's sequence; 0 before the first.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The file's length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends one record; when this returns it is on the medium.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        if self.broken {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        let sequence = self.sequence + 1;
        let record = encode(sequence, payload)?;
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // The page cache may hold what the medium does not: nothing more is appended to this end.
            self.broken = true;
            return Err(JournalError::Io { path: self.path.clone(), source });
        }
        self.sequence = sequence;
        self.bytes += record.len() as u64;
        Ok(sequence)
    }

    /// Replaces the whole file by one record that says the same; the sequence goes on.
    pub(crate) fn compact(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        let sequence = self.sequence + 1;
        let record = encode(sequence, payload)?;
        let io = |source| JournalError::Io { path: self.path.clone(), source };
        let fresh = self.path.with_extension("compacting");
        let mut file = File::create(&fresh).map_err(io)?;
        file.write_all(&record).and_then(|()| file.sync_all()).map_err(io)?;
        std::fs::rename(&fresh, &self.path).map_err(io)?;
        // From here on the old file has no name: nothing may be appended to it, whatever fails next.
        self.file = file;
        self.sequence = sequence;
        self.bytes = record.len() as u64;
        self.broken = false;
        sync_directory(&self.path).map_err(io)?;
        Ok(sequence)
    }
}

/// A rename or a new file is durable only with its directory.
fn sync_directory(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn checksum(length: [u8; 4], sequence: [u8; 8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(&sequence);
    hasher.update(payload);
    hasher.finalize()
}

fn encode(sequence: u64, payload: &[u8]) -> Result<Vec<u8>, JournalError> {
    let too_large = || JournalError::TooLarge { bytes: payload.len() };
    if payload.len() > PAYLOAD_MAX {
        return Err(too_large());
    }
    let length = u32::try_from(payload.len()).map_err(|_| too_large())?.to_le_bytes();
    let sequence = sequence.to_le_bytes();
    let mut record = Vec::with_capacity(HEADER + payload.len());
    record.extend_from_slice(&length);
    record.extend_from_slice(&sequence);
    record.extend_from_slice(&checksum(length, sequence, payload).to_le_bytes());
    record.extend_from_slice(payload);
    Ok(record)
}

/// The record at `offset`, if it is sound, and where the next one begins.
fn decode(content: &[u8], offset: usize) -> Option<(Record, usize)> {
    let header = content.get(offset..offset + HEADER)?;
    let length: [u8; 4] = header[0..4].try_into().ok()?;
    let sequence: [u8; 8] = header[4..12].try_into().ok()?;
    let crc: [u8; 4] = header[12..16].try_into().ok()?;
    let size = usize::try_from(u32::from_le_bytes(length)).ok().filter(|size| *size <= PAYLOAD_MAX)?;
    let end = offset + HEADER + size;
    let payload = content.get(offset + HEADER..end)?;
    if checksum(length, sequence, payload) != u32::from_le_bytes(crc) {
        return None;
    }
    let record = Record { sequence: u64::from_le_bytes(sequence), payload: payload.to_vec() };
    Some((record, end))
}

/// Every record up to the first damage, and what the damage is.
fn scan(content: &[u8]) -> (Vec<Record>, Option<Damage>) {
    let mut records: Vec<Record> = Vec::new();
    let mut offset = 0;
    while offset < content.len() {
        let follows = |record: &Record| {
            records.last().is_none_or(|last| last.sequence.checked_add(1) == Some(record.sequence))
        };
        match decode(content, offset) {
            Some((record, next)) if follows(&record) => {
                records.push(record);
                offset = next;
            }
            _ => {
                let after = records.last().map_or(0, |last| last.sequence);
                let damage = Damage {
                    offset: offset as u64,
                    bytes: (content.len() - offset) as u64,
                    records_behind: records_behind(&content[offset..], after),
                };
                return (records, Some(damage));
            }
        }
    }
    (records, None)
}

/// Sound records somewhere behind damage, found by their checksums.
fn records_behind(content: &[u8], after: u64) -> usize {
    let mut found = 0;
    let mut offset = 1;
    while offset + HEADER <= content.len() {
        match decode(content, offset) {
            Some((record, next)) if record.sequence > after && !record.payload.is_empty() => {
                found += 1;
                offset = next;
            }
            _ => offset += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(path: &Path, payloads: &[Vec<u8>]) -> Vec<u64> {
        let (mut journal, _) = Journal::open(path).unwrap();
        payloads
            .iter()
            .map(|payload| {
                journal.append(payload).unwrap();
                journal.bytes()
            })
            .collect()
    }

    fn payloads(records: &[Record]) -> Vec<Vec<u8>> {
        records.iter().map(|record| record.payload.clone()).collect()
    }

    #[test]
    fn records_come_back_and_the_sequence_goes_on_after_compaction() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        written(&path, &[b"one".to_vec(), b"two".to_vec()]);
        let (mut journal, replay) = Journal::open(&path).unwrap();
        assert_eq!(payloads(&replay.records), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(journal.compact(b"both").unwrap(), 3);
        journal.append(b"more").unwrap();
        let (journal, replay) = Journal::open(&path).unwrap();
        assert_eq!(payloads(&replay.records), [b"both".to_vec(), b"more".to_vec()]);
        assert_eq!((journal.sequence(), replay.damage), (4, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn a_cut_loses_only_what_it_cuts(
            all in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..8), at in any::<prop::sample::Index>()
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal");
            let ends = written(&path, &all);
            let cut = at.index(usize::try_from(*ends.last().unwrap()).unwrap() + 1) as u64;
            OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let (mut journal, replay) = Journal::open(&path).unwrap();
            prop_assert_eq!(payloads(&replay.records), all[..whole].to_vec());
            prop_assert_eq!(replay.damage.is_some(), cut != 0 && !ends.contains(&cut));
            journal.append(b"next").unwrap();
            let (_, replay) = Journal::open(&path).unwrap();
            prop_assert_eq!(replay.records.len(), whole + 1);
            prop_assert_eq!(replay.damage, None);
        }

        #[test]
        fn a_flipped_bit_is_reported_and_invents_nothing(
            all in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..8),
            at in any::<prop::sample::Index>(), bit in 0u8..8
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal");
            let ends = written(&path, &all);
            let mut content = std::fs::read(&path).unwrap();
            let position = at.index(content.len());
            content[position] ^= 1 << bit;
            std::fs::write(&path, &content).unwrap();
            let before = ends.iter().filter(|end| **end <= position as u64).count();
            let (_, replay) = Journal::open(&path).unwrap();
            prop_assert_eq!(payloads(&replay.records), all[..before].to_vec());
            let damage = replay.damage.unwrap();
            prop_assert_eq!(damage.records_behind > 0, before + 1 < all.len());
        }
    }
}
