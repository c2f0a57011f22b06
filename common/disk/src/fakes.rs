//! A disk in memory that knows what was synced, and power cuts that keep of the rest what they like; and
//! damage to real files.
//!
//! It is harsher than a file system: of unsynced writes any part may survive, in any mixture, with zeros
//! where a length survived and its bytes did not; of unsynced names any first part of their changes.

mod files;

pub use files::Files;

use crate::disk::Disk;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    shared: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    files: Vec<File>,
    /// As the kernel shows them now.
    names: BTreeMap<String, usize>,
    /// As they are on the medium, and what has been changed since.
    names_kept: BTreeMap<String, usize>,
    names_changed: Vec<BTreeMap<String, usize>>,
    /// Operations until the power fails; none: it does not.
    steps_left: Option<u64>,
    /// Operations until one is refused.
    until_refusal: Option<u64>,
}

#[derive(Debug, Default)]
struct File {
    now: Vec<u8>,
    kept: Vec<u8>,
    changed: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl MemoryDisk {
    /// From now on so many operations succeed; then the power is off and everything fails.
    pub fn fail_after(&self, steps: u64) {
        self.content().steps_left = Some(steps);
    }

    /// After so many operations one is refused, as by a full disk; later ones succeed.
    pub fn refuse_after(&self, steps: u64) {
        self.content().until_refusal = Some(steps);
    }

    /// The power has been away: what was not synced is there or not, as drawn; afterwards the disk works.
    pub fn cut_power(&self, rng: &mut Rng) {
        let mut content = self.content();
        for file in &mut content.files {
            file.cut_power(rng);
        }
        let survive = rng.usize(0..=content.names_changed.len());
        if let Some(names) = survive.checked_sub(1).map(|last| content.names_changed[last].clone()) {
            content.names_kept = names;
        }
        content.names_changed.clear();
        content.names = content.names_kept.clone();
        (content.steps_left, content.until_refusal) = (None, None);
    }

    /// The process was killed: what it wrote is still in the kernel, synced or not.
    pub fn kill(&self) {
        let mut content = self.content();
        (content.steps_left, content.until_refusal) = (None, None);
    }

    /// Puts bytes on the medium, whatever was there: damage.
    pub fn overwrite(&self, name: &str, bytes: &[u8]) {
        let mut content = self.content();
        content.files.push(File { now: bytes.to_vec(), kept: bytes.to_vec(), changed: Vec::new() });
        let inode = content.files.len() - 1;
        content.names.insert(name.to_owned(), inode);
        content.names_kept.insert(name.to_owned(), inode);
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.shared.lock().expect("no test panics while it holds the disk")
    }

    /// The disk for one operation more.
    fn step(&self) -> io::Result<MutexGuard<'_, Content>> {
        let mut content = self.content();
        match content.steps_left {
            Some(0) => return Err(io::Error::other("the power is off")),
            Some(left) => content.steps_left = Some(left - 1),
            None => {}
        }
        match content.until_refusal {
            Some(0) => {
                content.until_refusal = None;
                return Err(io::ErrorKind::StorageFull.into());
            }
            Some(left) => content.until_refusal = Some(left - 1),
            None => {}
        }
        Ok(content)
    }
}

impl Content {
    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        let inode = *self.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(&mut self.files[inode])
    }

    fn renamed(&mut self) {
        self.names_changed.push(self.names.clone());
    }
}

impl File {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.changed.push(change);
    }

    fn cut_power(&mut self, rng: &mut Rng) {
        for change in std::mem::take(&mut self.changed) {
            match change {
                Change::Write(offset, bytes) if rng.bool() => {
                    Change::torn(offset, &bytes, rng, &mut self.kept);
                }
                Change::Length(length) if rng.bool() => Change::Length(length).apply(&mut self.kept),
                _ => {}
            }
        }
        self.now = self.kept.clone();
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Length(length) => content.resize(*length, 0),
            Self::Write(offset, bytes) => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
        }
    }

    /// Some run of the bytes arrives; the length of all of them may be there without them.
    fn torn(offset: usize, bytes: &[u8], rng: &mut Rng, content: &mut Vec<u8>) {
        if rng.bool() && content.len() < offset + bytes.len() {
            content.resize(offset + bytes.len(), 0);
        }
        let from = if rng.bool() { 0 } else { rng.usize(0..=bytes.len()) };
        let to = if rng.bool() { bytes.len() } else { rng.usize(from..=bytes.len()) };
        Self::Write(offset + from, bytes[from..to].to_vec()).apply(content);
    }
}

