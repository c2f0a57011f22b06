//! Nodes that go out of reach and come back: what moves, what stays, and what is told of it.

use super::world::{World, with_images};
use crate::owner::Order;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::view::{JobState, JobView};

pub(super) fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

/// A source on n1, detect and track anywhere else; lost nodes count as such after 30 s.
pub(super) fn roaming(name: &str, disconnect: &str) -> Order {
    let task = |task: &str, rest: &str| {
        format!(
            "  {task}:\n    image: r/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    work: 10ms\n    \
             constraints: [\"node.name != n1\"]\n{rest}"
        )
    };
    let text = format!(
        "kind: Job\nname: {name}\ndisconnect: {{ lost_after: 30s{disconnect} }}\n\
         source: {{ node: n1, item: 10KB, image: r/app:1, resources: {{ cpu: 100m, memory: 16MiB }} }}\ntasks:\n{}{}",
        task("detect", "    inputs: [source]\n    outputs: { track: 10KB }\n"),
        task("track", "    inputs: [detect]\n")
    );
    let job = edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
    with_images(job)
}

pub(super) fn view(world: &World) -> JobView {
    world.owner.job(&"a".parse().unwrap()).unwrap()
}

/// Where the plan has a task.
pub(super) fn place(world: &World, task: &str) -> String {
    let task: TaskName = task.parse().unwrap();
    let job: JobName = "a".parse().unwrap();
    world.owner.model().jobs[&job].plan.as_ref().unwrap().placement[&task].to_string()
}

fn kinds(world: &World) -> Vec<String> {
    world.owner.events.after(0, None).into_iter().map(|event| event.kind).collect()
}

/// What nodes hold, whatever its number: routes may go another way and come back.
fn wanted(world: &World) -> Vec<edgeloom_common::desired::DesiredState> {
    let mut held: Vec<_> = world.held.values().cloned().collect();
    held.iter_mut().for_each(|document| document.generation = 0);
    held
}

/// No task is listed by the documents of two nodes that are there.
pub(super) fn no_doubles(world: &World) {
    let mut seen = std::collections::BTreeSet::new();
    for node in world.alive() {
        for spec in world.held.get(&node).into_iter().flat_map(|held| &held.containers) {
            assert!(seen.insert((spec.job.clone(), spec.task.clone())), "{} {} twice", spec.job, spec.task);
        }
    }
}

/// Job `a` runs.
pub(super) fn world(disconnect: &str) -> World {
    world_of(&super::world::NODES, disconnect)
}

pub(super) fn world_of(names: &'static [&'static str], disconnect: &str) -> World {
    let mut world = World::of(names);
    world.owner.submit(roaming("a", disconnect)).unwrap();
    world.settle();
    world.live(20);
    assert_eq!(view(&world).state, JobState::Running);
    world.arrivals.clear();
    world
}

/// Seconds until the job runs again, all of it on nodes that are there.
fn seconds_to_run(world: &mut World, most: u64) -> u64 {
    for second in 0..most {
        let there = |view: &JobView| view.tasks.iter().all(|task| !world.dead.contains(&task.node));
        if Some(view(world)).filter(there).is_some_and(|view| view.state == JobState::Running) {
            return second;
        }
        world.live(1);
        no_doubles(world);
    }
    panic!("job a does not run after {most} s: {:?} {:?}", view(world), world.owner.events.after(0, None));
}

/// The node has no power any more, or only no way to the controller.
fn drop_out(world: &mut World, name: &str, power: bool) {
    if power {
        world.power_off(name);
    } else {
        world.cut_off(name);
    }
}

#[test]
fn a_brief_drop_moves_nothing() {
    for power in [true, false] {
        let mut world = world("");
        let (before, victim) = (wanted(&world), place(&world, "detect"));
        for _ in 0..4 {
            drop_out(&mut world, &victim, power);
            world.live(28);
            assert!(view(&world).state != JobState::Running);
            world.bring_back(&victim);
            world.live(40);
        }
        assert_eq!((wanted(&world) == before, view(&world).replans), (true, 0), "{:?}", kinds(&world));
        assert_eq!(view(&world).state, JobState::Running);
    }
}

#[test]
fn tasks_of_a_lost_node_run_elsewhere_within_ten_seconds() {
    for power in [true, false] {
        let mut world = world("");
        let (victim, address) = (place(&world, "detect"), view(&world).tasks[0].address);
        drop_out(&mut world, &victim, power);
        let seconds = seconds_to_run(&mut world, 60);
        assert!((29..=40).contains(&seconds), "{seconds} s");
        let job = view(&world);
        assert!(job.notes.contains(&format!("task detect was moved because node {victim} is lost")));
        assert_eq!((job.replans, job.tasks[0].address), (1, address), "an address is for life");
        let living = world.alive();
        for task in job.tasks.iter().filter(|task| task.name.as_str() != "source") {
            let away = living.iter().filter(|node| **node != task.node);
            for held in away.map(|node| &world.held[node]) {
                let via = held.routes.iter().find(|route| Some(route.address) == task.address).unwrap();
                assert_eq!(via.via, task.node, "no way leads through the lost node");
            }
        }
        let told = kinds(&world);
        for kind in ["node-down", "node-lost", "replan"] {
            assert!(told.iter().any(|it| it == kind), "{kind}: {told:?}");
        }
    }
}

