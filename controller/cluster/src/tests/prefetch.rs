//! Images that nodes hold ready.

use super::world::{World, inventory, observed, order};
use crate::error::PrefetchError;
use crate::nodes::NodeMessage;
use crate::prefetch::ENTRIES_MAX;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::ids::NodeId;
use edgeloom_common::prefetch::{Hold, PrefetchOn};
use edgeloom_common::report::{
    CollectedImage, Links, Observed, PrefetchPhase, PrefetchState, PullState, Status,
};
use edgeloom_common::units::Bytes;

fn node(name: &str) -> NodeId {
    name.parse().unwrap()
}

fn image(name: &str) -> ImageRef {
    ImageRef { repository: "r/ahead".to_owned(), digest: format!("sha256:{name}"), name: name.to_owned() }
}

/// What each node's document holds ready: name and pin.
fn held(world: &World, name: &str) -> Vec<(String, bool)> {
    let document = &world.held[&node(name)];
    document.prefetch.iter().map(|it| (it.image.name.clone(), it.pinned)).collect()
}

fn prefetch(world: &mut World, name: &str, on: PrefetchOn, hold: Hold) {
    world.owner.prefetch(image(name), on, hold).unwrap();
    world.settle();
}

#[test]
fn every_node_holds_it_ready_those_to_come_too_and_a_restart_forgets_nothing() {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    prefetch(&mut world, "x", PrefetchOn::Same, Hold::Pinned);
    prefetch(&mut world, "y", PrefetchOn::Nodes(vec![node("n2")]), Hold::Unpinned);
    let [x, y] = [("x".to_owned(), true), ("y".to_owned(), false)];
    assert_eq!(held(&world, "n2"), [x.clone(), y]);
    assert_eq!(held(&world, "n1"), [x]);
    let mut world = world.restart();
    let new = node("n9");
    world.owner.observe(&new, NodeMessage::Status(Status::new(true, 1)));
    world.owner.observe(&new, NodeMessage::Inventory(Box::new(inventory())));
    world.owner.observe(&new, NodeMessage::Links(Links { schema: 1, links: Vec::new() }));
    let documents = world.owner.goal().documents;
    assert_eq!(documents[&new].prefetch[0].image, image("x"));
    assert_eq!(documents[&node("n2")].prefetch.len(), 2);
    let grants = &documents[&node("n2")].layer_grants[&node("n1")];
    assert!(grants.contains(&"sha256:x".to_owned()), "neighbours may have its layers: {grants:?}");
}

#[test]
fn a_pin_goes_without_changing_the_nodes_and_a_release_ends_it() {
    let mut world = World::new();
    prefetch(&mut world, "x", PrefetchOn::Nodes(vec![node("n3")]), Hold::Pinned);
    prefetch(&mut world, "x", PrefetchOn::Same, Hold::Unpinned);
    assert_eq!((held(&world, "n1"), held(&world, "n3")), (vec![], vec![("x".to_owned(), false)]));
    prefetch(&mut world, "x", PrefetchOn::All, Hold::Pinned);
    assert_eq!(held(&world, "n1"), [("x".to_owned(), true)]);
    world.owner.release("x".to_owned()).unwrap();
    world.settle();
    assert!(held(&world, "n1").is_empty() && world.owner.prefetched().is_empty());
    let again = world.owner.release("x".to_owned());
    assert!(matches!(again, Err(PrefetchError::NotHeld { .. })), "{again:?}");
}

#[test]
fn nodes_that_are_not_there_and_images_without_end_are_refused() {
    let mut world = World::new();
    let nowhere = world.owner.prefetch(image("x"), PrefetchOn::Nodes(vec![node("n8")]), Hold::Pinned);
    assert_eq!(nowhere, Err(PrefetchError::UnknownNode(node("n8"))));
    let none = world.owner.prefetch(image("x"), PrefetchOn::Nodes(vec![]), Hold::Pinned);
    assert_eq!(none, Err(PrefetchError::NoNode));
    for at in 0..ENTRIES_MAX {
        world.owner.prefetch(image(&at.to_string()), PrefetchOn::All, Hold::Pinned).unwrap();
    }
    let more = world.owner.prefetch(image("more"), PrefetchOn::All, Hold::Pinned);
    assert_eq!(more, Err(PrefetchError::TooMany { max: ENTRIES_MAX }));
    world.owner.prefetch(image("0"), PrefetchOn::All, Hold::Unpinned).unwrap();
}

#[test]
fn what_nodes_say_is_shown_and_removed_images_are_told_once() {
    let mut world = World::new();
    prefetch(&mut world, "x", PrefetchOn::All, Hold::Pinned);
    let state = PrefetchState {
        image: "x".to_owned(),
        digest: "sha256:x".to_owned(),
        phase: PrefetchPhase::Pulling,
        error: String::new(),
    };
    let pull = PullState {
        image: "x".to_owned(),
        bytes_fetched: Bytes(3),
        bytes_total: Some(Bytes(9)),
        layers: 1,
        took_ms: None,
        bytes_elsewhere: Bytes(0),
        done: false,
        error: String::new(),
    };
    let removed = CollectedImage {
        image: "r/old@sha256:o".to_owned(),
        freed: Bytes(7),
        at_s: 1,
        why: "the disk is full".to_owned(),
    };
    let seen = Observed {
        prefetched: vec![state],
        pulls: vec![pull],
        collected: vec![removed],
        ..observed(&world.held[&node("n1")])
    };
    for _ in 0..2 {
        world.owner.observe(&node("n1"), NodeMessage::Observed(seen.clone()));
    }
    let view = world.owner.prefetched().remove(0);
    assert!(view.everywhere && view.pinned && view.nodes.len() == 3);
    let first = &view.nodes[0];
    assert_eq!(
        (first.phase, first.bytes_fetched, first.bytes_total),
        (PrefetchPhase::Pulling, Bytes(3), Some(Bytes(9)))
    );
    assert_eq!(view.nodes[1].phase, PrefetchPhase::Waiting);
    let events = world.owner.events.after(0, None);
    let told: Vec<_> = events.iter().filter(|event| event.kind == "image-removed").collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].text.contains("n1") && told[0].text.contains("the disk is full"), "{told:?}");
}
