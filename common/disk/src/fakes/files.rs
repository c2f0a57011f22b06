//! Real files as a fault leaves them: cut, with a flipped bit, or between two states.
//!
//! For state that is kept by others' code, which no disk in memory can stand under.

use fastrand::Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a drive writes whole: a sector.
const SECTOR_BYTES: usize = 512;

/// Every file below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    folder: PathBuf,
    contents: BTreeMap<PathBuf, Vec<u8>>,
}

impl Files {
    /// The files as they are.
    ///
    /// # Panics
    /// When one of them does not read.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        let mut files = Self { folder: folder.to_owned(), contents: BTreeMap::new() };
        files.add(folder);
        files
    }

    fn add(&mut self, folder: &Path) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                self.add(&path);
            } else {
                let content = std::fs::read(&path).unwrap();
                self.contents.insert(path, content);
            }
        }
    }

    /// Puts these files in the place of whatever is there.
    ///
    /// # Panics
    /// When one of them cannot be written.
    pub fn put(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir_all(&self.folder).unwrap();
        for (path, content) in &self.contents {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    /// With one file cut at some byte of what is in use.
    #[must_use]
    pub fn cut(&self, rng: &mut Rng) -> Self {
        self.struck(rng, |content, at, _| content.truncate(at))
    }

    /// With one bit flipped in what is in use.
    #[must_use]
    pub fn flipped(&self, rng: &mut Rng) -> Self {
        self.struck(rng, |content, at, rng| content[at] ^= 1 << rng.u8(0..8))
    }

    fn struck(&self, rng: &mut Rng, strike: impl Fn(&mut Vec<u8>, usize, &mut Rng)) -> Self {
        let mut files = self.clone();
        let filled = files.contents.values_mut().filter(|content| used(content) > 0);
        let mut filled: Vec<&mut Vec<u8>> = filled.collect();
        let which = rng.usize(0..filled.len());
        let content = &mut *filled[which];
        let at = rng.usize(0..used(content));
        strike(content, at, rng);
        files
    }

    /// As a power cut may leave them on the way to a later state when nothing was synced: each sector the old
    /// one or the new one, each file of either length, new files there or not.
    #[must_use]
    pub fn on_the_way_to(&self, later: &Self, rng: &mut Rng) -> Self {
        let mut files = self.clone();
        for (path, new) in &later.contents {
            let Some(old) = files.contents.get_mut(path) else {
                if rng.bool() {
                    files.contents.insert(path.clone(), new.clone());
                }
                continue;
            };
            let length = if rng.bool() { old.len() } else { new.len() };
            old.resize(length, 0);
            for (old, new) in old.chunks_mut(SECTOR_BYTES).zip(new.chunks(SECTOR_BYTES)) {
                if rng.bool() {
                    let common = old.len().min(new.len());
                    old[..common].copy_from_slice(&new[..common]);
                }
            }
        }
        files
    }
}

/// Bytes until only zeros follow: databases keep much empty space at the end.
fn used(content: &[u8]) -> usize {
    content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_as_they_were_and_damage_is_one_file_s() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        std::fs::create_dir_all(folder.join("below")).unwrap();
        std::fs::write(folder.join("a"), [7; 2000]).unwrap();
        std::fs::write(folder.join("below/b"), [0; 9]).unwrap();
        let whole = Files::of(&folder);
        let mut rng = Rng::with_seed(1);
        for _ in 0..50 {
            for damaged in [whole.cut(&mut rng), whole.flipped(&mut rng)] {
                damaged.put();
                assert_eq!(Files::of(&folder), damaged);
                assert_ne!(damaged.contents[&folder.join("a")], [7; 2000]);
                assert_eq!(damaged.contents[&folder.join("below/b")], [0; 9], "nothing of it is in use");
            }
        }
        std::fs::write(folder.join("a"), [8; 3000]).unwrap();
        whole.put();
        assert_eq!(Files::of(&folder), whole);
    }

    #[test]
    fn between_two_states_sectors_are_of_either() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("a"), [1; 4 * SECTOR_BYTES]).unwrap();
        let old = Files::of(place.path());
        std::fs::write(place.path().join("a"), [2; 8 * SECTOR_BYTES]).unwrap();
        let between = old.on_the_way_to(&Files::of(place.path()), &mut Rng::with_seed(3));
        let content = &between.contents[&place.path().join("a")];
        assert!(content.contains(&1) && content.contains(&2));
        assert!(content.chunks(SECTOR_BYTES).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    }
}
