//! Cuts, flipped bits, power cuts and full disks: nothing acknowledged is lost unsaid, nothing is invented.

use super::{COPIES, Found, Journal, JournalError, Loss, read};
use edgeloom_disk::Disk;
use edgeloom_disk::fakes::MemoryDisk;
use fastrand::Rng;

/// A base says all numbers before it; any other record says one.
const BASE: u8 = b'B';

fn is_base(payload: &[u8]) -> bool {
    payload[0] == BASE
}

fn number(value: u32) -> Vec<u8> {
    format!("{{\"Number\":{value}}}").into_bytes()
}

fn base(values: &[u32]) -> Vec<u8> {
    let values = values.iter().flat_map(|value| value.to_le_bytes());
    std::iter::once(BASE).chain(values).collect()
}

/// The numbers that the records say, from the latest base on.
fn said(found: &Found) -> Result<Vec<u32>, Box<Loss>> {
    let from = found.base(is_base);
    found.complete_after(from.saturating_sub(1))?;
    let mut values = Vec::new();
    for record in found.after(from.saturating_sub(1)) {
        if is_base(&record.payload) {
            let words = record.payload[1..].chunks(4).map(|word| word.try_into().unwrap());
            values = words.map(u32::from_le_bytes).collect();
        } else {
            let text = std::str::from_utf8(&record.payload).unwrap();
            values.push(text["{\"Number\":".len()..text.len() - 1].parse().unwrap());
        }
    }
    Ok(values)
}

fn open(disk: &MemoryDisk) -> Result<(Journal, Vec<u32>), JournalError> {
    let found = read(disk);
    let values = said(&found).unwrap_or_else(|loss| panic!("{loss}"));
    let from = found.base(is_base).max(1);
    Ok((Journal::open(Box::new(disk.clone()), &found, from)?, values))
}

/// A journal of twelve records, the fourth of which is a base, and the numbers that it says.
fn written(disk: &MemoryDisk) -> Vec<u32> {
    let (mut journal, _) = open(disk).unwrap();
    let mut values: Vec<u32> = (0..3).collect();
    for value in &values {
        journal.append(&number(*value)).unwrap();
    }
    journal.compact(&base(&values)).unwrap();
    for value in 3..11 {
        journal.append(&number(value)).unwrap();
        values.push(value);
    }
    values
}

fn content(disk: &MemoryDisk, name: &str) -> Vec<u8> {
    disk.read(name).unwrap().0
}

fn flip(disk: &MemoryDisk, name: &str, bit: usize) {
    let mut bytes = content(disk, name);
    bytes[bit / 8] ^= 1 << (bit % 8);
    disk.overwrite(name, &bytes);
}

#[test]
fn records_come_back_and_the_sequence_goes_on_after_compaction() {
    let disk = MemoryDisk::default();
    let values = written(&disk);
    let (mut journal, found) = open(&disk).unwrap();
    assert_eq!((journal.sequence(), found), (12, values));
    assert_eq!(journal.append(&number(99)).unwrap(), 13);
    assert_eq!(content(&disk, COPIES[0]), content(&disk, COPIES[1]));
    assert_eq!(journal.bytes(), content(&disk, COPIES[0]).len() as u64);
}

#[test]
fn a_thousand_cuts_of_one_copy_lose_nothing() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..1000 {
        let disk = MemoryDisk::default();
        let values = written(&disk);
        let name = COPIES[rng.usize(0..2)];
        let whole = content(&disk, name);
        disk.overwrite(name, &whole[..rng.usize(0..whole.len())]);
        let (mut journal, found) = open(&disk).unwrap();
        assert_eq!(found, values);
        assert_eq!(content(&disk, name), whole);
        journal.append(&number(11)).unwrap();
        assert_eq!(open(&disk).unwrap().1.len(), values.len() + 1);
    }
}

#[test]
fn a_thousand_flipped_bits_of_one_copy_lose_nothing() {
    let mut rng = Rng::with_seed(2);
    for _ in 0..1000 {
        let disk = MemoryDisk::default();
        let values = written(&disk);
        let name = COPIES[rng.usize(0..2)];
        let whole = content(&disk, name);
        flip(&disk, name, rng.usize(0..whole.len() * 8));
        assert_eq!(open(&disk).unwrap().1, values);
        assert_eq!(content(&disk, name), whole);
    }
}

#[test]
fn a_copy_that_is_gone_is_written_anew() {
    for name in COPIES {
        let disk = MemoryDisk::default();
        let values = written(&disk);
        disk.remove(name).unwrap();
        assert_eq!(open(&disk).unwrap().1, values);
        assert_eq!(content(&disk, COPIES[0]), content(&disk, COPIES[1]));
    }
}

#[test]
fn a_cut_of_both_copies_is_always_said() {
    let disk = MemoryDisk::default();
    written(&disk);
    let whole = content(&disk, COPIES[0]);
    for length in 0..whole.len() {
        COPIES.iter().for_each(|name| disk.overwrite(name, &whole[..length]));
        let loss = said(&read(&disk)).unwrap_err();
        assert_eq!(loss.missing.last().unwrap().1, None, "cut at {length}: {loss}");
    }
}

#[test]
fn a_thousand_flipped_bits_in_both_copies_are_said_or_lose_nothing() {
    let mut rng = Rng::with_seed(3);
    let (mut lost, mut kept) = (0, 0);
    for _ in 0..1000 {
        let disk = MemoryDisk::default();
        let values = written(&disk);
        let bits = content(&disk, COPIES[0]).len() * 8;
        COPIES.iter().for_each(|name| flip(&disk, name, rng.usize(0..bits)));
        match said(&read(&disk)) {
            Ok(found) => {
                assert_eq!(found, values);
                assert_eq!(open(&disk).unwrap().1, values);
                kept += 1;
            }
            Err(loss) => {
                assert!(!loss.missing.is_empty());
                lost += 1;
            }
        }
    }
    assert!(lost > 50 && kept > 500, "{lost} were told as lost, {kept} kept");
}

