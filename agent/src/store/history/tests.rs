//! What outlives the agent, and what damage does to it.

use super::writer::EVENTS_MAX;
use super::*;
use crate::engine::fake::spec;
use edgeloom_disk::fakes::Files;
use fastrand::Rng;

/// Of each kind; sled takes tens of milliseconds to open.
const DAMAGES: usize = 100;

fn key() -> TaskKey {
    TaskKey::of(&spec("a", "h"))
}

fn end() -> End {
    let outcome = Outcome { exit_code: Some(0), attempts: 2 };
    End { spec_hash: "h".to_owned(), outcome, started_ms: Some(1), finished_ms: Some(2) }
}

#[test]
fn an_end_with_a_flipped_bit_is_not_believed() {
    let packed = pack_end("a/b", &serde_json::to_vec(&end()).unwrap());
    assert_eq!(unpack_end("a/b", &packed), Some(end()));
    assert_eq!(unpack_end("a/c", &packed), None);
    for bit in 0..packed.len() * 8 {
        let mut flipped = packed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(unpack_end("a/b", &flipped), None);
    }
    assert_eq!(unpack_end("a/b", &[]), None);
}

#[test]
fn restarts_ends_and_events_outlive_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let event = Event::Taken(Version { epoch: 1, generation: 2 });
    {
        let (mut history, lost) = History::open(directory.path());
        assert_eq!(lost, None);
        history.set_restarts(&key(), 3);
        history.set_end(&key(), end());
        history.append(&event);
    }
    let (mut history, _) = History::open(directory.path());
    assert_eq!((history.restarts(&key()), history.end(&key())), (3, Some(&end())));
    history.retain(|other| *other != key());
    drop(history);
    let (history, _) = History::open(directory.path());
    assert_eq!((history.restarts(&key()), history.end(&key())), (0, None));
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

/// What came of opening a damaged history.
#[derive(Default)]
struct Outcomes {
    right: usize,
    begun_anew: usize,
}

/// Opens each of these states; the count is one of the right ones, or none where that is said.
fn open_all(directory: &Path, states: impl Iterator<Item = Files>, right: &[u32]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for (round, state) in states.enumerate() {
        state.put();
        let (mut history, lost) = History::open(directory);
        let count = history.restarts(&key());
        assert!(count == 0 || right.contains(&count), "round {round}: {count}");
        outcomes.right += usize::from(count > 0);
        outcomes.begun_anew += usize::from(lost.is_some());
        history.set_restarts(&key(), 40);
    }
    outcomes
}

/// A history on disk, and the same some changes later.
fn two_states(directory: &Path) -> [Files; 2] {
    [3, 4].map(|count| {
        let (mut history, _) = History::open(directory);
        history.set_restarts(&key(), count);
        (0..40).for_each(|generation| history.append(&Event::Taken(Version { epoch: 1, generation })));
        drop(history);
        Files::of(&directory.join("history"))
    })
}

fn cut_and_flip(rounds: usize) {
    let directory = tempfile::tempdir().unwrap();
    let [whole, _] = two_states(directory.path());
    let mut rng = Rng::with_seed(4);
    let cuts = std::iter::repeat_with(|| whole.cut(&mut rng)).take(rounds);
    let cut = open_all(directory.path(), cuts, &[3]);
    let mut rng = Rng::with_seed(5);
    let flips = std::iter::repeat_with(|| whole.flipped(&mut rng)).take(rounds);
    let flipped = open_all(directory.path(), flips, &[3]);
    assert!(cut.begun_anew > 0 && flipped.right > 0);
}

#[test]
fn cuts_and_flipped_bits_give_the_right_count_or_none() {
    cut_and_flip(DAMAGES);
}

#[test]
#[ignore = "takes a minute; `cargo test -- --ignored a_thousand`"]
fn a_thousand_cuts_and_a_thousand_flipped_bits_give_the_right_count_or_none() {
    cut_and_flip(1000);
}

#[test]
fn power_cuts_between_two_states_give_a_count_that_was_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = two_states(directory.path());
    let mut rng = Rng::with_seed(6);
    let between = std::iter::repeat_with(|| old.on_the_way_to(&new, &mut rng)).take(200);
    let outcomes = open_all(directory.path(), between, &[3, 4]);
    assert!(outcomes.right > 0);
}

#[test]
fn a_disk_that_stands_still_holds_nobody_up_and_the_count_is_right() {
    let directory = tempfile::tempdir().unwrap();
    {
        let (mut history, _) = History::open(directory.path());
        for count in 1..=2000 {
            history.set_restarts(&key(), count);
            assert_eq!(history.restarts(&key()), count, "at once, whatever is written");
        }
        history.append(&Event::Taken(Version { epoch: 1, generation: 2 }));
        // What did not fit is written with the next change.
        assert!(history.events().len() <= EVENTS_MAX);
        history.set_restarts(&key(), 2001);
    }
    let (history, _) = History::open(directory.path());
    assert_eq!(history.restarts(&key()), 2001);
}

#[test]
fn a_damaged_history_is_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    drop(History::open(directory.path()));
    for file in ["db", "conf"] {
        std::fs::write(directory.path().join("history").join(file), b"this is no database").unwrap();
    }
    let (mut history, lost) = History::open(directory.path());
    assert!(lost.is_some());
    history.set_restarts(&key(), 1);
    assert_eq!(history.restarts(&key()), 1);
    drop(history);
    History::remove(directory.path()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
