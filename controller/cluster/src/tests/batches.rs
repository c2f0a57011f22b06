//! Batches from the document to their end, over nodes whose containers end when the test says so.

use super::away::{no_doubles, node};
use super::world::{World, with_images};
use crate::model::Phase;
use crate::owner::Order;
use edgeloom_common::desired::ContainerSpec;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::report::{ContainerPhase, ContainerState, Outcome};
use edgeloom_common::samples;
use edgeloom_common::view::{BatchView, JobState, JobView};
use std::collections::{BTreeMap, BTreeSet};

/// Each node has a core; a task takes 250 thousandths of one, so twelve run at a time.
fn order(tasks: &str) -> Order {
    let text = format!("kind: Batch\nname: b\ndisconnect: {{ lost_after: 30s }}\n{tasks}");
    let job = edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
    with_images(job)
}

fn task(name: &str, rest: &str) -> String {
    format!("  {name}:\n    image: r/app:1\n    resources: {{ cpu: 250m, memory: 16MiB }}\n{rest}")
}

pub(super) fn many(count: usize) -> Order {
    order(&format!("tasks:\n{}", task("work", &format!("    count: {count}\n"))))
}

pub(super) fn started(order: Order) -> World {
    let mut world = World::new();
    world.owner.submit(order).unwrap();
    world.settle();
    world
}

fn name() -> JobName {
    "b".parse().unwrap()
}

fn view(world: &World) -> JobView {
    world.owner.job(&name()).unwrap()
}

fn counts(world: &World) -> BatchView {
    view(world).batch.unwrap()
}

/// What documents of living nodes have to run.
fn listed(world: &World) -> Vec<(NodeId, ContainerSpec)> {
    let documents = world.held.iter().filter(|(node, _)| !world.dead.contains(*node));
    let specs =
        documents.flat_map(|(node, held)| held.containers.iter().map(|spec| (node.clone(), spec.clone())));
    specs.collect()
}

fn ended(spec: &ContainerSpec, code: i32) -> ContainerState {
    let outcome = Outcome { exit_code: Some(code), attempts: 1 };
    ContainerState {
        phase: if code == 0 { ContainerPhase::Succeeded } else { ContainerPhase::Failed },
        finished_ms: Some(2),
        outcome: Some(outcome),
        ..samples::running((&spec.job, &spec.task), &spec.spec_hash)
    }
}

/// The containers of these tasks end, wherever they are.
fn end(world: &mut World, ends: impl Fn(&TaskName) -> bool, code: i32) -> Vec<TaskName> {
    let mut tasks = Vec::new();
    for (node, spec) in listed(world).into_iter().filter(|(_, spec)| ends(&spec.task)) {
        world.ends.entry(node).or_default().push(ended(&spec, code));
        tasks.push(spec.task);
    }
    world.show();
    world.settle();
    tasks
}

/// Ends whatever runs until nothing does; every task that ran, as often as it did.
pub(super) fn drain(world: &mut World) -> Vec<TaskName> {
    let mut ran = Vec::new();
    while !listed(world).is_empty() {
        no_doubles(world);
        ran.extend(end(world, |_| true, 0));
    }
    ran
}

#[test]
fn many_tasks_run_as_room_comes_and_each_once() {
    let mut world = started(many(40));
    assert_eq!((listed(&world).len(), view(&world).state), (12, JobState::Running));
    assert_eq!((counts(&world).placed, counts(&world).waiting), (12, 28));
    let first = end(&mut world, |task| task.as_str() == "work-1", 0);
    assert_eq!((first.len(), listed(&world).len()), (1, 12), "its room is taken at once");
    let ran = drain(&mut world);
    let each: BTreeSet<&TaskName> = ran.iter().collect();
    assert_eq!((ran.len(), each.len()), (39, 39));
    let view = view(&world);
    assert_eq!((view.state, view.tasks.len()), (JobState::Succeeded, 40));
    assert_eq!((view.batch.unwrap().succeeded, view.reason.as_str()), (40, ""));
    assert!(view.tasks.iter().all(|task| task.outcome.is_some() && task.phase == "succeeded"));
    let record = &world.owner.model().jobs[&name()];
    assert!(record.addresses.is_empty() && record.plan.is_none());
}

