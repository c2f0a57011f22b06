//! A controller that lost its state, and nodes that give it back.

use super::batches;
use super::world::{World, observed, order};
use crate::copies::CopyKeys;
use crate::directory::{Extent, repair};
use crate::documents::Documents;
use crate::error::SubmitError;
use crate::journal::{self, COPIES};
use crate::model::{Event, Phase};
use crate::nodes::{GATHER_MS, NodeMessage};
use crate::rebuild::event;
use crate::regain::regain;
use edgeloom_common::desired::{DesiredState, ImageRef};
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::prefetch::{Hold, PrefetchOn};
use edgeloom_common::view::JobState;
use edgeloom_disk::Folder;
use std::collections::BTreeMap;
use std::path::Path;

fn job(name: &str) -> JobName {
    name.parse().unwrap()
}

fn node(name: &str) -> NodeId {
    name.parse().unwrap()
}

/// A cluster that runs these jobs.
fn running(jobs: &[&str]) -> World {
    let mut world = World::new();
    for job in jobs {
        world.owner.submit(order(job)).unwrap();
        world.settle();
    }
    world
}

/// Nothing is left of the state, and the operator wants it back from the nodes.
pub(super) fn lose_and_repair(path: &Path) {
    COPIES.iter().for_each(|name| std::fs::remove_file(path.join(name)).unwrap());
    std::fs::remove_dir_all(path.join("store")).unwrap();
    let told = repair(path, Extent::Replace).unwrap().to_string();
    assert!(told.contains("jobs that they run come back"), "{told}");
}

fn come_back(world: &mut World) {
    world.connect();
    world.show();
    world.settle();
}

/// Documents without their versions.
fn contents(held: &Documents) -> Vec<DesiredState> {
    held.values().map(|document| DesiredState { epoch: 0, generation: 0, ..document.clone() }).collect()
}

fn state(world: &World, name: &str) -> Option<JobState> {
    world.owner.job(&job(name)).map(|view| view.state)
}

#[test]
fn everything_comes_back_from_nodes_and_nothing_changes_there() {
    let world = running(&["a", "b"]);
    let (before, jobs) = (world.held.clone(), world.owner.model().jobs.clone());
    let mut world = world.restart_after(lose_and_repair);
    assert!(world.owner.model().jobs.is_empty());
    come_back(&mut world);
    assert_eq!(contents(&world.held), contents(&before));
    let highest = before.values().map(|document| document.epoch).max().unwrap();
    assert!(world.held.values().all(|document| document.epoch > highest), "no older controller is followed");
    for (name, record) in &jobs {
        assert_eq!(state(&world, name.as_str()), Some(JobState::Running));
        let now = &world.owner.model().jobs[name];
        assert_eq!((&now.job, &now.images, &now.addresses), (&record.job, &record.images, &record.addresses));
        assert_eq!(now.plan.as_ref().unwrap().placement, record.plan.as_ref().unwrap().placement);
    }
    world.owner.stop(&job("a")).unwrap();
    world.settle();
    world.owner.submit(order("c")).unwrap();
    world.settle();
    assert_eq!(
        ["a", "b", "c"].map(|name| state(&world, name)),
        [None, Some(JobState::Running), Some(JobState::Running)]
    );
    let world = world.restart();
    assert_eq!(world.owner.model().jobs.len(), 2, "what came back is kept");
}

#[test]
fn images_held_ready_come_back_where_they_were() {
    let mut world = running(&["a"]);
    for (name, on) in [("x", PrefetchOn::All), ("y", PrefetchOn::Nodes(vec![node("n2")]))] {
        let digest = format!("sha256:{name}");
        let image = ImageRef { repository: "r/ahead".to_owned(), digest, name: name.to_owned() };
        world.owner.prefetch(image, on, Hold::Pinned).unwrap();
        world.settle();
    }
    let (before, entries) = (world.held.clone(), world.owner.model().prefetch.clone());
    let mut world = world.restart_after(lose_and_repair);
    assert!(world.owner.model().prefetch.is_empty());
    come_back(&mut world);
    assert_eq!(world.owner.model().prefetch, entries);
    assert_eq!(contents(&world.held), contents(&before));
    world.owner.release("x".to_owned()).unwrap();
    world.settle();
    let world = world.restart();
    assert!(world.owner.model().prefetch.find("x").is_none() && world.held[&node("n2")].prefetch.len() == 1);
}

#[test]
fn nothing_is_decided_until_all_nodes_that_anything_names_have_told() {
    let mut world = running(&["a"]);
    world.dead.insert(node("n3"));
    let mut world = world.restart_after(lose_and_repair);
    come_back(&mut world);
    assert!(matches!(world.owner.submit(order("b")), Err(SubmitError::Gathering)));
    assert!(world.owner.model().jobs.is_empty());
    world.dead.clear();
    come_back(&mut world);
    assert_eq!(state(&world, "a"), Some(JobState::Running));
}