#[test]
fn what_is_healthy_stays_where_it_is() {
    let mut world = world_of(&["n1", "n2", "n3", "n4"], "");
    let victim = place(&world, "detect");
    let rest: Vec<_> = ["source", "track"].into_iter().filter(|task| place(&world, task) != victim).collect();
    let spec = |world: &World, task: &str| {
        let held = &world.held[&node(&place(world, task))];
        held.containers.iter().find(|spec| spec.task.as_str() == task).unwrap().clone()
    };
    let before: Vec<_> = rest.iter().map(|task| (place(&world, task), spec(&world, task))).collect();
    world.power_off(&victim);
    seconds_to_run(&mut world, 60);
    let after: Vec<_> = rest.iter().map(|task| (place(&world, task), spec(&world, task))).collect();
    assert_eq!(before, after);
    assert_ne!(place(&world, "detect"), victim);
}

#[test]
fn a_returned_node_gives_up_what_was_replaced_and_nothing_else_changes() {
    let mut world = world("");
    let victim = place(&world, "detect");
    world.power_off(&victim);
    seconds_to_run(&mut world, 60);
    let places = view(&world).tasks.into_iter().map(|task| task.node).collect::<Vec<_>>();
    let containers = |world: &World, name: &NodeId| world.held[name].containers.clone();
    let before: Vec<_> = world.alive().iter().map(|node| containers(&world, node)).collect();
    let living = world.alive();
    assert!(!containers(&world, &node(&victim)).is_empty(), "it still has what it had");
    world.bring_back(&victim);
    no_doubles(&world);
    world.live(120);
    assert!(containers(&world, &node(&victim)).is_empty());
    assert_eq!(before, living.iter().map(|node| containers(&world, node)).collect::<Vec<_>>());
    assert_eq!(places, view(&world).tasks.into_iter().map(|task| task.node).collect::<Vec<_>>());
    assert!(world.owner.model().cut_off.is_empty());
    assert!(kinds(&world).iter().any(|kind| kind == "node-returned"));
}

#[test]
fn an_original_that_still_runs_is_kept_and_never_told_to_stop() {
    for power in [true, false] {
        for restart in [true, false] {
            let mut world = world(", reconcile: keep_original");
            let victim = place(&world, "detect");
            drop_out(&mut world, &victim, power);
            seconds_to_run(&mut world, 60);
            assert_ne!(place(&world, "detect"), victim);
            if restart {
                world = world.restart();
                world.connect();
                world.show();
                world.settle();
            }
            world.arrivals.clear();
            world.bring_back(&victim);
            world.live(2);
            assert_eq!((place(&world, "detect"), view(&world).state), (victim.clone(), JobState::Running));
            no_doubles(&world);
            let sent = world.arrivals.iter().filter(|document| document.node == node(&victim));
            let lists = |document: &edgeloom_common::desired::DesiredState| {
                document.containers.iter().any(|spec| spec.task.as_str() == "detect")
            };
            assert!(sent.clone().count() > 0 && sent.clone().all(lists), "power {power}, restart {restart}");
            assert!(world.owner.model().settled() && world.owner.model().cut_off.is_empty());
            assert_eq!(view(&world).notes, Vec::<String>::new());
        }
    }
}

#[test]
fn an_original_place_is_taken_again_once_its_node_has_stayed() {
    let mut world = world(", reconcile: keep_original");
    let victim = place(&world, "detect");
    world.power_off(&victim);
    seconds_to_run(&mut world, 60);
    // It has started anew with another disk.
    let held = world.held.get_mut(&node(&victim)).unwrap();
    held.containers.clear();
    world.bring_back(&victim);
    world.live(28);
    assert_ne!(place(&world, "detect"), victim);
    world.live(20);
    assert_eq!((place(&world, "detect"), view(&world).state), (victim, JobState::Running));
    assert_eq!((view(&world).notes, world.owner.model().settled()), (Vec::new(), true));
    no_doubles(&world);
}

#[test]
fn a_job_whose_source_is_lost_waits_and_goes_on_untouched() {
    let mut world = world("");
    let before = wanted(&world);
    world.power_off("n1");
    world.live(60);
    let job = view(&world);
    assert_eq!(job.state, JobState::Waiting);
    assert!(job.reason.starts_with("node n1 is lost and the source stays on it"), "{}", job.reason);
    assert_eq!(wanted(&world), before, "nothing is moved for it");
    world.bring_back("n1");
    world.live(5);
    assert_eq!((view(&world).state, wanted(&world) == before), (JobState::Running, true));
}