#[test]
fn what_ended_is_kept_for_its_logs_until_the_job_is_stopped() {
    let mut world = started(many(20));
    drain(&mut world);
    let kept: usize = world.held.values().map(|held| held.kept.len()).sum();
    assert_eq!(kept, 20);
    world.owner.stop(&name()).unwrap();
    world.settle();
    assert!(world.owner.job(&name()).is_some(), "nodes still show the containers");
    world.ends.clear();
    world.show();
    world.settle();
    assert!(world.owner.job(&name()).is_none());
    assert!(world.held.values().all(|held| held.kept.is_empty()));
}

#[test]
fn nothing_that_ended_runs_again_after_the_controller_started_again() {
    let mut world = started(many(30));
    end(&mut world, |task| task.as_str().ends_with('1'), 0);
    let over: BTreeSet<TaskName> = world.owner.model().jobs[&name()].ended.keys().cloned().collect();
    let mut world = world.restart();
    world.connect();
    world.show();
    world.settle();
    let ran: BTreeSet<TaskName> = drain(&mut world).into_iter().collect();
    assert!(!over.is_empty() && over.is_disjoint(&ran));
    assert_eq!((over.len() + ran.len(), view(&world).state), (30, JobState::Succeeded));
}

#[test]
fn an_end_that_came_while_the_controller_was_away_counts() {
    let mut world = started(many(12));
    for (node, spec) in listed(&world) {
        world.ends.entry(node).or_default().push(ended(&spec, 0));
    }
    let mut world = world.restart();
    world.connect();
    world.show();
    world.settle();
    assert_eq!(view(&world).state, JobState::Succeeded);
}

#[test]
fn conditions_hold_tasks_back_until_all_of_what_they_name_is_so_far() {
    let tasks = task("a", "    count: 2\n")
        + &task("b", "    depends_on: { a: started }\n")
        + &task("c", "    depends_on: { a: finished }\n")
        + &task("d", "    depends_on: { a: succeeded, c: succeeded }\n");
    let mut world = started(order(&format!("tasks:\n{tasks}")));
    let runs = |world: &World| -> BTreeSet<String> {
        listed(world).iter().map(|(_, spec)| spec.task.to_string()).collect()
    };
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(runs(&world), set(&["a-1", "a-2", "b"]));
    end(&mut world, |task| task.as_str() == "a-1", 0);
    assert_eq!(runs(&world), set(&["a-2", "b"]));
    end(&mut world, |task| task.as_str() == "a-2", 3);
    assert_eq!(runs(&world), set(&["b", "c"]), "finished, whatever the code");
    end(&mut world, |_| true, 0);
    let view = view(&world);
    assert_eq!(view.state, JobState::Failed);
    let counts = view.batch.unwrap();
    assert_eq!((counts.succeeded, counts.failed, counts.skipped), (3, 1, 1));
    assert!(
        view.reason.contains("1 of 5 tasks failed: a-2") && view.reason.contains("code 3"),
        "{}",
        view.reason
    );
}

#[test]
fn a_lost_node_s_unfinished_tasks_run_elsewhere_and_its_finished_ones_never_again() {
    let mut world = started(many(12));
    let on_n2 = |world: &World| {
        let specs = listed(world).into_iter().filter(|(at, _)| *at == node("n2"));
        specs.map(|(_, spec)| spec.task).collect::<BTreeSet<_>>()
    };
    let there = on_n2(&world);
    let first = there.first().unwrap().clone();
    end(&mut world, |task| *task == first, 0);
    world.power_off("n2");
    world.live(29);
    assert_eq!(counts(&world).placed, 11, "not lost yet");
    end(&mut world, |_| true, 0);
    world.live(10);
    let again: BTreeSet<TaskName> = listed(&world).into_iter().map(|(_, spec)| spec.task).collect();
    let unfinished: BTreeSet<TaskName> = there.into_iter().filter(|task| *task != first).collect();
    assert_eq!(again, unfinished);
    drain(&mut world);
    assert_eq!((view(&world).state, counts(&world).succeeded), (JobState::Succeeded, 12));
    world.bring_back("n2");
    world.live(5);
    assert!(listed(&world).is_empty() && world.owner.model().cut_off.is_empty());
    assert_eq!(view(&world).state, JobState::Succeeded);
}

