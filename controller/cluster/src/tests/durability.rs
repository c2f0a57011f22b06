//! The state directory under damage: everything comes back, or the start is refused with what is missing;
//! and what an operator can do then.

use super::world::{World, order};
use crate::directory::{Extent, repair};
use crate::documents::Documents;
use crate::error::StartError;
use crate::journal::{COPIES, read};
use crate::model::Model;
use crate::rebuild::{Rebuilt, rebuild};
use crate::salvage::salvage;
use crate::state::State;
use crate::transfer::{Existing, TransferError, export, import};
use edgeloom_common::ids::{ClusterId, JobName};
use edgeloom_common::view::JobState;
use edgeloom_disk::fakes::{Files, MemoryDisk};
use fastrand::Rng;
use std::path::Path;

fn cluster() -> ClusterId {
    "home".parse().unwrap()
}

/// A cluster that has accepted two jobs and stopped one of them.
fn lived() -> World {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    world.owner.submit(order("b")).unwrap();
    world.settle();
    world.owner.stop(&"b".parse().unwrap()).unwrap();
    world.settle();
    assert_eq!(world.owner.model().jobs.len(), 1);
    world
}

/// Its journal, on a disk of its own, and the state that it leads to.
fn journaled() -> (Vec<u8>, Model) {
    let world = lived();
    (std::fs::read(world.path().join(COPIES[0])).unwrap(), world.owner.model().clone())
}

fn disk(contents: [&[u8]; 2]) -> MemoryDisk {
    let disk = MemoryDisk::default();
    COPIES.iter().zip(contents).for_each(|(name, content)| disk.overwrite(name, content));
    disk
}

fn flipped(content: &[u8], bit: usize) -> Vec<u8> {
    let mut content = content.to_vec();
    content[bit / 8] ^= 1 << (bit % 8);
    content
}

/// Where in the journal the record of this kind lies that `which` counts to.
fn position(content: &[u8], kind: &str, which: usize) -> usize {
    let name = format!("{{\"{kind}\"");
    let found = content.windows(name.len()).enumerate().filter(|(_, window)| *window == name.as_bytes());
    found.map(|(at, _)| at).nth(which).unwrap()
}

