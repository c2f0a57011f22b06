//! Nodes that are cordoned, drained and opened, over simulated nodes and the real scheduler.

use super::world::{World, order, with_images};
use crate::error::DrainError;
use crate::follow::FollowLoad;
use crate::owner::Order;
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::{CordonView, CordonedBy, JobState};
use edgeloom_sched::consolidate::{Bounds, consolidate};

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

/// One task that goes anywhere, but for what the rules say.
fn anywhere(name: &str, rules: &str) -> Order {
    let text = format!(
        "kind: Job\nname: {name}\ntasks:\n  work:\n    image: r/app:1\n    resources: {{ cpu: 300m, memory: 16MiB }}\n{rules}"
    );
    with_images(
        edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}")),
    )
}

fn run(world: &mut World, order: Order) {
    world.owner.submit(order).unwrap();
    world.settle();
}

fn place(world: &World, job: &str) -> String {
    let view = world.owner.job(&job.parse().unwrap()).unwrap();
    assert_eq!(view.state, JobState::Running, "{}", view.reason);
    view.tasks.iter().find(|task| !task.name.is_source()).unwrap().node.to_string()
}

fn cordon(world: &World, name: &str) -> Option<CordonView> {
    let known = &world.owner.nodes.table[&node(name)];
    world.owner.node(&node(name), known).cordon
}

fn drain(world: &mut World, name: &str) {
    world.owner.cordon(&node(name), true).unwrap();
    world.live(5);
}

fn events(world: &World, kind: &str) -> Vec<String> {
    let all = world.owner.events.after(0, None);
    all.into_iter().filter(|event| event.kind == kind).map(|event| event.text).collect()
}

#[test]
fn tasks_leave_a_drained_node_and_nothing_comes_until_it_is_opened() {
    let mut world = World::new();
    for job in ["a", "b", "c"] {
        run(&mut world, anywhere(job, ""));
    }
    let first = place(&world, "a");
    let there = ["a", "b", "c"].iter().filter(|job| place(&world, job) == first).count();
    drain(&mut world, &first);
    world.live(20);
    assert!(["a", "b", "c"].iter().all(|job| place(&world, job) != first));
    assert_eq!(events(&world, "replan").len(), there, "each job moved once");
    assert!(events(&world, "replan")[0].starts_with(&format!("node {first} is drained: work moves from")));
    assert!(cordon(&world, &first).unwrap().tasks.is_empty());
    run(&mut world, anywhere("d", ""));
    assert_ne!(place(&world, "d"), first);
    let mut world = world.restart();
    world.connect();
    world.settle();
    assert!(cordon(&world, &first).unwrap().drain, "it is journaled");
    world.owner.uncordon(&node(&first)).unwrap();
    assert_eq!(cordon(&world, &first), None);
    let only = format!("    constraints: [\"node.name == {first}\"]\n");
    run(&mut world, anywhere("e", &only));
    assert_eq!(place(&world, "e"), first);
}

#[test]
fn what_is_bound_to_the_node_stays_and_says_why() {
    let mut world = World::new();
    run(&mut world, order("a"));
    run(&mut world, anywhere("pinned", "    constraints: [\"node.name == n2\"]\n"));
    run(&mut world, anywhere("tolerant", "    tolerations: [all]\n"));
    drain(&mut world, "n2");
    world.live(20);
    assert_eq!(place(&world, "pinned"), "n2");
    assert_ne!(place(&world, "tolerant"), "n2", "a toleration of everything is none of a drain");
    let tasks = cordon(&world, "n2").unwrap().tasks;
    let jobs: Vec<&str> = tasks.iter().map(|task| task.job.as_str()).collect();
    assert_eq!(jobs, ["a", "pinned"]);
    assert!(tasks[1].reason.contains("n1: constraint node.name == n2 does not hold"), "{}", tasks[1].reason);
    assert!(tasks[1].reason.contains("n2: it is cordoned or drained"), "{}", tasks[1].reason);
    assert_eq!(events(&world, "kept").len(), 2, "told once each");
    drain(&mut world, "n1");
    let source = cordon(&world, "n1").unwrap().tasks;
    assert!(source.iter().any(|task| task.task.is_source() && !task.reason.is_empty()), "{source:?}");
}

#[test]
fn two_nodes_are_drained_at_once_but_never_all() {
    let mut world = World::new();
    for job in ["a", "b", "c"] {
        run(&mut world, anywhere(job, ""));
    }
    world.owner.cordon(&node("n1"), true).unwrap();
    world.owner.cordon(&node("n2"), true).unwrap();
    world.live(30);
    assert!(["a", "b", "c"].iter().all(|job| place(&world, job) == "n3"));
    assert!(matches!(world.owner.cordon(&node("n3"), true), Err(DrainError::Last(_))));
    assert!(matches!(world.owner.cordon(&node("n9"), false), Err(DrainError::Unknown(_))));
    assert!(matches!(world.owner.uncordon(&node("n9")), Err(DrainError::Unknown(_))));
    world.owner.uncordon(&node("n3")).unwrap();
}