#[test]
fn a_node_that_is_slow_to_confirm_loses_nothing_of_what_it_was_given() {
    let mut world = started(many(12));
    let before: BTreeMap<String, NodeId> =
        listed(&world).into_iter().map(|(node, spec)| (spec.task.to_string(), node)).collect();
    world.dead.insert(node("n3"));
    end(&mut world, |task| before[task.as_str()] == node("n1"), 0);
    world.live(15);
    world.dead.clear();
    world.bring_back("n3");
    let after: BTreeMap<String, NodeId> =
        listed(&world).into_iter().map(|(node, spec)| (spec.task.to_string(), node)).collect();
    assert!(after.iter().all(|(task, node)| before.get(task) == Some(node)), "{after:?}");
    drain(&mut world);
    assert_eq!(view(&world).state, JobState::Succeeded);
}

#[test]
fn a_gang_starts_whole_or_waits() {
    let gang = |count| order(&format!("gang: true\ntasks:\n{}", task("g", &format!("    count: {count}\n"))));
    let mut world = started(gang(12));
    assert_eq!(listed(&world).len(), 12);
    let second =
        Order { job: edgeloom_common::job::Job { name: "c".parse().unwrap(), ..gang(4).job }, ..gang(4) };
    world.owner.submit(second).unwrap();
    world.settle();
    for left in [3, 2, 1] {
        let one = listed(&world)[0].1.task.clone();
        end(&mut world, |task| *task == one, 0);
        let waits = world.owner.model().jobs[&"c".parse::<JobName>().unwrap()].phase == Phase::Waiting;
        assert!(waits, "{left} more have to end");
    }
    let one = listed(&world)[0].1.task.clone();
    end(&mut world, |task| *task == one, 0);
    let of_c = listed(&world).iter().filter(|(_, spec)| spec.job.as_str() == "c").count();
    assert_eq!(of_c, 4);
}

#[test]
fn what_can_never_fit_is_refused_and_what_must_wait_says_why() {
    let mut world = World::new();
    let big = "tasks:\n  big:\n    image: r/app:1\n    resources: { cpu: 8000m }\n";
    assert!(world.owner.submit(order(big)).is_err());
    world.owner.submit(super::away::roaming("a", "")).unwrap();
    world.settle();
    let whole = "tasks:\n  whole:\n    image: r/app:1\n    resources: { cpu: 1000m }\n    constraints: [\"node.name == n1\"]\n";
    world.owner.submit(order(whole)).unwrap();
    world.settle();
    let view = view(&world);
    assert_eq!(view.state, JobState::Waiting);
    assert!(view.reason.contains("task whole finds no node"), "{}", view.reason);
}

#[test]
fn a_dry_run_shows_places_and_keeps_nothing() {
    let world = World::new();
    let planned = world.owner.plan(many(40)).unwrap();
    assert_eq!((planned.view.state, planned.view.tasks.len()), (JobState::Planned, 12));
    assert!(world.owner.model().jobs.is_empty());
}

#[test]
fn a_batch_that_runs_can_be_explained() {
    let world = started(many(4));
    assert!(world.owner.question(&name()).is_some());
    world.owner.question(&name()).unwrap().answer();
}

#[test]
fn ecsched_gathers_jobs_until_its_heartbeat() {
    let named = |name: &str| {
        let order = order(&format!("profile: ecsched-dp\ntasks:\n{}", task("work", "")));
        let job = edgeloom_common::job::Job { name: name.parse().unwrap(), ..order.job.clone() };
        Order { job, ..order }
    };
    let mut world = World::new();
    world.live(6);
    for name in ["b", "c", "d"] {
        world.owner.submit(named(name)).unwrap();
        world.settle();
    }
    let placed = |world: &World| listed(world).len();
    let reason = |world: &World, name: &str| world.owner.job(&name.parse().unwrap()).unwrap().reason;
    assert_eq!(placed(&world), 1, "the first comes when the heartbeat is due");
    assert!(reason(&world, "c").starts_with("gathered until"), "{}", reason(&world, "c"));
    world.live(6);
    assert_eq!(placed(&world), 3);
    let plan = world.owner.model().jobs[&"d".parse::<JobName>().unwrap()].plan.clone().unwrap();
    assert!(plan.reasons.iter().any(|reason| reason.contains("over 2 jobs")), "{:?}", plan.reasons);
}

#[test]
fn the_operator_says_what_batches_are_packed_for() {
    let mut world = World::new();
    world.owner.settings.batching.packing.objective = edgeloom_sched::batch::Objective::Utilisation;
    world.owner.submit(many(2)).unwrap();
    let plan = world.owner.model().jobs[&name()].plan.clone().unwrap();
    assert!(plan.reasons.iter().any(|reason| reason.ends_with("for utilisation")), "{:?}", plan.reasons);
}
