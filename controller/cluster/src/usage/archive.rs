//! Closed records in files of their own: appended, a line each with its checksum, the oldest files removed.
//!
//! What is in them came out of the journal and leaves the model only once it is here, synced. A line that is torn or
//! damaged is told and passed over; the others hold.

use super::UsageQuery;
use edgeloom_common::usage::UsageView;
use edgeloom_disk::{Disk, Folder};
use std::io;
use std::path::Path;

/// The folder below the state directory.
pub(crate) const FOLDER: &str = "usage";
const PREFIX: &str = "closed-";
const SEGMENT_RECORDS: usize = 1_000;
/// So many files, 100,000 records, are kept, and none for longer than this.
const SEGMENTS_MAX: usize = 100;
const KEPT_MS: u64 = 90 * 86_400_000;
/// A record has less than a kilobyte.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// ` 0a1b2c3d` at the end of a line.
const MARK: usize = 9;

/// The files, and where the last one ends.
#[derive(Debug)]
pub(crate) struct Archive {
    disk: Folder,
    /// By the first number in each, which is also its name.
    segments: Vec<u64>,
    records: usize,
    bytes: u64,
    last: u64,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) records: Vec<UsageView>,
    /// There are more.
    pub(crate) more: bool,
    /// Damaged lines that were passed over.
    pub(crate) unreadable: u64,
}

impl Archive {
    /// Opens the folder, and cuts off a line that was not written to its end.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let disk = folder(path)?;
        let segments = segments(&disk)?;
        let mut archive = Self { disk, segments, records: 0, bytes: 0, last: 0 };
        if let Some(first) = archive.segments.last().copied() {
            let (content, error) = archive.disk.read(&name(first)).unwrap_or_default();
            if let Some(error) = error {
                return Err(error);
            }
            archive.bytes = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
            if archive.bytes < content.len() as u64 {
                archive.disk.truncate(&name(first), archive.bytes)?;
            }
            archive.records = content.iter().filter(|byte| **byte == b'\n').count();
            let numbers = lines(&content).filter_map(|line| parse(line)?.number);
            archive.last = numbers.max().unwrap_or(0).max(first.saturating_sub(1));
        }
        Ok(archive)
    }

    /// The highest number in it.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Takes in closed records that it does not have yet; when this returns they are on the medium.
    pub(crate) fn append(&mut self, records: &[UsageView], now_ms: u64) -> io::Result<()> {
        let mut fresh = records.iter().filter_map(|record| Some((record.number?, record)));
        let mut next = fresh.find(|(number, _)| *number > self.last);
        while let Some((first, _)) = next {
            if self.segments.is_empty() || self.records >= SEGMENT_RECORDS {
                self.begin(first, now_ms)?;
            }
            let (mut text, mut count, mut last) = (Vec::new(), 0, 0);
            while let Some((number, record)) = next.filter(|_| self.records + count < SEGMENT_RECORDS) {
                text.extend(line(record));
                (count, last) = (count + 1, number);
                next = fresh.next();
            }
            let segment = name(self.segments[self.segments.len() - 1]);
            self.disk.append(&segment, self.bytes, &text)?;
            (self.records, self.bytes, self.last) =
                (self.records + count, self.bytes + text.len() as u64, last);
        }
        Ok(())
    }

    fn begin(&mut self, first: u64, now_ms: u64) -> io::Result<()> {
        self.disk.create(&name(first))?;
        self.disk.sync_names()?;
        self.segments.push(first);
        (self.records, self.bytes) = (0, 0);
        while self.segments.len() > SEGMENTS_MAX
            || (self.segments.len() > 1 && self.is_old(self.segments[0], now_ms))
        {
            self.disk.remove(&name(self.segments.remove(0)))?;
        }
        Ok(())
    }

    /// Everything in the file is older than is kept.
    fn is_old(&self, segment: u64, now_ms: u64) -> bool {
        let (content, _) = self.disk.read(&name(segment)).unwrap_or_default();
        let newest = lines(&content).filter_map(|line| parse(line)?.until_ms).max();
        newest.is_none_or(|until_ms| until_ms.saturating_add(KEPT_MS) < now_ms)
    }
}