#[test]
fn what_both_copies_lack_is_named() {
    let disk = MemoryDisk::default();
    written(&disk);
    let payload = number(6);
    let whole = content(&disk, COPIES[0]);
    let at = whole.windows(payload.len()).position(|window| window == payload).unwrap();
    COPIES.iter().for_each(|name| flip(&disk, name, at * 8));
    let before = COPIES.map(|name| content(&disk, name));
    let text = said(&read(&disk)).unwrap_err().to_string();
    let (from, to) = (at - 16, at + payload.len());
    assert_eq!(
        text,
        format!(
            "acknowledged changes cannot be read: record 8; 4 before them are sound; behind are 4 Number \
             (records 9 to 12); journal: bytes {from} to {to} are no records; \
             journal.copy: bytes {from} to {to} are no records"
        )
    );
    assert_eq!(COPIES.map(|name| content(&disk, name)), before, "nothing is changed");
}

#[test]
fn a_damaged_file_is_kept_aside() {
    let disk = MemoryDisk::default();
    written(&disk);
    for round in 1..3 {
        flip(&disk, COPIES[1], 8);
        let damaged = content(&disk, COPIES[1]);
        open(&disk).unwrap();
        assert_eq!(content(&disk, &format!("journal.copy.damaged-{round}")), damaged);
    }
}

#[test]
fn a_file_of_the_version_before_opens() {
    let disk = MemoryDisk::default();
    let old: Vec<u8> = (1..4).flat_map(|value| super::encode(value, &number(7)).unwrap()).collect();
    disk.overwrite(COPIES[0], &old);
    assert_eq!(open(&disk).unwrap().1, [7, 7, 7]);
    // A torn end is no loss there.
    let disk = MemoryDisk::default();
    disk.overwrite(COPIES[0], &old[..old.len() - 1]);
    assert_eq!(open(&disk).unwrap().1, [7, 7]);
}

#[test]
fn a_refused_write_is_taken_back_and_the_next_one_holds() {
    for refused in 0..4 {
        let disk = MemoryDisk::default();
        let values = written(&disk);
        let (mut journal, _) = open(&disk).unwrap();
        disk.refuse_after(refused);
        assert!(journal.append(&number(11)).is_err());
        assert_eq!(journal.append(&number(12)).unwrap(), 13);
        assert_eq!(open(&disk).unwrap().1, [values, vec![12]].concat());
    }
}

#[test]
fn a_refused_compaction_changes_nothing() {
    for refused in 0..8 {
        let disk = MemoryDisk::default();
        let values = written(&disk);
        let (mut journal, _) = open(&disk).unwrap();
        disk.refuse_after(refused);
        assert!(journal.compact(&base(&values)).is_err());
        assert!(journal.append(&number(11)).is_ok());
        assert_eq!(open(&disk).unwrap().1.len(), values.len() + 1);
    }
}

/// What a controller knows beside its disk.
#[derive(Default)]
struct Witness {
    acknowledged: Vec<u32>,
    /// Neither acknowledged nor refused when the end came: may be there.
    open: Option<u32>,
    next: u32,
}

impl Witness {
    fn check(&self, found: &[u32], story: &str) {
        let with = [self.acknowledged.clone(), self.open.into_iter().collect()].concat();
        assert!(found == self.acknowledged || found == with, "{story}: {found:?} instead of {with:?}");
    }

    /// Appends and compacts until the disk fails or enough is done.
    fn live(&mut self, disk: &MemoryDisk, rng: &mut Rng, story: &str) {
        let found = read(disk);
        let values = said(&found).unwrap_or_else(|loss| panic!("{story}: {loss}"));
        self.check(&values, story);
        let from = found.base(is_base).max(1);
        let Ok(mut journal) = Journal::open(Box::new(disk.clone()), &found, from) else { return };
        // From here on it is on the medium, whatever it was before.
        (self.acknowledged, self.open) = (values, None);
        for _ in 0..rng.u32(1..20) {
            if rng.u8(0..8) == 0 {
                let _ = journal.compact(&base(&self.acknowledged));
                continue;
            }
            let value = self.next;
            self.next += 1;
            match journal.append(&number(value)) {
                Ok(_) => self.acknowledged.push(value),
                Err(_) if !journal.broken => {}
                Err(JournalError::Broken) => return,
                Err(_) => {
                    self.open = Some(value);
                    return;
                }
            }
        }
    }
}

#[test]
fn two_hundred_lives_with_power_cuts_lose_nothing_acknowledged() {
    let (mut acknowledged, mut cuts) = (0, 0);
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let disk = MemoryDisk::default();
        let mut witness = Witness::default();
        for life in 0..8 {
            if rng.bool() {
                disk.fail_after(rng.u64(0..80));
            } else {
                disk.refuse_after(rng.u64(0..80));
            }
            witness.live(&disk, &mut rng, &format!("seed {seed}, life {life}"));
            if rng.u8(0..3) == 0 {
                disk.kill();
            } else {
                disk.cut_power(&mut rng);
                cuts += 1;
            }
        }
        witness.live(&disk, &mut rng, &format!("seed {seed}, at the end"));
        acknowledged += witness.acknowledged.len();
    }
    assert!(acknowledged > 5_000 && cuts > 1_000, "{acknowledged} records over {cuts} power cuts");
}
