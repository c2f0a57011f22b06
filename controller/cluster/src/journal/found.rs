//! What both copies of the journal hold together, and whether that is everything. Pure.
//!
//! A record is acknowledged when both copies have it, and the first one has it synced before the second one
//! is touched. So after any one fault, a power cut or damage to one copy, one of them ends cleanly: the
//! first with the last record, or the second with that or the one before. That is the sign that nothing
//! acknowledged is missing behind it.

use super::record::{Gap, Record, Scan, encode, end_mark, scan};
use super::{COPIES, JournalError};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// One copy as it was read.
#[derive(Debug)]
pub(super) struct FoundCopy {
    /// None: there is no such file.
    pub(super) content: Option<Vec<u8>>,
    pub(super) gaps: Vec<Gap>,
    /// The last sound record's sequence; 0 without one.
    last: u64,
    /// The end mark of that record is the end of the file.
    ended: bool,
}

/// What a copy is worth beside the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    Absent,
    /// It holds less than the other, or no end mark; nothing in it is damaged.
    Behind,
    /// It ends in a write that did not come to its end.
    Torn,
    Damaged,
}

impl FoundCopy {
    fn new(content: Option<Vec<u8>>) -> (Self, Vec<Record>) {
        let Scan { records, gaps, ended } = content.as_deref().map(scan).unwrap_or_default();
        let last = records.last().map_or(0, |record| record.sequence);
        (Self { content, gaps, last, ended }, records)
    }

    /// `last` is the last sequence of both copies.
    pub(super) fn worth(&self, last: u64) -> Worth {
        let Some(content) = &self.content else { return Worth::Absent };
        match self.gaps.as_slice() {
            [] => Worth::Behind,
            [gap] if gap.offset + gap.bytes == content.len() as u64 && last <= self.last + 1 => Worth::Torn,
            _ => Worth::Damaged,
        }
    }
}

/// Both copies as they were read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(super) copies: [FoundCopy; 2],
    records: BTreeMap<u64, Record>,
    /// The last record that the copies hold differently; neither is believed.
    disputed: u64,
}

/// Acknowledged records that neither copy has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Sequences from and to; an open end is not known.
    pub(crate) missing: Vec<(u64, Option<u64>)>,
    /// Sound records before the first missing one that build on each other.
    before: usize,
    /// Where in which file bytes are no records.
    damage: Vec<(&'static str, Gap)>,
    /// Files that are not there.
    absent: Vec<&'static str>,
    /// Sequences from and to of the sound records behind the first missing one.
    behind: Option<(u64, u64)>,
    /// How many of which kind these are.
    kinds: BTreeMap<String, usize>,
}

impl Found {
    pub(super) fn new(contents: [Option<Vec<u8>>; 2]) -> Self {
        let [(first, ours), (second, theirs)] = contents.map(FoundCopy::new);
        let mut records: BTreeMap<u64, Record> =
            ours.into_iter().map(|record| (record.sequence, record)).collect();
        let mut disputed = Vec::new();
        for record in theirs {
            match records.entry(record.sequence) {
                Entry::Vacant(free) => drop(free.insert(record)),
                Entry::Occupied(known) if *known.get() != record => disputed.push(record.sequence),
                Entry::Occupied(_) => {}
            }
        }
        disputed.iter().for_each(|sequence| drop(records.remove(sequence)));
        let copies = [first, second];
        Self { copies, records, disputed: disputed.last().copied().unwrap_or(0) }
    }

    /// The last sound record's sequence; 0 without one.
    pub(crate) fn last(&self) -> u64 {
        self.records.last_key_value().map_or(0, |(sequence, _)| *sequence)
    }