#[test]
fn a_job_that_wants_no_replacement_is_left_alone_and_says_so() {
    let mut world = world(", replace: false");
    let (before, victim) = (wanted(&world), place(&world, "detect"));
    world.cut_off(&victim);
    world.live(300);
    assert!(view(&world).reason.contains("replace: false"), "{}", view(&world).reason);
    world.bring_back(&victim);
    world.live(5);
    assert_eq!((view(&world).state, wanted(&world) == before), (JobState::Running, true));
}

#[test]
fn a_task_that_finds_no_other_node_waits_for_its_own() {
    let mut world = World::new();
    let mut order = roaming("a", "");
    for task in order.job.tasks.values_mut() {
        task.constraints[0].equal = true;
        task.constraints[0].value = "n2".to_owned();
    }
    world.owner.submit(order).unwrap();
    world.settle();
    world.live(20);
    let before = wanted(&world);
    world.power_off("n2");
    world.live(90);
    let job = view(&world);
    assert!(job.reason.starts_with("node n2 is lost and nothing else serves: task"), "{}", job.reason);
    let tries = kinds(&world).iter().filter(|kind| *kind == "waiting").count();
    assert_eq!((job.state, tries, wanted(&world) == before), (JobState::Waiting, 1, true));
    world.bring_back("n2");
    world.live(5);
    assert_eq!((view(&world).state, wanted(&world) == before), (JobState::Running, true));
}

#[test]
fn a_node_that_flaps_moves_its_tasks_once_or_never() {
    for (away, moves) in [(29, 0), (31, 1), (45, 1)] {
        let mut world = world("");
        let victim = place(&world, "detect");
        for _ in 0..8 {
            world.cut_off(&victim);
            world.live(away);
            world.bring_back(&victim);
            no_doubles(&world);
            world.live(15);
        }
        assert_eq!(view(&world).replans, moves, "away for {away} s: {:?}", world.owner.events.after(0, None));
        assert_eq!(view(&world).state, JobState::Running);
    }
}

#[test]
fn two_nodes_lost_at_once_are_replaced_at_once() {
    for restart in [false, true] {
        let mut world = world_of(&["n1", "n2", "n3", "n4", "n5"], "");
        let mut other = roaming("b", "");
        let victim = place(&world, "detect");
        for task in other.job.tasks.values_mut() {
            task.constraints[0].value = victim.clone();
            let name = edgeloom_common::job::Attribute::Name;
            let not_n1 =
                edgeloom_common::job::Constraint { attribute: name, equal: false, value: "n1".into() };
            task.constraints.push(not_n1);
        }
        world.owner.submit(other).unwrap();
        world.settle();
        let plan_b = |world: &World| world.owner.model().jobs[&"b".parse().unwrap()].plan.clone().unwrap();
        let second = plan_b(&world).placement[&"detect".parse().unwrap()].to_string();
        assert_ne!(victim, second);
        world.live(20);
        [&victim, &second].into_iter().for_each(|name| world.power_off(name));
        if restart {
            world = world.restart();
            world.connect();
            world.live(80);
        }
        let seconds = seconds_to_run(&mut world, 60);
        assert!(seconds <= 40, "{seconds} s");
        // The second was heard of a second later.
        world.live(2);
        for node in plan_b(&world).placement.values() {
            assert!(
                !world.dead.contains(node),
                "{node} of b is dead: {:?}",
                world.owner.events.after(0, None)
            );
        }
        assert_eq!(world.owner.job(&"b".parse().unwrap()).unwrap().state, JobState::Running);
        for name in [&victim, &second] {
            world.bring_back(name);
            no_doubles(&world);
        }
        assert!(world.owner.model().cut_off.is_empty());
    }
}

#[test]
fn a_controller_that_starts_again_publishes_no_other_document() {
    for lost in [false, true] {
        let mut world = world("");
        let victim = place(&world, "detect");
        if lost {
            world.power_off(&victim);
            seconds_to_run(&mut world, 60);
        }
        let before = world.owner.model().published.clone();
        let mut world = world.restart();
        world.owner.tick();
        world.connect();
        world.show();
        world.settle();
        world.live(120);
        assert!(world.arrivals.iter().all(|document| before[&document.node] == *document));
        assert_eq!((&world.owner.model().published, view(&world).state), (&before, JobState::Running));
    }
}

#[test]
fn a_controller_that_was_cut_off_itself_takes_no_node_for_lost() {
    let mut world = world("");
    let before = world.owner.model().published.clone();
    let nodes = world.alive();
    nodes.iter().for_each(|node| world.cut_off(node.as_str()));
    world.live(300);
    for (index, node) in nodes.iter().enumerate() {
        world.bring_back(node.as_str());
        world.live(if index == 0 { 25 } else { 5 });
    }
    world.live(60);
    assert_eq!((&world.owner.model().published, view(&world).state), (&before, JobState::Running));
}