/// The wanted records of a folder that somebody else may be appending to.
pub(crate) fn read(path: &Path, query: &UsageQuery) -> io::Result<Page> {
    let mut page = Page::default();
    if !path.is_dir() {
        return Ok(page);
    }
    let disk = folder(path)?;
    let segments = segments(&disk)?;
    for (at, segment) in segments.iter().enumerate() {
        // All of it is at or before what the reader has.
        if segments.get(at + 1).is_some_and(|next| *next <= query.after.saturating_add(1)) {
            continue;
        }
        // One that is removed meanwhile has nothing to tell.
        let (content, error) = disk.read(&name(*segment)).unwrap_or_default();
        if let Some(error) = error {
            return Err(error);
        }
        for line in lines(&content) {
            match parse(line) {
                None => page.unreadable += 1,
                Some(record) if !query.wants(&record) => {}
                Some(_) if page.records.len() >= query.limit => {
                    page.more = true;
                    return Ok(page);
                }
                Some(record) => page.records.push(record),
            }
        }
    }
    Ok(page)
}

fn folder(path: &Path) -> io::Result<Folder> {
    Ok(Folder::open(path)?.reading_at_most(SEGMENT_BYTES_MAX))
}

fn segments(disk: &Folder) -> io::Result<Vec<u64>> {
    let names = disk.names()?;
    let mut found: Vec<u64> =
        names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
    found.sort_unstable();
    Ok(found)
}

fn name(first: u64) -> String {
    format!("{PREFIX}{first:020}")
}

/// Lines that were written to their end.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"))
}

fn line(record: &UsageView) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("a record is plain data with text keys");
    let mark = format!(" {:08x}\n", crc32fast::hash(&line));
    line.extend(mark.into_bytes());
    line
}

fn parse(line: &[u8]) -> Option<UsageView> {
    let (text, mark) = line.split_at_checked(line.len().checked_sub(MARK)?)?;
    let sound = format!(" {:08x}", crc32fast::hash(text)).as_bytes() == mark;
    sound.then(|| serde_json::from_slice(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::tests::closed;

    fn all() -> UsageQuery {
        UsageQuery { limit: usize::MAX, ..UsageQuery::default() }
    }

    fn numbers(page: &Page) -> Vec<u64> {
        page.records.iter().filter_map(|record| record.number).collect()
    }

    #[test]
    fn records_are_kept_once_and_read_in_pages() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(dir.path()).unwrap();
        let records: Vec<UsageView> = (1..=2_500).map(|number| closed(number, "j", number)).collect();
        archive.append(&records[..10], 0).unwrap();
        archive.append(&records, 0).unwrap();
        assert_eq!((archive.last(), archive.segments.len()), (2_500, 3));
        let mut archive = Archive::open(dir.path()).unwrap();
        archive.append(&records, 0).unwrap();
        let page = read(dir.path(), &UsageQuery { after: 995, limit: 10, ..UsageQuery::default() }).unwrap();
        assert_eq!((numbers(&page), page.more), ((996..=1005).collect(), true));
        let page =
            read(dir.path(), &UsageQuery { after: 2_490, limit: 10, ..UsageQuery::default() }).unwrap();
        assert_eq!((numbers(&page), page.more), ((2_491..=2_500).collect(), false));
        let within = UsageQuery { since_ms: Some(50), until_ms: Some(53), ..all() };
        assert_eq!(numbers(&read(dir.path(), &within).unwrap()), [50, 51, 52]);
        let other = UsageQuery { job: Some("other".parse().unwrap()), ..all() };
        assert_eq!(read(dir.path(), &other).unwrap(), Page::default());
    }

    #[test]
    fn a_torn_line_is_written_again_and_a_damaged_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let records: Vec<UsageView> = (1..=3).map(|number| closed(number, "j", number)).collect();
        Archive::open(dir.path()).unwrap().append(&records, 0).unwrap();
        let file = dir.path().join(name(1));
        let whole = std::fs::read(&file).unwrap();
        for cut in 1..whole.len() {
            std::fs::write(&file, &whole[..cut]).unwrap();
            let mut archive = Archive::open(dir.path()).unwrap();
            archive.append(&records, 0).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), whole, "cut at {cut}");
        }
        let mut flipped = whole.clone();
        flipped[20] ^= 1;
        std::fs::write(&file, &flipped).unwrap();
        let page = read(dir.path(), &all()).unwrap();
        assert_eq!((numbers(&page), page.unreadable), (vec![2, 3], 1));
    }

    #[test]
    fn old_files_go_when_a_new_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(dir.path()).unwrap();
        let records: Vec<UsageView> = (1..=1_001).map(|number| closed(number, "j", number)).collect();
        archive.append(&records[..1_000], 0).unwrap();
        archive.append(&records[1_000..], KEPT_MS + 5_000).unwrap();
        assert_eq!(numbers(&read(dir.path(), &all()).unwrap()), [1_001]);
    }
}