    /// Neither copy holds anything, sound or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.copies.iter().all(|copy| copy.last == 0 && copy.gaps.is_empty())
    }

    /// Above every sequence that was ever given, as far as anything tells.
    pub(crate) fn beyond(&self) -> u64 {
        self.last().max(self.disputed) + 1
    }

    /// Every sound record with a sequence above `after`.
    pub(crate) fn after(&self, after: u64) -> impl Iterator<Item = &Record> {
        self.records.range(after.saturating_add(1)..).map(|(_, record)| record)
    }

    /// The latest record that stands for all before it; 0: there is none, all begins with record 1.
    pub(crate) fn base(&self, is_base: fn(&[u8]) -> bool) -> u64 {
        let latest = self.records.values().rev().find(|record| is_base(&record.payload));
        latest.map_or(0, |record| record.sequence)
    }

    /// Whether every acknowledged record above `after` is there.
    pub(crate) fn complete_after(&self, after: u64) -> Result<(), Box<Loss>> {
        let mut missing = Vec::new();
        let mut expected = after + 1;
        for record in self.after(after) {
            if expected < record.sequence {
                missing.push((expected, Some(record.sequence - 1)));
            }
            expected = record.sequence + 1;
        }
        if self.last().max(after) < self.disputed || !self.ends_cleanly(after) {
            missing.push((expected, None));
        }
        if missing.is_empty() { Ok(()) } else { Err(Box::new(self.loss(after, missing))) }
    }

    /// Nothing acknowledged can lie behind the last record. A single copy is one of an older version, which
    /// kept no second one and wrote no end marks.
    fn ends_cleanly(&self, after: u64) -> bool {
        let last = self.last();
        let [first, second] = &self.copies;
        let single = first.content.is_none() || second.content.is_none();
        // While the second one ends with the record before, the last one is not acknowledged yet.
        let clean = first.ended && first.last == last || second.ended && last <= second.last + 1;
        single || clean || last < after
    }

    /// The loss of records that something else than the journal knows of.
    pub(crate) fn loss(&self, after: u64, missing: Vec<(u64, Option<u64>)>) -> Loss {
        let first = missing.first().map_or(u64::MAX, |(first, _)| *first);
        let mut kinds = BTreeMap::new();
        for record in self.after(first) {
            *kinds.entry(kind(&record.payload)).or_default() += 1;
        }
        let named = || COPIES.into_iter().zip(&self.copies);
        let damage = named().flat_map(|(name, copy)| copy.gaps.iter().map(move |gap| (name, *gap)));
        Loss {
            before: self.after(after).take_while(|record| record.sequence < first).count(),
            damage: damage.collect(),
            absent: named().filter(|(_, copy)| copy.content.is_none()).map(|(name, _)| name).collect(),
            behind: self.after(first).next().map(|record| (record.sequence, self.last())),
            kinds,
            missing,
        }
    }

    /// The file that both copies should be: the records from `from` on and the end mark.
    pub(super) fn canonical(&self, from: u64) -> Result<Vec<u8>, JournalError> {
        let mut content = Vec::new();
        for record in self.after(from.saturating_sub(1)) {
            content.extend(encode(record.sequence, &record.payload)?);
        }
        content.extend(end_mark(self.last()));
        Ok(content)
    }
}

/// What kind of change a payload is: its first name.
fn kind(payload: &[u8]) -> String {
    let names = payload.split(|byte| *byte == b'"');
    let name = names.skip(1).map(String::from_utf8_lossy).next().unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).take(32).collect()
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.missing.iter().map(range).collect();
        write!(f, "acknowledged changes cannot be read: {}; ", ranges.join(", "))?;
        write!(f, "{} before them are sound", self.before)?;
        match self.behind {
            None => f.write_str(", none behind")?,
            Some((first, last)) => {
                let kinds = self.kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
                let kinds = kinds.collect::<Vec<_>>().join(", ");
                write!(f, "; behind are {kinds} (records {first} to {last})")?;
            }
        }
        for (file, Gap { offset, bytes }) in &self.damage {
            write!(f, "; {file}: bytes {offset} to {} are no records", offset + bytes)?;
        }
        self.absent.iter().try_for_each(|file| write!(f, "; {file} is not there"))
    }
}

fn range((first, last): &(u64, Option<u64>)) -> String {
    match last {
        Some(last) if first == last => format!("record {first}"),
        Some(last) => format!("records {first} to {last}"),
        None => format!("from record {first} on, nobody knows how many"),
    }
}
