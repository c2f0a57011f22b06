//! What losses call for, by job, whereabouts and time.

use super::world::{World, order};
use crate::lost::{Remedy, losses, pinned, returned};
use crate::model::{Event, Model};
use crate::nodes::{GATHER_MS, NodeMessage, Nodes, SILENCE_MS};
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::report::{Report, Status};
use edgeloom_sched::plan::JobPlan;
use std::collections::BTreeSet;

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

fn task(text: &str) -> TaskName {
    text.parse().unwrap()
}

fn say(nodes: &mut Nodes, name: &str, message: NodeMessage, now_ms: u64) {
    nodes.observe(&node(name), message, now_ms, &"home".parse().unwrap());
}

fn birth(nodes: &mut Nodes, name: &str, now_ms: u64) {
    say(nodes, name, NodeMessage::Status(Status::new(true, 1)), now_ms);
}

/// Time goes on to `until_ms`; these nodes report each second.
fn pass(nodes: &mut Nodes, from_ms: u64, until_ms: u64, alive: &[&str]) {
    for now_ms in (from_ms..=until_ms).step_by(1_000) {
        alive.iter().for_each(|name| say(nodes, name, NodeMessage::Report(Report::default()), now_ms));
        nodes.expire(now_ms);
    }
}

/// Source on n1, detect on n2, track on n3, all of it confirmed.
fn model(change: impl FnOnce(&mut crate::model::JobRecord)) -> Model {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    let mut model = world.owner.model().clone();
    change(model.jobs.get_mut(&"a".parse().unwrap()).unwrap());
    model
}

/// n1 and n3 are there, n2 was last heard at second 10.
fn without_n2(until_ms: u64) -> Nodes {
    let mut nodes = Nodes::default();
    ["n1", "n2", "n3"].iter().for_each(|name| birth(&mut nodes, name, 1_000));
    pass(&mut nodes, 1_000, 10_000, &["n1", "n2", "n3"]);
    pass(&mut nodes, 11_000, until_ms, &["n1", "n3"]);
    nodes
}

fn remedy(model: &Model, nodes: &Nodes, now_ms: u64) -> Option<Remedy> {
    losses(model, nodes, now_ms).pop().map(|loss| loss.remedy)
}

#[test]
fn a_node_is_lost_once_it_has_been_away_for_the_jobs_time() {
    let model = model(|record| record.job.disconnect.lost_after_s = 30);
    assert_eq!(remedy(&model, &without_n2(39_000), 39_000), None);
    assert_eq!(remedy(&model, &without_n2(40_000), 40_000), Some(Remedy::Replace));
}

#[test]
fn a_lost_source_or_a_job_that_says_so_waits() {
    let mut model = model(|record| record.job.disconnect.replace = false);
    let Some(Remedy::Wait(why)) = remedy(&model, &without_n2(90_000), 90_000) else { panic!() };
    assert!(why.contains("replace: false"), "{why}");
    let record = model.jobs.get_mut(&"a".parse().unwrap()).unwrap();
    record.job.disconnect.replace = true;
    record.job.source.as_mut().unwrap().node = node("n2");
    let Some(Remedy::Wait(why)) = remedy(&model, &without_n2(90_000), 90_000) else { panic!() };
    assert!(why.starts_with("node n2 is lost and the source stays on it"), "{why}");
}

#[test]
fn a_node_that_may_still_run_a_task_is_waited_for_until_it_is_lost_too() {
    let mut model = model(|record| {
        record.left.insert((task("detect"), node("n3")));
    });
    let mut nodes = without_n2(60_000);
    pass(&mut nodes, 61_000, 70_000, &["n1"]);
    say(&mut nodes, "n3", NodeMessage::Status(Status::new(false, 1)), 70_000);
    // Of the plan only n2 is gone; n3 was tried in its place.
    let plan = model.jobs.get_mut(&"a".parse().unwrap()).unwrap().plan.as_mut().unwrap();
    plan.placement.retain(|_, at| *at != node("n3"));
    plan.flows.clear();
    let Some(Remedy::Wait(why)) = remedy(&model, &nodes, 75_000) else { panic!() };
    assert!(why.ends_with("task detect may still run on n3, which is offline"), "{why}");
    pass(&mut nodes, 71_000, 131_000, &["n1"]);
    let found = losses(&model, &nodes, 131_000).pop().unwrap();
    assert_eq!((found.remedy, found.nodes), (Remedy::Replace, BTreeSet::from([node("n2"), node("n3")])));
}

#[test]
fn nobody_is_lost_while_nobody_is_there_nor_before_all_could_come_back() {
    let model = model(|_| {});
    let mut nodes = without_n2(30_000);
    let gone_ms = 30_000 + SILENCE_MS + 1_000;
    pass(&mut nodes, 31_000, gone_ms + 600_000, &[]);
    assert_eq!(nodes.away_ms(&node("n2"), gone_ms + 600_000), Some(0));
    let back_ms = gone_ms + 601_000;
    say(&mut nodes, "n1", NodeMessage::Report(Report::default()), back_ms);
    say(&mut nodes, "n3", NodeMessage::Report(Report::default()), back_ms);
    let lost_ms = back_ms + GATHER_MS + 60_000;
    pass(&mut nodes, back_ms, lost_ms - 1_000, &["n1", "n3"]);
    assert_eq!(remedy(&model, &nodes, lost_ms - 1_000), None);
    pass(&mut nodes, lost_ms, lost_ms, &["n1", "n3"]);
    assert_eq!(remedy(&model, &nodes, lost_ms), Some(Remedy::Replace));
}

#[test]
fn a_node_that_was_never_heard_of_since_the_start_counts_from_the_first_one_that_was() {
    let mut nodes = Nodes::default();
    assert_eq!(nodes.away_ms(&node("n2"), 999_000), Some(0));
    birth(&mut nodes, "n1", 5_000);
    pass(&mut nodes, 5_000, 60_000, &["n1"]);
    assert_eq!(nodes.away_ms(&node("n2"), 60_000), Some(55_000 - GATHER_MS));
}

#[test]
fn tasks_are_held_where_they_are_but_for_those_on_lost_nodes() {
    let model = model(|_| {});
    let record = &model.jobs[&"a".parse().unwrap()];
    let held = pinned(record, &BTreeSet::from([node("n2")]));
    let extra = |name: &str| {
        held.job.tasks[&task(name)].constraints.len() - record.job.tasks[&task(name)].constraints.len()
    };
    assert_eq!((extra("detect"), extra("track")), (0, 1));
}

#[test]
fn a_returned_job_is_held_where_it_began() {
    let mut model = model(|_| {});
    let name = "a".parse().unwrap();
    let mut plan: JobPlan = model.jobs[&name].plan.clone().unwrap();
    plan.placement.insert(task("detect"), node("n3"));
    let record = &model.jobs[&name];
    let commit = crate::model::Commit {
        plan: plan.clone(),
        addresses: record.addresses.clone(),
        bytes_predicted: record.bytes_predicted.clone(),
        lost: BTreeSet::from([node("n2")]),
        at_ms: 0,
    };
    let address = record.addresses[&task("detect")];
    model.apply(Event::Committed { commits: vec![commit] });
    let record = &model.jobs[&name];
    assert_eq!(record.moved[&task("detect")], node("n2"));
    let strays: Vec<_> = model.cut_off[&node("n2")].iter().map(|stray| stray.address).collect();
    assert_eq!(strays, [address]);
    let back = returned(record);
    assert_eq!(back.plan, Some(plan));
    assert_eq!(back.job.tasks[&task("detect")].constraints.last().unwrap().value, "n2");
}
