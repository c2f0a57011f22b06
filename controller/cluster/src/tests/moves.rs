//! Changes of a job that runs: limits, rates and nodes of its tasks, and the way back.

use super::world::{World, observed, order};
use crate::model::{Commit, Event, JobRecord};
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use edgeloom_common::view::JobState;
use edgeloom_sched::plan::{JobPlan, Share};
use std::collections::BTreeSet;

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

fn task(text: &str) -> TaskName {
    text.parse().unwrap()
}

fn record(world: &World) -> &JobRecord {
    &world.owner.model().jobs[&"a".parse().unwrap()]
}

fn state(world: &World) -> JobState {
    world.owner.job(&"a".parse().unwrap()).unwrap().state
}

/// Job `a` runs: source on n1, detect on n2 with an image of its own, track on n3.
fn world() -> World {
    let mut world = World::new();
    let mut order = order("a");
    let image = order.images.get_mut(&task("detect")).unwrap();
    (image.reference.name, image.reference.digest) = ("r/detect:1".to_owned(), "sha256:detect".to_owned());
    world.owner.submit(order).unwrap();
    world.settle();
    assert_eq!(state(&world), JobState::Running);
    assert!(world.owner.model().settled());
    world.arrivals.clear();
    world
}

fn replan(world: &mut World, change: impl FnOnce(&mut JobPlan)) {
    let record = record(world);
    let mut plan = record.plan.clone().unwrap();
    change(&mut plan);
    let (addresses, bytes_predicted) = (record.addresses.clone(), record.bytes_predicted.clone());
    let commit = Commit { plan, addresses, bytes_predicted, lost: BTreeSet::new(), at_ms: 0 };
    world.owner.state.commit(Event::Committed { commits: vec![commit] }).unwrap();
    world.owner.advance();
}

/// The plan that has detect on n3, beside track.
fn on_n3(plan: &mut JobPlan) {
    plan.placement.insert(task("detect"), node("n3"));
    plan.flows.retain(|flow| flow.id.to == task("detect"));
    plan.flows[0].path = vec![node("n1"), node("n3")];
}

/// Where documents list detect.
fn lists(world: &World) -> Vec<&str> {
    let held =
        world.held.iter().filter(|(_, held)| held.containers.iter().any(|it| it.task == task("detect")));
    held.map(|(node, _)| node.as_str()).collect()
}

fn detect_still_on(world: &mut World, name: &str) {
    let seen = observed(&world.held[&node(name)]).containers;
    let detect = seen.into_iter().filter(|state| state.task == task("detect")).collect();
    world.lingering.insert(node(name), detect);
}

/// All is as before the change.
fn is_back(world: &World, before: &JobPlan) {
    assert_eq!(record(world).plan.as_ref(), Some(before));
    assert!(world.owner.model().settled());
    assert_eq!(lists(world), ["n2"]);
    assert_eq!(world.held[&node("n1")].flows[0].path, [node("n1"), node("n2")]);
}

#[test]
fn limits_follow_the_plan_and_leave_the_specification() {
    let mut world = world();
    let before = world.held[&node("n2")].containers[0].clone();
    let share = Share { cpu: MilliCores(700), memory: Bytes(64 << 20) };
    replan(&mut world, |plan| plan.shares = [(task("detect"), share)].into());
    world.settle();
    let after = &world.held[&node("n2")].containers[0];
    assert_eq!((before.cpu, before.memory), (MilliCores(100), Bytes(16 << 20)));
    assert_eq!((after.cpu, after.memory, &after.spec_hash), (share.cpu, share.memory, &before.spec_hash));
    assert_eq!(world.arrivals.len(), 1, "nothing else changes");
    let view = world.owner.job(&"a".parse().unwrap()).unwrap();
    let detect = view.tasks.iter().find(|view| view.name == task("detect")).unwrap();
    assert_eq!((detect.cpu_millicores, detect.memory_bytes), (700, 64 << 20));
    assert!(world.owner.model().settled());
}

#[test]
fn a_task_moves_with_its_address_and_its_image_goes_ahead() {
    let mut world = world();
    let address = record(&world).addresses[&task("detect")];
    replan(&mut world, on_n3);
    world.settle();
    assert_eq!((state(&world), lists(&world)), (JobState::Running, vec!["n3"]));
    assert!(world.owner.model().settled());
    let first = &world.arrivals[0];
    assert!(first.node == node("n3") && first.images.iter().any(|image| image.name == "r/detect:1"));
    assert!(first.containers.iter().all(|spec| spec.task != task("detect")));
    let moved = world.held[&node("n3")].containers.iter().find(|spec| spec.task == task("detect")).unwrap();
    assert_eq!(moved.address, address);
    for (at, via) in [("n1", "n3"), ("n2", "n3")] {
        let route = world.held[&node(at)].routes.iter().find(|route| route.address == address).unwrap();
        assert_eq!(route.via, node(via));
    }
    assert_eq!(world.held[&node("n1")].flows[0].path, [node("n1"), node("n3")]);
}

#[test]
fn the_old_container_runs_until_the_new_node_has_the_image() {
    let mut world = world();
    let before = record(&world).plan.clone().unwrap();
    world.pulling.insert(node("n3"));
    replan(&mut world, on_n3);
    for _ in 0..5 {
        world.settle();
        world.pass(60_000);
        world.connect();
        assert_eq!((state(&world), lists(&world)), (JobState::Running, vec!["n2"]));
    }
    assert_eq!(world.held[&node("n1")].flows[0].path, [node("n1"), node("n2")]);
    let mut late = world;
    late.pass(300_000);
    late.settle();
    is_back(&late, &before);
}