/// Damages both copies in the same place, so that the record there is lost.
fn strike(path: &Path, kind: &str, which: usize) {
    for name in COPIES {
        let file = path.join(name);
        let content = std::fs::read(&file).unwrap();
        let at = position(&content, kind, which);
        std::fs::write(&file, flipped(&content, at * 8)).unwrap();
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn damage_to_one_copy_changes_nothing_in_the_state() {
    let (whole, model) = journaled();
    let mut rng = Rng::with_seed(1);
    for _ in 0..200 {
        let cut = &whole[..rng.usize(0..whole.len())];
        let flip = flipped(&whole, rng.usize(0..whole.len() * 8));
        for struck in [cut, &flip] {
            for contents in [[struck, whole.as_slice()], [whole.as_slice(), struck]] {
                let rebuilt = rebuild(&read(&disk(contents)), None).unwrap();
                assert_eq!(rebuilt.model, model);
            }
        }
    }
}

#[test]
fn damage_to_both_copies_is_told_and_what_is_left_is_sound() {
    let (whole, model) = journaled();
    let mut rng = Rng::with_seed(2);
    let mut lost = 0;
    for _ in 0..200 {
        let bit = rng.usize(0..whole.len() * 8);
        let both = flipped(&whole, bit);
        let found = read(&disk([&both, &both]));
        let Err(StartError::Lost(loss)) = rebuild(&found, None) else {
            panic!("bit {bit} is lost and nobody says so")
        };
        let left = salvage(&found, None, *loss).unwrap();
        assert!(left.model.regain.is_some());
        lost += usize::from(left.model.jobs != model.jobs);
    }
    assert!(lost > 0, "no job was ever struck");
}

#[test]
fn where_both_copies_lack_a_record_the_store_stands_in() {
    let world = lived();
    let (path, model) = (world.path().to_owned(), world.owner.model().clone());
    let world = world.restart_after(|path| strike(path, "Committed", 0));
    assert_eq!(*world.owner.model(), model);
    assert!(names(&path).iter().any(|name| name == "journal.damaged-1"));
    let world = world.restart_after(|path| std::fs::remove_dir_all(path.join("store")).unwrap());
    assert_eq!(*world.owner.model(), model, "the journal is whole again");
}

#[test]
fn a_lost_record_refuses_the_start_until_it_is_repaired() {
    let world = lived();
    let epoch = world.owner.model().epoch;
    let mut world = world.restart_after(|path| {
        std::fs::remove_dir_all(path.join("store")).unwrap();
        strike(path, "Committed", 0);
        let before = names(path);
        let error = State::open(path).unwrap_err();
        assert!(matches!(error, StartError::Lost(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("repair") && text.contains("Published") && text.contains("record "), "{text}");
        let told = repair(path, Extent::Look).unwrap().to_string();
        assert!(told.contains("jobs that are there: 1 (a)"), "{told}");
        let logs: Vec<String> = names(path).into_iter().filter(|name| name.starts_with("journal")).collect();
        assert_eq!(logs, COPIES, "{before:?}");
        assert!(State::open(path).is_err(), "a look repairs nothing");
        repair(path, Extent::Replace).unwrap();
        assert_eq!(names(path).iter().filter(|name| name.contains("damaged-1")).count(), 2);
    });
    world.connect();
    world.show();
    world.settle();
    assert!(world.owner.model().epoch > epoch);
    assert_eq!(world.owner.job(&"a".parse().unwrap()).unwrap().state, JobState::Running);
    assert!(world.held.values().all(|held| held.epoch > epoch), "nodes follow the repaired state");
}

#[test]
fn a_repair_names_jobs_of_which_the_acceptance_is_lost_and_they_come_back() {
    let world = lived();
    let mut told = String::new();
    let before = world.held.clone();
    let mut world = world.restart_after(|path| {
        std::fs::remove_dir_all(path.join("store")).unwrap();
        strike(path, "Accepted", 0);
        told = repair(path, Extent::Replace).unwrap().to_string();
    });
    assert!(told.contains("from the nodes that run them: a\n"), "{told}");
    assert!(world.owner.model().jobs.is_empty());
    world.connect();
    world.show();
    world.settle();
    assert_eq!(world.owner.job(&"a".parse().unwrap()).unwrap().state, JobState::Running);
    let containers = |held: &Documents| -> Vec<_> { held.values().map(|it| it.containers.clone()).collect() };
    assert_eq!(containers(&world.held), containers(&before));
}

#[test]
fn a_journal_that_ends_before_the_store_is_refused() {
    let world = lived();
    world.restart_after(|path| {
        COPIES.iter().for_each(|name| std::fs::remove_file(path.join(name)).unwrap());
        let error = State::open(path).unwrap_err();
        assert!(matches!(error, StartError::Lost(_)), "{error}");
        let outcome = repair(path, Extent::Replace).unwrap().to_string();
        assert!(outcome.contains("1 (a)"), "{outcome}");
    });
}

#[test]
fn a_whole_state_is_left_alone_by_a_repair() {
    let world = lived();
    world.restart_after(|path| {
        let before = std::fs::read(path.join(COPIES[0])).unwrap();
        let outcome = repair(path, Extent::Replace).unwrap().to_string();
        assert!(outcome.contains("nothing is lost"), "{outcome}");
        assert_eq!(std::fs::read(path.join(COPIES[0])).unwrap(), before);
    });
}

/// Opens the state over each of these stores: it is always the same.
fn open_over<S: Iterator<Item = Files>>(world: World, stores: impl FnOnce(Files) -> S) {
    let model = world.owner.model().clone();
    world.restart_after(|path| {
        for (round, store) in stores(Files::of(&path.join("store"))).enumerate() {
            store.put();
            assert_eq!(State::open(path).unwrap().model, model, "round {round}");
        }
    });
}

fn cut_and_flip_the_store(rounds: usize) {
    let mut rng = Rng::with_seed(5);
    open_over(lived(), |whole| (0..rounds).flat_map(move |_| [whole.cut(&mut rng), whole.flipped(&mut rng)]));
}

#[test]
fn a_damaged_store_changes_nothing_in_the_state() {
    cut_and_flip_the_store(30);
}

#[test]
#[ignore = "takes a minute; `cargo test -- --ignored a_thousand`"]
fn a_thousand_cuts_and_a_thousand_flipped_bits_of_the_store_change_nothing() {
    cut_and_flip_the_store(1000);
}

#[test]
fn power_cuts_in_the_middle_of_writing_the_store_change_nothing() {
    // A start writes the store, and the end of the one before has it on disk.
    let mut old = None;
    let mut world = lived().restart_after(|path| old = Some(Files::of(&path.join("store"))));
    let old = old.unwrap();
    world.connect();
    world.settle();
    world.owner.submit(order("c")).unwrap();
    world.settle();
    let mut rng = Rng::with_seed(6);
    open_over(world, |new| (0..200).map(move |_| old.on_the_way_to(&new, &mut rng)));
}

#[test]
fn a_second_controller_on_the_directory_is_refused() {
    let world = lived();
    let error = State::open(world.path()).unwrap_err();
    assert!(matches!(error, StartError::Lock(_)));
    assert!(error.to_string().contains("systemctl stop edgeloom-controller"), "{error}");
}

#[test]
fn an_export_of_a_running_controller_is_imported_elsewhere_with_a_higher_epoch() {
    let world = lived();
    let document = export(world.path(), &cluster(), None).unwrap();
    let (held, epoch) = (world.held.clone(), world.owner.model().epoch);
    let mut world = world.restart_after(|path| {
        std::fs::remove_dir_all(path).unwrap();
        import(path, &cluster(), &document, Existing::Refuse).unwrap();
    });
    world.connect();
    world.settle();
    assert_eq!(world.owner.job(&"a".parse().unwrap()).unwrap().state, JobState::Running);
    for (node, before) in &held {
        let now = &world.held[node];
        assert!(now.epoch > epoch);
        assert_eq!((&now.containers, &now.flows), (&before.containers, &before.flows), "nothing moves");
    }
}

#[test]
fn nodes_that_went_on_after_an_export_follow_it_when_it_is_imported() {
    let mut world = lived();
    let document = export(world.path(), &cluster(), None).unwrap();
    world.owner.stop(&"a".parse().unwrap()).unwrap();
    world.settle();
    world.owner.submit(order("c")).unwrap();
    world.settle();
    let mut world = world.restart_after(|path| {
        let refused = import(path, &cluster(), &document, Existing::Refuse).unwrap_err();
        assert!(refused.to_string().contains("--replace"), "{refused}");
        import(path, &cluster(), &document, Existing::Replace).unwrap();
        assert!(names(path).contains(&"journal.damaged-1".to_owned()), "what was there is kept");
    });
    world.connect();
    world.settle();
    let jobs: Vec<&str> = world.owner.model().jobs.keys().map(JobName::as_str).collect();
    assert_eq!(jobs, ["a"]);
    let specs = world.held.values().flat_map(|document| &document.containers);
    assert!(specs.map(|spec| spec.job.as_str()).all(|job| job == "a"));
}

#[test]
fn an_export_that_cannot_be_believed_is_refused() {
    let world = lived();
    let document = export(world.path(), &cluster(), None).unwrap();
    let place = tempfile::tempdir().unwrap();
    let attempt = |document: &[u8]| import(place.path(), &cluster(), document, Existing::Refuse).unwrap_err();
    let mut rng = Rng::with_seed(7);
    for _ in 0..200 {
        let error = attempt(&flipped(&document, rng.usize(0..document.len() * 8)));
        assert!(matches!(error, TransferError::Damaged { .. } | TransferError::Cut), "{error}");
        attempt(&document[..rng.usize(0..document.len())]);
    }
    let other = import(place.path(), &"other".parse().unwrap(), &document, Existing::Refuse).unwrap_err();
    assert!(matches!(other, TransferError::Cluster { .. }), "{other}");
    let text = br#"{"kind":"edgeloom-state","version":9}"#;
    assert!(matches!(attempt(&edgeloom_disk::seal(text)), TransferError::Version { found: 9 }));
    assert!(matches!(attempt(&edgeloom_disk::seal(b"{}")), TransferError::Syntax(_)));
    assert!(names(place.path()).is_empty(), "nothing was begun");
    let empty = export(place.path(), &cluster(), None).unwrap_err();
    assert!(matches!(empty, TransferError::Nothing(_)), "{empty}");
}

#[test]
fn a_store_that_lags_behind_is_brought_up_to_date_by_the_journal() {
    let (whole, model) = journaled();
    let found = read(&disk([&whole, &whole]));
    let half = found.last() / 2;
    let records: Vec<_> = found.after(0).take_while(|record| record.sequence <= half).collect();
    let stored = crate::rebuild::replay(Model::first(), records.into_iter()).unwrap();
    let Rebuilt { model: rebuilt, from } = rebuild(&found, Some((half, stored))).unwrap();
    assert_eq!((rebuilt, from), (model, Some(1)));
}

fn lose_everything(path: &Path) {
    COPIES.iter().for_each(|name| std::fs::remove_file(path.join(name)).unwrap());
    std::fs::remove_dir_all(path.join("store")).unwrap();
}

fn runs(world: &World) -> usize {
    world.held.values().map(|document| document.containers.len()).sum()
}

#[test]
fn a_controller_that_lost_everything_leaves_nodes_as_they_are_and_says_so() {
    let world = lived();
    let before = world.held.clone();
    let mut world = world.restart_after(lose_everything);
    world.connect();
    for _ in 0..6 {
        world.show();
        world.settle();
        world.pass(5_000);
    }
    let node = "n1".parse().unwrap();
    let view = crate::views::node(world.owner.model(), &node, &world.owner.nodes.table[&node]);
    assert!(!view.ready && view.problems.iter().any(|it| it.contains("repair --overrule")), "{view:?}");
    assert_eq!(world.held, before);
    let refused = world.owner.submit(order("c"));
    assert!(refused.is_ok_and(|view| view.state == JobState::Waiting));
    world.settle();
    assert_eq!(world.held, before);
}

#[test]
fn nodes_follow_a_controller_that_lost_everything_once_the_operator_says_so() {
    let world = lived();
    assert!(runs(&world) > 0);
    let mut world = world.restart_after(|path| {
        lose_everything(path);
        repair(path, Extent::Overrule).unwrap();
    });
    world.connect();
    world.show();
    world.settle();
    assert_eq!(runs(&world), 0);
    world.owner.submit(order("c")).unwrap();
    world.settle();
    assert_eq!(world.owner.job(&"c".parse().unwrap()).unwrap().state, JobState::Running);
}

#[test]
fn an_epoch_rises_to_the_time_and_never_falls() {
    // What was lost, or came after an export, may have used the next one.
    let mut model = Model::first();
    model.raise_epoch(1_800_000_000);
    assert_eq!(model.epoch, 1_800_000_000);
    model.raise_epoch(3);
    assert_eq!(model.epoch, 1_800_000_001, "a clock that is behind is no matter");
}
