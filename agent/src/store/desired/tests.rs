//! Cuts, flipped bits and power cuts: a saved document is loaded, or the damage is told.

use super::*;
use crate::engine::fake::{document, spec};
use edgeloom_disk::fakes::MemoryDisk;
use fastrand::Rng;

fn over(disk: &MemoryDisk) -> DesiredFile {
    DesiredFile { directory: "/state".into(), disk: Arc::new(disk.clone()), key: "/state/secrets.key".into() }
}

/// A disk with one document, and that.
fn saved() -> (MemoryDisk, DesiredState) {
    let (disk, wanted) = (MemoryDisk::default(), document(3, vec![spec("a", "h")]));
    over(&disk).save(&wanted, &Confidential::default()).unwrap();
    (disk, wanted)
}

fn loaded(disk: &MemoryDisk) -> (Option<DesiredState>, Option<String>) {
    match over(disk).load() {
        Ok(None) => (None, None),
        Ok(Some(found)) => (Some(found.document), found.remark.map(|remark| remark.to_string())),
        Err(error) => (None, Some(error.to_string())),
    }
}

fn bytes(disk: &MemoryDisk, name: &str) -> Vec<u8> {
    disk.read(name).unwrap().0
}

fn flipped(mut bytes: Vec<u8>, bit: usize) -> Vec<u8> {
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

#[test]
fn what_was_saved_is_loaded_and_a_later_save_replaces_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = DesiredFile::open(directory.path(), directory.path().join("secrets.key")).unwrap();
    assert!(file.load().unwrap().is_none());
    file.save(&document(1, vec![]), &Confidential::default()).unwrap();
    let newer = document(2, vec![spec("a", "h")]);
    file.save(&newer, &Confidential::default()).unwrap();
    let found = file.load().unwrap().unwrap();
    assert_eq!((found.document, found.remark), (newer, None));
    file.remove().unwrap();
    assert!(file.load().unwrap().is_none());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_thousand_cuts_of_one_copy_lose_nothing_and_are_told() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..1000 {
        let (disk, wanted) = saved();
        let name = COPIES[rng.usize(0..2)];
        let whole = bytes(&disk, name);
        // Without its last line it is a file of the version before, and whole.
        let bare = whole.len() - "\ncrc32 01234567\n".len();
        let length = rng.usize(0..whole.len());
        disk.overwrite(name, &whole[..length]);
        let (found, remark) = loaded(&disk);
        assert_eq!(found, Some(wanted));
        assert_eq!(remark.is_some(), length != bare && length != bare + 1, "cut at {length}: {remark:?}");
        assert!(remark.is_none_or(|remark| remark.contains(name)));
        assert_eq!(bytes(&disk, name), whole, "it is whole again");
    }
}

#[test]
fn a_thousand_flipped_bits_of_one_copy_lose_nothing_and_are_told() {
    let mut rng = Rng::with_seed(2);
    for _ in 0..1000 {
        let (disk, wanted) = saved();
        let name = COPIES[rng.usize(0..2)];
        let whole = bytes(&disk, name);
        let damaged = flipped(whole.clone(), rng.usize(0..whole.len() * 8));
        disk.overwrite(name, &damaged);
        let (found, remark) = loaded(&disk);
        assert_eq!(found, Some(wanted));
        assert!(remark.unwrap().contains(name));
        assert_eq!(bytes(&disk, name), whole);
        assert_eq!(bytes(&disk, &damaged_name(name)), damaged, "what was found is kept aside");
    }
}

#[test]
fn damage_to_both_copies_is_told_and_can_be_replaced() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..1000 {
        let (disk, _) = saved();
        for name in COPIES {
            let whole = bytes(&disk, name);
            disk.overwrite(name, &flipped(whole.clone(), rng.usize(0..whole.len() * 8)));
        }
        let (found, remark) = loaded(&disk);
        assert_eq!(found, None);
        assert!(remark.unwrap().contains("until the controller sends one"));
        over(&disk).save(&document(4, vec![]), &Confidential::default()).unwrap();
        assert_eq!(loaded(&disk), (Some(document(4, vec![])), None));
    }
}

