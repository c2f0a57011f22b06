//! Nodes that are lost while something is on its way: a move in each of its phases, a stop, a replacement;
//! with and without a controller that starts again at that moment.

use super::away::{no_doubles, node, place, roaming, view, world, world_of};
use super::world::World;
use crate::error::ForgetError;
use crate::model::{Commit, Event};
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::view::JobState;
use std::collections::BTreeSet;

const FOUR: [&str; 4] = ["n1", "n2", "n3", "n4"];

fn name() -> JobName {
    "a".parse().unwrap()
}

/// A plan that has detect on the lowest node where nothing of the job is; gives old and new node.
fn start_move(world: &mut World) -> (String, String) {
    let record = world.owner.model().jobs[&name()].clone();
    let (mut plan, old) = (record.plan.clone().unwrap(), place(world, "detect"));
    let taken: BTreeSet<&NodeId> = plan.placement.values().collect();
    let new = FOUR.iter().map(|name| node(name)).find(|node| !taken.contains(node)).unwrap();
    let beside = plan.placement[&"track".parse().unwrap()].clone();
    for flow in &mut plan.flows {
        let (from, to) = (flow.id.from.as_str(), flow.id.to.as_str());
        let path = if to == "detect" { [node("n1"), new.clone()] } else { [new.clone(), beside.clone()] };
        assert!(to == "detect" || from == "detect");
        flow.path = path.to_vec();
    }
    if !plan.flows.iter().any(|flow| flow.id.from.as_str() == "detect") {
        let mut flow = plan.flows[0].clone();
        flow.id.from = "detect".parse().unwrap();
        flow.id.to = "track".parse().unwrap();
        flow.path = vec![new.clone(), beside];
        plan.flows.push(flow);
    }
    plan.placement.insert("detect".parse().unwrap(), new.clone());
    let (addresses, bytes_predicted) = (record.addresses, record.bytes_predicted);
    let commit = Commit { plan, addresses, bytes_predicted, lost: BTreeSet::new(), at_ms: 0 };
    world.owner.state.commit(Event::Committed { commits: vec![commit] }).unwrap();
    world.owner.advance();
    (old, new.to_string())
}

fn restarted(world: World, restart: bool) -> World {
    if !restart {
        return world;
    }
    let mut world = world.restart();
    world.connect();
    world.show();
    world.settle();
    world
}

/// The job runs, all of it on living nodes, and nothing else runs anywhere.
fn runs_once(world: &mut World, context: &str) {
    let job = view(world);
    let told = world.owner.events.after(0, None);
    assert_eq!(job.state, JobState::Running, "{context}: {job:?} {told:?}");
    for task in &job.tasks {
        assert!(!world.dead.contains(&task.node), "{context}: {} on {}", task.name, task.node);
    }
    no_doubles(world);
}

#[test]
fn a_node_lost_in_any_phase_of_a_move_leaves_the_job_running_elsewhere() {
    for restart in [false, true] {
        for at_new_node in [false, true] {
            for turns in 0..9 {
                let context = format!("restart {restart}, new node {at_new_node}, after {turns} turns");
                let mut world = world_of(&FOUR, "");
                let (old, new) = start_move(&mut world);
                for _ in 0..turns {
                    world.turn();
                }
                let victim = if at_new_node { new } else { old };
                world.power_off(&victim);
                let mut world = restarted(world, restart);
                world.live(if restart { 130 } else { 90 });
                runs_once(&mut world, &context);
                world.bring_back(&victim);
                world.live(60);
                runs_once(&mut world, &context);
                assert!(world.owner.model().cut_off.is_empty(), "{context}");
                assert!(world.owner.model().settled(), "{context}");
            }
        }
    }
}