impl Disk for MemoryDisk {
    fn read(&self, name: &str) -> Option<(Vec<u8>, Option<io::Error>)> {
        Some((self.content().file(name).ok()?.now.clone(), None))
    }

    fn create(&self, name: &str) -> io::Result<()> {
        let mut content = self.step()?;
        if let Ok(file) = content.file(name) {
            file.change(Change::Length(0));
            return Ok(());
        }
        content.files.push(File::default());
        let inode = content.files.len() - 1;
        content.names.insert(name.to_owned(), inode);
        content.renamed();
        Ok(())
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        // A power cut may come in the middle of it: the file has it before the operation ends.
        if let Ok(file) = self.content().file(name) {
            file.change(Change::Write(offset, bytes.to_vec()));
        }
        self.step()?.file(name).map(drop)
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.step()?.file(name)?.change(Change::Length(length));
        Ok(())
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut content = self.step()?;
        let file = content.file(name)?;
        file.kept = file.now.clone();
        file.changed.clear();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut content = self.step()?;
        let inode = content.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        content.names.insert(to.to_owned(), inode);
        content.renamed();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut content = self.step()?;
        if content.names.remove(name).is_some() {
            content.renamed();
        }
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut content = self.step()?;
        content.names_kept = content.names.clone();
        content.names_changed.clear();
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.content().names.keys().cloned().collect())
    }
}

/// What every disk does.
///
/// # Panics
/// When it does not.
#[cfg(test)]
pub(crate) fn contract(disk: &dyn Disk) {
    let read = |name: &str| disk.read(name).map(|(bytes, _)| bytes);
    assert_eq!(read("a"), None);
    assert!(
        disk.write_at("a", 0, b"x").is_err() && disk.truncate("a", 0).is_err() && disk.sync("a").is_err()
    );
    disk.write_new("a", b"first").unwrap();
    disk.append("a", 5, b" second").unwrap();
    assert_eq!(read("a").unwrap(), b"first second");
    disk.truncate("a", 5).unwrap();
    disk.replace("b", b"other").unwrap();
    disk.rename("a", "b").unwrap();
    assert_eq!((read("a"), read("b").unwrap()), (None, b"first".to_vec()));
    disk.create("b").unwrap();
    assert_eq!(read("b").unwrap(), b"");
    assert_eq!(disk.names().unwrap(), ["b"]);
    disk.remove("b").unwrap();
    disk.remove("b").unwrap();
    disk.sync_names().unwrap();
    assert_eq!(disk.names().unwrap(), [] as [&str; 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_in_memory_passes_the_contract() {
        contract(&MemoryDisk::default());
    }

    #[test]
    fn what_was_synced_survives_and_the_rest_only_sometimes() {
        let outcomes = (0..64).map(|seed| {
            let disk = MemoryDisk::default();
            disk.write_new("a", b"kept").unwrap();
            disk.write_at("a", 4, b"+lost").unwrap();
            disk.create("b").unwrap();
            disk.cut_power(&mut Rng::with_seed(seed));
            let (a, _) = disk.read("a").unwrap();
            assert!(a.starts_with(b"kept"));
            (a.len() > 4, disk.read("b").is_some())
        });
        let seen: std::collections::BTreeSet<(bool, bool)> = outcomes.collect();
        assert_eq!(seen.len(), 4, "each mixture comes about");
    }

    #[test]
    fn a_replaced_file_is_the_old_one_or_the_new_one_at_every_cut() {
        for seed in 0..64 {
            for steps in 0..8 {
                let disk = MemoryDisk::default();
                disk.replace("a", b"old").unwrap();
                disk.fail_after(steps);
                let done = disk.replace("a", b"new one").is_ok();
                disk.cut_power(&mut Rng::with_seed(seed));
                let (found, _) = disk.read("a").unwrap();
                assert!(found == b"new one" || (!done && found == b"old"), "{found:?} after {steps} steps");
            }
        }
    }
}
