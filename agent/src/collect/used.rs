//! When each image was used last, also over a restart of the agent: who was not used for longest goes first.
//!
//! An image is used while a container has it or the document names it. Written only when one begins or ceases to be
//! used; a file that is lost makes everything as if used at the start.

use crate::store::StateError;
use edgeloom_disk::{Unsealed, seal, unseal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Some hundred bytes an image.
const BYTES_MAX: u64 = 4 << 20;

/// By image id: seconds since 1970 of the last use; none while it is used.
type Record = BTreeMap<String, Option<u64>>;

/// The record and its file.
#[derive(Debug)]
pub(crate) struct LastUse {
    path: PathBuf,
    record: Record,
}

impl LastUse {
    /// What was used when the agent ended was used until now, for all that is known.
    pub(crate) fn open(state_dir: &Path, now_s: u64) -> Self {
        let path = file(state_dir);
        let bytes = edgeloom_disk::read(&path, BYTES_MAX).ok().flatten().unwrap_or_default();
        let mut record = match unseal(&bytes) {
            Unsealed::Sound(text) => serde_json::from_slice::<Record>(text).unwrap_or_default(),
            Unsealed::Bare(_) | Unsealed::Damaged { .. } => Record::new(),
        };
        record.values_mut().for_each(|used_s| *used_s = Some(used_s.unwrap_or(now_s)));
        Self { path, record }
    }

    /// Takes in which images there are, and whether each is used now. One that is new was used when it came, and a use
    /// that is still to come, by a clock that was set back, is now.
    pub(crate) fn note(&mut self, images: impl Iterator<Item = (String, bool)>, now_s: u64) {
        let next: Record = images
            .map(|(id, used)| {
                let before = self.record.get(&id).copied().flatten();
                (id, if used { None } else { Some(before.unwrap_or(now_s).min(now_s)) })
            })
            .collect();
        if next != self.record {
            self.record = next;
            if let Err(error) = self.save() {
                tracing::debug!(%error, "last uses of images are not kept");
            }
        }
    }

    /// Seconds since 1970; none while it is used, or unknown.
    pub(crate) fn of(&self, id: &str) -> Option<u64> {
        self.record.get(id).copied().flatten()
    }

    fn save(&self) -> Result<(), StateError> {
        let bytes = serde_json::to_vec(&self.record).expect("texts and numbers");
        let written = edgeloom_disk::replace(&self.path, &seal(&bytes));
        written.map_err(|source| StateError::Write { path: self.path.clone(), source })
    }
}

/// Forgets it.
pub(crate) fn remove(state_dir: &Path) -> Result<(), StateError> {
    let path = file(state_dir);
    edgeloom_disk::remove(&path).map_err(|source| StateError::Write { path, source })
}

fn file(state_dir: &Path) -> PathBuf {
    state_dir.join("images.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(uses: &mut LastUse, images: &[(&str, bool)], now_s: u64) {
        uses.note(images.iter().map(|(id, used)| ((*id).to_owned(), *used)), now_s);
    }

    #[test]
    fn last_use_is_when_it_ceased_to_be_used_and_outlives_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let mut uses = LastUse::open(folder.path(), 10);
        note(&mut uses, &[("a", true), ("b", false), ("c", true)], 100);
        note(&mut uses, &[("a", false), ("b", false), ("c", true)], 200);
        note(&mut uses, &[("a", false), ("b", false), ("c", true)], 300);
        assert_eq!(["a", "b", "c"].map(|id| uses.of(id)), [Some(200), Some(100), None]);
        let mut uses = LastUse::open(folder.path(), 400);
        note(&mut uses, &[("a", false), ("b", true), ("c", false)], 500);
        assert_eq!(["a", "b", "c"].map(|id| uses.of(id)), [Some(200), None, Some(400)]);
        note(&mut uses, &[("b", true)], 600);
        note(&mut uses, &[("a", false), ("b", true)], 700);
        assert_eq!(uses.of("a"), Some(700), "it came anew");
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_nothing_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let mut uses = LastUse::open(folder.path(), 9_000_000);
        note(&mut uses, &[("a", false)], 9_000_000);
        note(&mut uses, &[("a", false)], 100);
        note(&mut uses, &[("a", false)], 200);
        assert_eq!(uses.of("a"), Some(100));
    }

    #[test]
    fn a_damaged_record_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut uses = LastUse::open(folder.path(), 10);
        note(&mut uses, &[("a", false)], 100);
        let mut bytes = std::fs::read(file(folder.path())).unwrap();
        bytes[3] ^= 1;
        std::fs::write(file(folder.path()), bytes).unwrap();
        assert_eq!(LastUse::open(folder.path(), 10).of("a"), None);
        remove(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
