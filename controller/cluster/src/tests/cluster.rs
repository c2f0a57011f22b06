//! Jobs on a cluster of simulated nodes, the real scheduler deciding.

use super::world::{World, order};
use crate::error::SubmitError;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::job::LOST_AFTER_S;
use edgeloom_common::units::Bytes;
use edgeloom_common::view::JobState;

fn name(text: &str) -> JobName {
    text.parse().unwrap()
}

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

fn state(world: &World, job: &str) -> Option<JobState> {
    world.owner.job(&name(job)).map(|view| view.state)
}

#[test]
fn a_job_goes_out_in_steps_and_runs() {
    let mut world = World::new();
    let view = world.owner.submit(order("a")).unwrap();
    assert_eq!((view.state, view.tasks.len(), view.flows.len()), (JobState::Starting, 3, 2));
    world.settle();
    assert_eq!(state(&world, "a"), Some(JobState::Running));
    let first = |node: &str| world.arrivals.iter().find(|it| it.node.as_str() == node).unwrap();
    assert!(first("n1").containers.is_empty(), "the source starts before its way is prepared");
    assert!(first("n1").flows.is_empty() && !first("n1").routes.is_empty() && !first("n1").images.is_empty());
    assert_eq!(first("n3").containers.len(), 1, "the last task sends nothing and may start at once");
    let source = &world.held[&node("n1")].containers[0];
    assert_eq!(source.environment["EDGELOOM_OUT_DETECT"], format!("{}:7000", view.tasks[0].address.unwrap()));
    assert_eq!(view.tasks.iter().map(|task| task.bytes_predicted).collect::<Vec<_>>(), [105, 105, 105]);
    assert_eq!(world.owner.submit(order("a")), Err(SubmitError::Exists(name("a"))));
}

#[test]
fn a_job_waits_while_a_node_has_yet_to_tell_what_it_has() {
    let mut world = World::new().restart();
    let view = world.owner.submit(order("a")).unwrap();
    assert_eq!(view.state, JobState::Waiting, "a new controller has heard of no node");
    world.connect();
    world.settle();
    assert_eq!(state(&world, "a"), Some(JobState::Running));
    let mut large = order("b");
    let detect = large.job.tasks.get_mut(&"detect".parse::<TaskName>().unwrap()).unwrap();
    detect.program.resources.memory = Bytes(1 << 50);
    assert!(
        matches!(world.owner.submit(large), Err(SubmitError::Unplaceable(_))),
        "no node will ever have it"
    );
}

#[test]
fn a_dry_run_changes_nothing() {
    let mut world = World::new();
    let view = world.owner.plan(order("a")).unwrap().view;
    assert_eq!((view.state, view.tasks.len()), (JobState::Planned, 3));
    world.settle();
    assert!(world.arrivals.is_empty() && state(&world, "a").is_none());
}

#[test]
fn a_stopped_job_leaves_nothing_and_its_addresses_are_given_again() {
    let mut world = World::new();
    let first = world.owner.submit(order("a")).unwrap();
    world.settle();
    assert_eq!(world.owner.stop(&name("a")).unwrap().state, JobState::Stopping);
    world.settle();
    assert_eq!(state(&world, "a"), None);
    for held in world.held.values() {
        assert!(
            held.containers.is_empty()
                && held.flows.is_empty()
                && held.routes.is_empty()
                && held.images.is_empty()
        );
    }
    assert_eq!(world.owner.submit(order("b")).unwrap().tasks[0].address, first.tasks[0].address);
}

#[test]
fn a_restart_at_any_step_ends_where_no_restart_does() {
    let mut straight = World::new();
    straight.owner.submit(order("a")).unwrap();
    straight.settle();
    for turns in 0..6 {
        let mut world = World::new();
        world.owner.submit(order("a")).unwrap();
        for _ in 0..turns {
            world.turn();
        }
        let mut world = world.restart();
        world.connect();
        world.settle();
        assert_eq!(state(&world, "a"), Some(JobState::Running), "after {turns} turns");
        for (node, held) in &world.held {
            let other = &straight.held[node];
            assert_eq!(
                (&held.containers, &held.flows, &held.routes),
                (&other.containers, &other.flows, &other.routes)
            );
            assert_eq!(held.epoch, other.epoch);
        }
    }
}

#[test]
fn a_restart_of_the_controller_sends_only_what_nodes_hold_already() {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    let before = world.held.clone();
    let mut world = world.restart();
    world.owner.tick();
    world.connect();
    world.settle();
    assert_eq!(world.held, before);
}

#[test]
fn a_node_that_dies_at_the_first_step_takes_the_commit_back() {
    let mut world = World::new();
    world.dead.insert(node("n2"));
    world.owner.submit(order("a")).unwrap();
    world.settle();
    assert_eq!(state(&world, "a"), Some(JobState::Starting));
    world.pass(10_000);
    world.settle();
    let view = world.owner.job(&name("a")).unwrap();
    assert_eq!(view.state, JobState::Waiting);
    assert!(view.reason.starts_with("not confirmed by n2"), "{}", view.reason);
    for (_, held) in world.held.iter().filter(|(node, _)| node.as_str() != "n2") {
        assert!(held.containers.is_empty() && held.flows.is_empty());
    }
    world.dead.clear();
    world.connect();
    world.settle();
    assert_eq!(state(&world, "a"), Some(JobState::Running), "the node is back and the job is placed again");
}

#[test]
fn a_dead_node_does_not_hold_up_a_stop_for_ever() {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    world.dead.insert(node("n3"));
    world.owner.stop(&name("a")).unwrap();
    for _ in 0..4 {
        world.settle();
        world.pass(10_000);
    }
    assert_eq!(state(&world, "a"), None);
}

#[test]
fn a_lost_document_is_sent_again_when_the_node_shows_an_older_one() {
    let mut world = World::new();
    world.dead.insert(node("n2"));
    world.owner.submit(order("a")).unwrap();
    world.turn();
    world.dead.clear();
    world.connect();
    world.settle();
    assert_eq!(state(&world, "a"), Some(JobState::Running));
}

#[test]
fn a_stopped_job_is_listed_until_a_node_that_is_away_for_a_moment_is_back_or_lost() {
    for returns in [true, false] {
        let mut world = World::new();
        world.owner.submit(order("a")).unwrap();
        world.settle();
        world.cut_off("n2");
        world.owner.stop(&name("a")).unwrap();
        world.live(10);
        assert_eq!(state(&world, "a"), Some(JobState::Stopping), "its container may run on n2");
        if returns {
            world.bring_back("n2");
        } else {
            world.live(LOST_AFTER_S.into());
        }
        assert_eq!(state(&world, "a"), None);
    }
}
