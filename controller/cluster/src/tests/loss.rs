//! Nodes that are away, and a controller that was: what stays, what goes back, what is told of it.

use super::world::{World, inventory, links, observed, order};
use crate::nodes::NodeMessage;
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{ContainerPhase, Report, Status};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_common::view::JobState;

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

fn state(world: &World, job: &str) -> (JobState, String) {
    let view = world.owner.job(&job.parse().unwrap()).unwrap();
    (view.state, view.reason)
}

fn starting(reason: &str) -> (JobState, String) {
    (JobState::Starting, reason.to_owned())
}

fn running() -> (JobState, String) {
    (JobState::Running, String::new())
}

fn report() -> NodeMessage {
    let flows = Vec::new();
    let (cpu_used, memory_used, disk_used) = (MilliCores(7), Bytes(7), Bytes(7));
    NodeMessage::Report(Report { schema: 1, cpu_used, memory_used, disk_used, flows, ..Report::default() })
}

/// Job `a` runs on all three nodes.
fn world() -> World {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    assert_eq!(state(&world, "a"), running());
    world
}

#[test]
fn a_job_on_an_offline_node_does_not_count_as_running() {
    let mut world = world();
    world.owner.observe(&node("n3"), NodeMessage::Status(Status::new(false, 1)));
    assert_eq!(state(&world, "a"), starting("node n3 is offline"));
    world.connect();
    world.settle();
    assert_eq!(state(&world, "a"), running());
}

#[test]
fn a_job_on_a_node_that_says_nothing_does_not_count_as_running() {
    let mut world = world();
    for _ in 0..4 {
        world.pass(8_000);
        ["n1", "n2"].iter().for_each(|name| world.owner.observe(&node(name), report()));
    }
    assert_eq!(state(&world, "a"), starting("node n3 is offline"));
}

#[test]
fn an_offline_node_that_nothing_needs_holds_nobody_up() {
    let mut world = World::of(&["n1", "n2", "n3", "n4"]);
    world.cut_off("n4");
    world.owner.submit(order("a")).unwrap();
    world.settle();
    assert_eq!(state(&world, "a"), running());
    assert!(world.owner.model().settled());
    world.bring_back("n4");
    let held = &world.held[&node("n4")];
    assert_eq!((held.routes.len(), held.version()), (3, world.owner.model().version(&node("n4"))));
}

#[test]
fn a_job_on_a_node_that_does_not_confirm_is_not_withdrawn_but_told() {
    let mut world = world();
    world.dead.insert(node("n3"));
    world.owner.submit(order("b")).unwrap();
    world.settle();
    world.pass(10_000);
    world.settle();
    assert_eq!(state(&world, "a"), starting("node n3 does not confirm its desired state"));
    assert_eq!(state(&world, "b").0, JobState::Waiting);
}

#[test]
fn a_task_that_keeps_ending_is_told_with_its_last_end() {
    let mut world = world();
    let mut seen = observed(&world.held[&node("n3")]);
    let container = &mut seen.containers[0];
    (container.phase, container.detail) = (ContainerPhase::Exited, "exited with code 3".to_owned());
    world.owner.observe(&node("n3"), NodeMessage::Observed(seen));
    assert_eq!(state(&world, "a"), starting("task track: exited with code 3"));
}

#[test]
fn a_node_slower_than_the_restarted_controller_keeps_its_confirmed_job() {
    let mut world = world();
    let before = world.held.clone();
    world.dead.insert(node("n3"));
    let mut world = world.restart();
    world.connect();
    for _ in 0..6 {
        world.settle();
        world.pass(10_000);
        ["n1", "n2"].iter().for_each(|name| world.owner.observe(&node(name), report()));
    }
    let away = "node n3 has not been heard of since the controller started";
    assert_eq!(state(&world, "a"), starting(away));
    assert_eq!(world.held, before, "nothing changes on any node");
    world.dead.clear();
    world.connect();
    world.settle();
    assert_eq!(state(&world, "a"), running());
    assert_eq!(world.held, before);
}

#[test]
fn a_commit_that_nobody_confirmed_before_the_restart_goes_back() {
    let mut world = World::new();
    world.dead.insert(node("n2"));
    world.owner.submit(order("a")).unwrap();
    world.turn();
    let mut world = world.restart();
    world.connect();
    world.settle();
    assert_eq!(state(&world, "a").0, JobState::Starting);
    world.pass(10_000);
    world.settle();
    let (state, reason) = state(&world, "a");
    assert_eq!(state, JobState::Waiting);
    assert!(reason.starts_with("not confirmed by n2"), "{reason}");
}

#[test]
fn a_job_that_stops_while_the_controller_is_away_waits_for_its_nodes() {
    let mut world = world();
    world.dead.insert(node("n3"));
    world.owner.stop(&"a".parse().unwrap()).unwrap();
    world.settle();
    let mut world = world.restart();
    world.dead.clear();
    world.owner.tick();
    assert_eq!(state(&world, "a").0, JobState::Stopping, "its containers may still run");
    world.connect();
    world.settle();
    assert!(world.owner.job(&"a".parse().unwrap()).is_none());
}

#[test]
fn what_nodes_say_is_never_journaled() {
    let mut world = world();
    let before = world.journal_bytes();
    for round in 0..20_u32 {
        world.pass(1_000);
        for name in super::world::NODES {
            let mut measured = links(name);
            for link in &mut measured.links {
                link.rtt_min_us = Some(round);
                link.capacity_measured = Some(BitRate(19_500_000 + u64::from(round)));
            }
            let mut inventory = inventory();
            inventory.layers.image_ids.push(round.to_string());
            let seen = observed(&world.held[&node(name)]);
            let status = Status::new(true, u64::from(round) + 1);
            for message in [
                NodeMessage::Status(status),
                report(),
                NodeMessage::Inventory(Box::new(inventory)),
                NodeMessage::Links(measured),
                NodeMessage::Observed(seen),
            ] {
                world.owner.observe(&node(name), message);
            }
        }
    }
    assert_eq!(world.journal_bytes(), before);
}