#[test]
fn a_file_of_the_version_before_is_loaded() {
    let disk = MemoryDisk::default();
    let wanted = document(3, vec![spec("a", "h")]);
    disk.overwrite(COPIES[0], &serde_json::to_vec(&wanted).unwrap());
    assert_eq!(loaded(&disk), (Some(wanted), None));
    assert_eq!(bytes(&disk, COPIES[0]), bytes(&disk, COPIES[1]));
}

/// What was saved, and what was begun last: a cut leaves something between the two.
#[derive(Default)]
struct Witness {
    saved: u64,
    begun: u64,
}

impl Witness {
    /// Loads, then saves rising generations until the disk fails.
    fn live(&mut self, disk: &MemoryDisk, rng: &mut Rng, story: &str) {
        let file = over(disk);
        let held = file.load().unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(held.as_ref().is_none_or(|held| held.remark.is_none()), "{story}: {held:?}");
        let held = held.map_or(0, |held| held.document.generation);
        assert!((self.saved..=self.begun).contains(&held), "{story}: {held} instead of {}", self.saved);
        for _ in 0..rng.u32(1..6) {
            self.begun += 1;
            match file.save(&document(self.begun, vec![spec("a", "h")]), &Confidential::default()) {
                Ok(()) => self.saved = self.begun,
                Err(_) => return,
            }
        }
    }
}

#[test]
fn two_hundred_lives_with_power_cuts_lose_no_saved_document() {
    let mut saved = 0;
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let disk = MemoryDisk::default();
        let mut witness = Witness::default();
        for life in 0..8 {
            disk.fail_after(rng.u64(0..80));
            witness.live(&disk, &mut rng, &format!("seed {seed}, life {life}"));
            if rng.u8(0..3) == 0 { disk.kill() } else { disk.cut_power(&mut rng) }
        }
        witness.live(&disk, &mut rng, &format!("seed {seed}, at the end"));
        saved += witness.saved;
    }
    assert!(saved > 1_000, "{saved} documents were saved");
}

#[test]
fn values_are_kept_sealed_beside_their_document_and_survive_damage_of_one_copy() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("secrets.key");
    let file = DesiredFile::open(directory.path(), key.clone()).unwrap();
    file.save(&document(1, vec![]), &Confidential::default()).unwrap();
    assert!(!key.exists(), "no key where nothing is to hide");
    let value = edgeloom_common::confidential::Value::new(b"hunter2 hunter2").unwrap();
    let secrets = [("password".parse().unwrap(), value)].into();
    let values = Confidential { secrets, ..Confidential::default() };
    file.save(&document(2, vec![]), &values).unwrap();
    let found = file.load().unwrap().unwrap();
    assert_eq!((found.document, &found.confidential, found.closed), (document(2, vec![]), &values, None));
    let first = directory.path().join(COPIES[0]);
    let whole = std::fs::read(&first).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let at = text.find("sealed").unwrap() + 60;
    std::fs::write(&first, flipped(whole.clone(), at * 8)).unwrap();
    let found = file.load().unwrap().unwrap();
    assert_eq!((&found.confidential, found.remark.is_some()), (&values, true));
    assert_eq!(std::fs::read(&first).unwrap(), whole, "it is whole again");
    std::fs::remove_file(&key).unwrap();
    let found = file.load().unwrap().unwrap();
    assert!(found.confidential.is_empty() && matches!(found.closed, Some(Closed::NoKey(_))));
    Key::create(&key).unwrap();
    let found = file.load().unwrap().unwrap();
    assert!(found.confidential.is_empty() && matches!(found.closed, Some(Closed::Key(_))));
    assert_eq!(found.document, document(2, vec![]), "the document serves all the same");
}