#[test]
fn a_pull_that_ends_lets_the_task_move() {
    let mut world = world();
    world.pulling.insert(node("n3"));
    replan(&mut world, on_n3);
    world.settle();
    world.pulling.clear();
    world.show();
    world.settle();
    assert_eq!((state(&world), lists(&world)), (JobState::Running, vec!["n3"]));
}

#[test]
fn a_new_container_waits_until_the_old_one_is_gone() {
    let mut world = world();
    detect_still_on(&mut world, "n2");
    replan(&mut world, on_n3);
    world.settle();
    assert_eq!(lists(&world), Vec::<&str>::new());
    world.lingering.clear();
    world.show();
    world.settle();
    assert_eq!((state(&world), lists(&world)), (JobState::Running, vec!["n3"]));
}

#[test]
fn a_container_that_does_not_go_takes_the_move_back() {
    let mut world = world();
    let before = record(&world).plan.clone().unwrap();
    detect_still_on(&mut world, "n2");
    replan(&mut world, on_n3);
    world.settle();
    world.pass(30_000);
    world.settle();
    is_back(&world, &before);
    assert_eq!(world.held[&node("n2")].containers.len(), 1);
}

#[test]
fn a_new_node_that_dies_at_any_step_brings_the_task_back() {
    for turns in 0..9 {
        let mut world = world();
        let before = record(&world).plan.clone().unwrap();
        replan(&mut world, on_n3);
        for _ in 0..turns {
            world.turn();
        }
        world.dead.insert(node("n3"));
        for _ in 0..6 {
            world.settle();
            world.pass(10_000);
        }
        if lists(&world) == ["n3"] && world.owner.model().settled() {
            assert!(turns > 4, "{turns} turns are no move");
            continue;
        }
        assert_eq!(record(&world).plan.as_ref(), Some(&before), "after {turns} turns");
        let holders: Vec<&str> = lists(&world).into_iter().filter(|name| *name != "n3").collect();
        assert_eq!(holders, ["n2"], "after {turns} turns");
        world.dead.clear();
        world.connect();
        world.settle();
        is_back(&world, &before);
        assert_eq!(state(&world), JobState::Running);
    }
}

#[test]
fn a_node_that_comes_back_with_an_old_container_stops_no_other() {
    let mut world = world();
    let detect = observed(&world.held[&node("n2")]).containers;
    replan(&mut world, on_n3);
    while !lists(&world).is_empty() {
        assert!(world.turn());
    }
    // It takes the document that has the container, and is not heard of again.
    world.dead.insert(node("n3"));
    world.lingering.insert(node("n3"), detect);
    for _ in 0..6 {
        world.settle();
        world.pass(10_000);
    }
    assert_eq!(lists(&world), ["n2"]);
    let before = [node("n1"), node("n2")].map(|name| world.held[&name].clone());
    world.dead.clear();
    world.connect();
    world.settle();
    world.show();
    world.settle();
    assert_eq!(before, [node("n1"), node("n2")].map(|name| world.held[&name].clone()));
    assert!(!world.owner.nodes.table[&node("n3")].silent, "it has confirmed");
}

#[test]
fn a_restart_at_any_step_of_a_move_ends_where_no_restart_does() {
    for turns in 0..9 {
        let mut world = world();
        replan(&mut world, on_n3);
        for _ in 0..turns {
            world.turn();
        }
        let mut world = world.restart();
        world.connect();
        world.show();
        world.settle();
        assert_eq!((state(&world), lists(&world)), (JobState::Running, vec!["n3"]), "after {turns} turns");
        assert!(world.owner.model().settled());
    }
}

#[test]
fn rates_that_a_node_does_not_confirm_fall_back_and_the_job_stays() {
    let mut world = world();
    let before = record(&world).plan.clone().unwrap();
    world.dead.insert(node("n2"));
    let slower = |plan: &mut JobPlan| plan.flows.iter_mut().for_each(|flow| flow.rate = BitRate(1_000_000));
    replan(&mut world, slower);
    world.settle();
    world.pass(10_000);
    world.settle();
    assert_eq!(record(&world).plan.as_ref(), Some(&before));
    assert_eq!(state(&world), JobState::Starting, "n2 is silent");
    world.dead.clear();
    world.connect();
    world.settle();
    assert_eq!(state(&world), JobState::Running);
    let rate = |held: &edgeloom_common::desired::DesiredState| {
        held.flows.iter().filter_map(|flow| flow.rate).collect::<Vec<_>>()
    };
    for flow in &before.flows {
        assert_eq!(rate(&world.held[&flow.path[0]]), [flow.rate]);
    }
}

#[test]
fn a_stop_in_the_middle_of_a_move_leaves_nothing() {
    for turns in 0..6 {
        let mut world = world();
        replan(&mut world, on_n3);
        for _ in 0..turns {
            world.turn();
        }
        world.owner.stop(&"a".parse().unwrap()).unwrap();
        world.settle();
        assert!(world.owner.job(&"a".parse().unwrap()).is_none(), "after {turns} turns");
        assert!(world.held.values().all(|held| held.containers.is_empty() && held.flows.is_empty()));
    }
}
