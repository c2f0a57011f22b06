//! What outlives the agent, and what damage does to it.

use super::*;
use crate::engine::fake::spec;

/// sled takes tens of milliseconds to open, so fewer than elsewhere.
const DAMAGES: usize = 100;

fn key() -> TaskKey {
    TaskKey::of(&spec("a", "h"))
}

#[test]
fn restarts_and_events_outlive_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let event = Event::Taken(Version { epoch: 1, generation: 2 });
    {
        let (history, lost) = History::open(directory.path());
        assert_eq!(lost, None);
        history.set_restarts(&key(), 3);
        history.append(&event);
    }
    let (history, _) = History::open(directory.path());
    assert_eq!(history.restarts(&key()), 3);
    assert_eq!(history.events(), [event]);
}

#[test]
fn the_oldest_events_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let (history, _) = History::open(directory.path());
    for generation in 0..300 {
        history.append(&Event::Taken(Version { epoch: 1, generation }));
    }
    let events = history.events();
    assert_eq!(events.len(), EVENTS_MAX);
    assert_eq!(events[0], Event::Taken(Version { epoch: 1, generation: 300 - 256 }));
}

#[test]
fn a_count_with_a_flipped_bit_is_not_believed() {
    let packed = pack("a/b", 3);
    assert_eq!(unpack("a/b", &packed), Some(3));
    assert_eq!(unpack("a/c", &packed), None);
    for bit in 0..64 {
        let mut flipped = packed;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(unpack("a/b", &flipped), None, "bit {bit}");
    }
}

/// Each file of the history with its content.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.push((entry.clone(), std::fs::read(entry).unwrap()));
        }
    }
    found
}

#[test]
fn cuts_and_flipped_bits_give_the_right_count_or_none() {
    let directory = tempfile::tempdir().unwrap();
    {
        let (history, _) = History::open(directory.path());
        history.set_restarts(&key(), 3);
        (0..40).for_each(|generation| history.append(&Event::Taken(Version { epoch: 1, generation })));
    }
    let whole = files(&directory.path().join("history"));
    let mut rng = fastrand::Rng::with_seed(4);
    let (mut right, mut begun_anew) = (0, 0);
    for round in 0..DAMAGES {
        let _ = std::fs::remove_dir_all(directory.path().join("history"));
        let struck = rng.usize(0..whole.len());
        for (index, (path, content)) in whole.iter().enumerate() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut content = content.clone();
            if index == struck && !content.is_empty() {
                // Most of sled's file is empty pages.
                let used = content.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
                let at = rng.usize(0..used);
                if round % 2 == 0 { content[at] ^= 1 << rng.u8(0..8) } else { content.truncate(at) }
            }
            std::fs::write(path, content).unwrap();
        }
        let (history, lost) = History::open(directory.path());
        match history.restarts(&key()) {
            3 => right += 1,
            count => assert_eq!(count, 0, "round {round}"),
        }
        begun_anew += u32::from(lost.is_some());
        history.set_restarts(&key(), 4);
    }
    assert!(right > 0 && begun_anew > 0, "{right} right, {begun_anew} begun anew");
}

#[test]
fn a_damaged_history_is_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    drop(History::open(directory.path()));
    for file in ["db", "conf"] {
        std::fs::write(directory.path().join("history").join(file), b"this is no database").unwrap();
    }
    let (history, lost) = History::open(directory.path());
    assert!(lost.is_some());
    history.set_restarts(&key(), 1);
    assert_eq!(history.restarts(&key()), 1);
    drop(history);
    History::remove(directory.path()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