#[test]
fn a_node_that_does_not_come_is_not_waited_for_and_taken_in_later() {
    let mut world = running(&["a"]);
    let before = world.held.clone();
    world.dead.insert(node("n3"));
    let mut world = world.restart_after(lose_and_repair);
    come_back(&mut world);
    world.live(GATHER_MS / 1000 + 1);
    assert!(state(&world, "a").is_some());
    assert_eq!(contents(&world.held), contents(&before), "routes to it stay");
    world.bring_back("n3");
    world.live(3);
    assert_eq!(state(&world, "a"), Some(JobState::Running));
    assert_eq!(contents(&world.held), contents(&before));
}

#[test]
fn a_job_that_was_stopped_while_a_node_was_away_does_not_come_back() {
    let mut world = running(&["a", "b"]);
    world.cut_off("n3");
    world.owner.stop(&job("a")).unwrap();
    world.settle();
    // Until n3 is lost to it, the job is on its way out.
    world.live(75);
    assert!(state(&world, "a").is_none());
    let runs_a = |document: &DesiredState| document.containers.iter().any(|spec| spec.job == job("a"));
    assert!(runs_a(&world.held[&node("n3")]), "n3 knows nothing of it");
    world.dead.clear();
    let mut world = world.restart_after(lose_and_repair);
    come_back(&mut world);
    world.live(3);
    assert_eq!((state(&world, "a"), state(&world, "b")), (None, Some(JobState::Running)));
    assert!(!world.held.values().any(runs_a));
}

/// The state as it is now, to be put back by [`put_back`].
fn keep(world: &World) -> Vec<(&'static str, Vec<u8>)> {
    COPIES.map(|name| (name, std::fs::read(world.dir.path().join(name)).unwrap())).to_vec()
}