#[test]
fn a_node_lost_while_tasks_of_another_are_replaced_ends_on_those_that_are_left() {
    for restart in [false, true] {
        for seconds in 29..36 {
            let context = format!("restart {restart}, after {seconds} s");
            let mut world = world_of(&FOUR, "");
            let first = place(&world, "detect");
            world.power_off(&first);
            world.live(seconds);
            let second = ["n2", "n3", "n4"].into_iter().find(|name| {
                *name != first && (place(&world, "detect") == *name || place(&world, "track") == *name)
            });
            let second = second.unwrap_or(if first == "n2" { "n3" } else { "n2" });
            world.power_off(second);
            let mut world = restarted(world, restart);
            world.live(200);
            runs_once(&mut world, &context);
            for back in [first.as_str(), second] {
                world.bring_back(back);
                no_doubles(&world);
            }
            world.live(60);
            runs_once(&mut world, &context);
            assert!(world.owner.model().cut_off.is_empty(), "{context}");
        }
    }
}

#[test]
fn a_returning_node_in_any_step_of_its_replacement_doubles_nothing() {
    for turns in 0..9 {
        let mut world = world_of(&FOUR, "");
        let victim = place(&world, "detect");
        world.cut_off(&victim);
        world.live(29);
        for node in world.alive() {
            let report = edgeloom_common::report::Report::default();
            world.owner.observe(&node, crate::nodes::NodeMessage::Report(report));
        }
        world.pass(1_000);
        for _ in 0..turns {
            world.turn();
        }
        world.bring_back(&victim);
        no_doubles(&world);
        world.live(120);
        runs_once(&mut world, &format!("after {turns} turns"));
        assert!(world.owner.model().settled() && world.owner.model().cut_off.is_empty());
    }
}

#[test]
fn addresses_of_a_stopped_job_are_kept_from_others_while_a_lost_node_may_have_them() {
    for restart in [false, true] {
        for turns in 0..5 {
            let mut world = world("");
            let (victim, addresses) = (place(&world, "detect"), view(&world).tasks);
            let there: Vec<_> =
                addresses.iter().filter(|task| task.node.as_str() == victim).map(|it| it.address).collect();
            world.owner.stop(&name()).unwrap();
            for _ in 0..turns {
                world.turn();
            }
            let had = world.held[&node(&victim)].containers.len();
            world.power_off(&victim);
            let mut world = restarted(world, restart);
            world.live(60);
            assert!(world.owner.job(&name()).is_none(), "it is gone, after {turns} turns");
            world.owner.submit(roaming("b", "")).unwrap();
            world.settle();
            let given: Vec<_> = world.owner.job(&"b".parse().unwrap()).unwrap().tasks;
            let given: Vec<_> = given.into_iter().map(|task| task.address).collect();
            if had > 0 {
                assert!(there.iter().all(|address| !given.contains(address)), "after {turns} turns");
            }
            world.bring_back(&victim);
            world.live(5);
            assert!(world.owner.model().cut_off.is_empty());
            assert!(world.held[&node(&victim)].containers.iter().all(|spec| spec.job != name()));
            no_doubles(&world);
        }
    }
}

#[test]
fn a_node_that_will_not_come_back_is_forgotten_with_what_it_may_have() {
    let mut world = world("");
    let victim = place(&world, "detect");
    assert_eq!(world.owner.forget(&node(&victim)), Err(ForgetError::Online(node(&victim))));
    world.power_off(&victim);
    world.live(20);
    let used = ForgetError::Used { node: node(&victim), job: name() };
    assert_eq!(world.owner.forget(&node(&victim)), Err(used));
    world.live(30);
    assert_eq!(world.owner.model().cut_off.len(), 1);
    world.owner.forget(&node(&victim)).unwrap();
    assert_eq!(world.owner.forget(&node(&victim)), Err(ForgetError::Unknown(node(&victim))));
    let mut world = restarted(world, true);
    assert!(
        world.owner.model().cut_off.is_empty() && !world.owner.model().published.contains_key(&node(&victim))
    );
    world.live(100);
    runs_once(&mut world, "without it");
    world.bring_back(&victim);
    world.live(10);
    assert!(world.held[&node(&victim)].containers.is_empty(), "it begins anew");
}