#[test]
fn a_job_without_room_elsewhere_stays_until_there_is_some() {
    let mut world = World::new();
    for job in ["a", "b", "c"] {
        let order = anywhere(job, "");
        let mut order = order;
        order.job.tasks.values_mut().for_each(|task| task.program.resources.cpu.0 = 900);
        run(&mut world, order);
    }
    let first = place(&world, "a");
    drain(&mut world, &first);
    world.live(20);
    assert_eq!(place(&world, "a"), first);
    assert!(cordon(&world, &first).unwrap().tasks[0].reason.contains("cpu 900m requested, 100m unused"));
    world.owner.stop(&"b".parse().unwrap()).unwrap();
    world.live(20);
    assert_ne!(place(&world, "a"), first);
}

#[test]
fn a_cordoned_node_keeps_what_it_has() {
    let mut world = World::new();
    run(&mut world, anywhere("a", ""));
    let first = place(&world, "a");
    world.owner.cordon(&node(&first), false).unwrap();
    world.live(20);
    assert_eq!(place(&world, "a"), first);
    run(&mut world, anywhere("b", ""));
    assert_ne!(place(&world, "b"), first);
    let view = cordon(&world, &first).unwrap();
    assert_eq!((view.drain, view.tasks.len()), (false, 1));
}

#[test]
fn a_consolidation_names_nodes_that_can_be_emptied_and_what_moves() {
    let mut world = World::new();
    for (job, at) in [("a", "n1"), ("b", "n2")] {
        let rule = format!("    constraints: [\"node.name != n3\", \"node.name == {at}\"]\n");
        let mut order = anywhere(job, &rule);
        run(
            &mut world,
            anywhere(&format!("{job}-free"), &format!("    constraints: [\"node.name == {at}\"]\n")),
        );
        order.job.tasks.values_mut().for_each(|task| task.constraints.truncate(1));
        run(&mut world, order);
    }
    let (profile, snapshot) = world.owner.consolidation();
    let found = consolidate(profile, &snapshot, Bounds::NONE);
    let emptied: Vec<(String, usize)> =
        found.emptied.iter().map(|it| (it.node.to_string(), it.moves.len())).collect();
    assert_eq!(emptied, [("n3".to_owned(), 0)], "{found:?}");
    assert_eq!(found.kept.len(), 2);
    assert!(found.kept.iter().all(|it| it.reason.contains("finds no other node")), "{found:?}");
}

/// Nodes follow the load, after a minute.
fn following() -> World {
    let mut world = World::new();
    let steady = std::time::Duration::from_secs(60);
    world.owner.settings.follow = Some(FollowLoad { steady, ..FollowLoad::default() });
    world
}

fn by_load(world: &World) -> Vec<String> {
    let cordons = world.owner.model().cordons.iter();
    cordons.filter(|(_, cordon)| cordon.by == CordonedBy::Load).map(|(node, _)| node.to_string()).collect()
}

#[test]
fn nodes_are_emptied_one_by_one_while_the_load_fits_on_fewer() {
    let mut world = following();
    run(&mut world, anywhere("a", ""));
    world.live(59);
    assert_eq!(by_load(&world), Vec::<String>::new(), "not before it has lasted");
    world.live(200);
    assert_eq!(by_load(&world).len(), 2);
    assert!(!by_load(&world).contains(&place(&world, "a")));
    world.live(600);
    assert_eq!((by_load(&world).len(), events(&world, "node-drained").len()), (2, 2), "nothing flaps");
}

#[test]
fn a_node_is_taken_back_before_a_job_waits() {
    let mut world = following();
    world.live(300);
    assert_eq!(by_load(&world).len(), 2);
    for job in ["a", "b", "c"] {
        run(&mut world, anywhere(job, ""));
    }
    assert_eq!(by_load(&world).len(), 2);
    run(&mut world, anywhere("d", ""));
    assert_eq!((by_load(&world).len(), place(&world, "d").len()), (1, 2));
    assert_eq!(events(&world, "waiting"), Vec::<String>::new());
    assert!(events(&world, "node-opened")[0].ends_with("takes tasks again, since a job would wait"));
    // 900 of 1000 on one node, and 300 on the other: 60% of two, and nobody is spared.
    world.live(300);
    assert_eq!(by_load(&world).len(), 1);
}

#[test]
fn much_load_takes_nodes_back_without_a_job_that_waits_and_operators_keep_theirs() {
    let mut world = following();
    world.owner.cordon(&node("n3"), true).unwrap();
    world.live(300);
    assert_eq!(by_load(&world).len(), 1, "one node goes on taking tasks");
    for job in ["a", "b", "c"] {
        run(&mut world, anywhere(job, ""));
    }
    world.live(5);
    assert_eq!(by_load(&world), Vec::<String>::new(), "90% is much");
    assert!(cordon(&world, "n3").unwrap().drain);
}
