//! How records lie in a file, and what of a file can be believed. Pure.
//!
//! A record is `length u32 | sequence u64 | crc32 u32 | payload`, little-endian; the checksum covers length,
//! sequence and payload. Behind the last one lies an end mark, a record header with the last sequence and
//! the length [`END`], which the next record overwrites: without it a file that was cut between two
//! records would look whole.

use super::JournalError;

/// Bytes before the payload; an end mark is nothing more.
pub(super) const HEADER: usize = 16;
/// The largest payload: a snapshot of the whole state has to fit.
pub(super) const PAYLOAD_MAX: usize = 256 * 1024 * 1024;
/// The length that no record has.
const END: u32 = u32::MAX;
/// Sequences further ahead than this are no record's but some other bytes'.
const SEQUENCE_STEP_MAX: u64 = 1 << 32;

/// One change as it lies in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) payload: Vec<u8>,
}

/// Bytes that are no sound record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What one file holds.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Every sound record, sequences rising.
    pub(super) records: Vec<Record>,
    pub(super) gaps: Vec<Gap>,
    /// The end mark of the last record is the end of the file.
    pub(super) ended: bool,
}

impl Scan {
    /// The last record's sequence; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.records.last().map_or(0, |record| record.sequence)
    }
}

pub(super) fn encode(sequence: u64, payload: &[u8]) -> Result<Vec<u8>, JournalError> {
    let too_large = || JournalError::TooLarge { bytes: payload.len(), max: PAYLOAD_MAX };
    if payload.len() > PAYLOAD_MAX {
        return Err(too_large());
    }
    let length = u32::try_from(payload.len()).map_err(|_| too_large())?;
    let mut record = Vec::with_capacity(HEADER + payload.len());
    record.extend_from_slice(&header(length, sequence, payload));
    record.extend_from_slice(payload);
    Ok(record)
}

/// What lies behind the record of this sequence while it is the last.
pub(super) fn end_mark(sequence: u64) -> [u8; HEADER] {
    header(END, sequence, &[])
}

fn header(length: u32, sequence: u64, payload: &[u8]) -> [u8; HEADER] {
    let (length, sequence) = (length.to_le_bytes(), sequence.to_le_bytes());
    let mut header = [0; HEADER];
    header[0..4].copy_from_slice(&length);
    header[4..12].copy_from_slice(&sequence);
    header[12..16].copy_from_slice(&checksum(length, sequence, payload).to_le_bytes());
    header
}

fn checksum(length: [u8; 4], sequence: [u8; 8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(&sequence);
    hasher.update(payload);
    hasher.finalize()
}

/// The record at `offset`, if it is sound and comes after `last`, and where the next one begins.
fn decode(content: &[u8], offset: usize, last: u64) -> Option<(Record, usize)> {
    let header = content.get(offset..offset.checked_add(HEADER)?)?;
    let length: [u8; 4] = header[0..4].try_into().ok()?;
    let sequence: [u8; 8] = header[4..12].try_into().ok()?;
    let crc: [u8; 4] = header[12..16].try_into().ok()?;
    let number = u64::from_le_bytes(sequence);
    // Before the checksum, which costs as much as the payload is long: a search tries it at every byte.
    let follows = number > last && number - last <= SEQUENCE_STEP_MAX;
    let size = usize::try_from(u32::from_le_bytes(length)).ok();
    let size = size.filter(|size| follows && (1..=PAYLOAD_MAX).contains(size))?;
    let end = offset + HEADER + size;
    let payload = content.get(offset + HEADER..end)?;
    let sound = checksum(length, sequence, payload) == u32::from_le_bytes(crc);
    sound.then(|| (Record { sequence: number, payload: payload.to_vec() }, end))
}

/// Every sound record, also those behind damage, which are found by their checksums.
pub(super) fn scan(content: &[u8]) -> Scan {
    let mut scan = Scan::default();
    let (mut offset, mut sound_until) = (0, 0);
    let note = |gaps: &mut Vec<Gap>, from: usize, to: usize| {
        if from < to {
            gaps.push(Gap { offset: from as u64, bytes: (to - from) as u64 });
        }
    };
    while offset < content.len() {
        if content[offset..] == end_mark(scan.last()) && offset == sound_until {
            scan.ended = true;
            return scan;
        }
        match decode(content, offset, scan.last()) {
            Some((record, next)) => {
                note(&mut scan.gaps, sound_until, offset);
                scan.records.push(record);
                (offset, sound_until) = (next, next);
            }
            None => offset += 1,
        }
    }
    note(&mut scan.gaps, sound_until, content.len());
    scan
}