/// An old copy of the state is all there is.
fn put_back(old: Vec<(&'static str, Vec<u8>)>) -> impl FnOnce(&Path) {
    move |path| {
        std::fs::remove_dir_all(path.join("store")).unwrap();
        old.into_iter().for_each(|(name, bytes)| std::fs::write(path.join(name), bytes).unwrap());
        repair(path, Extent::Regain).unwrap();
    }
}

#[test]
fn a_job_that_was_stopped_after_what_is_left_of_the_state_does_not_come_back() {
    let mut world = running(&["a", "b"]);
    let old = keep(&world);
    world.owner.stop(&job("a")).unwrap();
    world.settle();
    world.owner.submit(order("c")).unwrap();
    world.settle();
    let before = world.held.clone();
    let mut world = world.restart_after(put_back(old));
    assert!(state(&world, "a").is_some(), "the old state has it");
    come_back(&mut world);
    world.live(3);
    assert_eq!(
        ["a", "b", "c"].map(|name| state(&world, name)),
        [None, Some(JobState::Running), Some(JobState::Running)]
    );
    assert_eq!(contents(&world.held), contents(&before));
    let told = world.owner.events.after(0, Some(&job("a")));
    assert!(told.iter().any(|event| event.text.contains("counts as ended")), "{told:?}");
    assert_eq!(world.restart().owner.model().jobs.len(), 2);
}

/// Both copies of these changes are damaged, and the operator takes what is left.
fn damage(lost: impl Fn(&Event) -> bool) -> impl FnOnce(&Path) {
    move |path| {
        std::fs::remove_dir_all(path.join("store")).unwrap();
        let found = journal::read(&Folder::open(path).unwrap());
        for name in COPIES {
            let mut content = std::fs::read(path.join(name)).unwrap();
            for record in found.after(0).filter(|record| lost(&event(record).unwrap())) {
                let payload = &record.payload[..];
                let at = content.windows(payload.len()).position(|bytes| bytes == payload).unwrap();
                content[at] ^= 1;
            }
            std::fs::write(path.join(name), content).unwrap();
        }
        let told = repair(path, Extent::Replace).unwrap().to_string();
        assert!(told.contains("changes"), "{told}");
    }
}

/// `a` was stopped and `b` has its addresses; of `a` acceptance and plan are left. What `a` is then.
fn after_damage(lost: impl Fn(&Event) -> bool) -> Option<JobState> {
    let mut world = running(&["a"]);
    world.owner.stop(&job("a")).unwrap();
    world.settle();
    world.owner.submit(order("b")).unwrap();
    world.settle();
    let before = world.held.clone();
    let mut world = world.restart_after(damage(lost));
    let left = state(&world, "a");
    come_back(&mut world);
    world.live(3);
    assert_eq!(["a", "b"].map(|name| state(&world, name)), [None, Some(JobState::Running)]);
    assert!(running_at(&world.held) == running_at(&before), "no container, flow or route changes");
    left
}

/// What nodes run, without the copies of jobs, which tell of what was lost.
fn running_at(held: &Documents) -> Vec<DesiredState> {
    contents(held).into_iter().map(|it| DesiredState { copies: BTreeMap::new(), ..it }).collect()
}

/// What tells of an end, and every document.
fn is_trace(event: &Event) -> bool {
    matches!(event, Event::Published { .. } | Event::Stopping { .. } | Event::Gone { .. })
}

#[test]
fn a_job_of_which_the_end_and_every_document_are_lost_does_not_come_back() {
    let of_b = |event: &Event| matches!(event, Event::Accepted(record) if record.job.name == job("b"));
    assert_eq!(after_damage(|event| is_trace(event) || of_b(event)), Some(JobState::Starting));
}

#[test]
fn neither_does_one_that_lost_its_plan_to_a_job_with_its_addresses() {
    assert_eq!(after_damage(is_trace), Some(JobState::Waiting));
}

#[test]
fn nor_one_that_what_is_left_shows_to_have_gone_from_its_nodes() {
    let of_b = |event: &Event| match event {
        Event::Published { documents } => {
            documents.iter().any(|document| document.containers.iter().any(|spec| spec.job == job("b")))
        }
        _ => false,
    };
    assert_eq!(after_damage(|event| is_trace(event) && !of_b(event)), Some(JobState::Waiting));
}

#[test]
fn a_job_that_waited_when_the_state_was_kept_waits_on() {
    let mut world = running(&["a"]);
    world.dead.insert(node("n2"));
    world.owner.submit(order("b")).unwrap();
    world.settle();
    world.pass(10_000);
    world.settle();
    assert_eq!(state(&world, "b"), Some(JobState::Waiting));
    let old = keep(&world);
    world.dead.clear();
    let mut world = world.restart_after(put_back(old));
    come_back(&mut world);
    world.live(30);
    assert_eq!(["a", "b"].map(|name| state(&world, name)), [Some(JobState::Running); 2]);
}

#[test]
fn a_batch_that_ended_after_what_is_left_of_the_state_is_no_job_that_was_stopped() {
    let mut world = batches::started(batches::many(3));
    let old = keep(&world);
    assert_eq!(batches::drain(&mut world).len(), 3);
    let mut world = world.restart_after(put_back(old));
    come_back(&mut world);
    world.live(3);
    assert!(state(&world, "b").is_some());
}

#[test]
fn a_job_that_ended_after_the_repair_does_not_come_back_from_a_late_node() {
    let mut world = running(&["a"]);
    world.dead.insert(node("n3"));
    let mut world = world.restart_after(lose_and_repair);
    come_back(&mut world);
    world.live(GATHER_MS / 1000 + 1);
    world.owner.stop(&job("a")).unwrap();
    world.live(15);
    assert!(state(&world, "a").is_none());
    world.bring_back("n3");
    world.live(3);
    assert!(state(&world, "a").is_none());
    assert!(world.held.values().all(|document| document.containers.is_empty()));
}

#[test]
fn what_others_sealed_does_not_run_here() {
    let world = running(&["a"]);
    let mut world = world.restart_after(lose_and_repair);
    world.owner.settings.keys = CopyKeys::new(&[[8; 32]]);
    come_back(&mut world);
    world.live(3);
    assert!(world.owner.model().jobs.is_empty());
    let told = world.owner.events.after(0, Some(&job("a")));
    assert!(told.iter().any(|event| event.text.contains("run it again")), "{told:?}");
}

#[test]
fn a_document_of_another_node_or_one_that_nobody_asked_for_is_not_taken() {
    let world = running(&["a"]);
    let mut world = world.restart_after(lose_and_repair);
    world.connect();
    let theirs = world.held[&node("n2")].clone();
    let generation = theirs.generation + 7;
    world.owner.observe(&node("n2"), NodeMessage::Held(Box::new(theirs.clone())));
    assert!(world.owner.nodes.table[&node("n2")].held.is_none(), "nobody asked");
    world.owner.observe(&node("n1"), NodeMessage::Observed(observed(&world.held[&node("n1")])));
    world.owner.observe(&node("n1"), NodeMessage::Held(Box::new(theirs)));
    assert!(world.owner.nodes.table[&node("n1")].held.is_none(), "of another node");
    let other = DesiredState { generation, ..world.held[&node("n1")].clone() };
    world.owner.observe(&node("n1"), NodeMessage::Held(Box::new(other)));
    world.show();
    world.settle();
    assert_eq!(state(&world, "a"), Some(JobState::Running), "it is asked again and tells what it shows");
}

#[test]
fn a_job_whose_addresses_others_have_waits_for_new_ones() {
    let (theirs, ours) = (running(&["a"]), running(&["b"]));
    let held = |(node, document): (&NodeId, &DesiredState)| {
        (node.clone(), DesiredState { generation: document.generation + 1000, ..document.clone() })
    };
    let held: Documents = theirs.held.iter().map(held).collect();
    let late = regain(ours.owner.model(), &held, &ours.owner.settings.keys);
    assert_eq!(late.anew, [job("a")]);
    let record = &late.records[0];
    assert_eq!((record.phase, &record.plan, record.addresses.len()), (Phase::Waiting, &None, 0));
    let whereabouts: Vec<_> = record.left.iter().map(|(_, node)| node.as_str()).collect();
    assert_eq!(whereabouts, ["n2", "n1", "n3"], "its containers go before it is placed");
}
