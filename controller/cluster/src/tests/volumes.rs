//! Tasks with volumes: beside their data, or waiting for it.

use super::away::{node, place, roaming, view};
use super::world::{NODES, World, inventory, with_images};
use crate::error::{SubmitError, VolumeError};
use crate::nodes::NodeMessage;
use crate::owner::Order;
use edgeloom_common::job::{Attribute, Constraint, HostPort, Mount, Origin, Protocol};
use edgeloom_common::report::{Capabilities, Inventory};
use edgeloom_common::view::JobState;
use edgeloom_common::volume::HeldVolume;

fn data() -> Mount {
    Mount { from: Origin::Volume("data".parse().unwrap()), path: "/data".to_owned(), read_only: false }
}

/// Job `a`, whose task `detect` has a volume. Its tasks have the same port of the host, so they are apart.
fn keeping() -> World {
    let mut world = World::of(&["n1", "n2", "n3", "n4"]);
    let mut order = roaming("a", "");
    let port = HostPort { port: 8080, protocol: Protocol::Tcp, container: 80 };
    order.job.tasks.values_mut().for_each(|task| task.placement.ports.push(port));
    let detect = order.job.tasks.get_mut(&"detect".parse().unwrap()).unwrap();
    detect.placement.mounts.push(data());
    world.owner.submit(order).unwrap();
    world.settle();
    world.live(20);
    assert_eq!(view(&world).state, JobState::Running);
    world
}

#[test]
fn a_task_waits_for_the_lost_node_that_has_its_data() {
    let mut world = keeping();
    let home = place(&world, "detect");
    let spec =
        world.held[&node(&home)].containers.iter().find(|spec| spec.task.as_str() == "detect").cloned();
    let spec = spec.unwrap();
    assert_eq!((spec.mounts, spec.ports[0].container), (vec![data()], 80));
    world.power_off(&home);
    world.live(120);
    assert_eq!(place(&world, "detect"), home);
    let told = view(&world);
    assert!(told.state != JobState::Running && told.reason.contains("is lost"), "{told:?}");
    world.bring_back(&home);
    world.live(60);
    assert_eq!((view(&world).state, place(&world, "detect")), (JobState::Running, home));
}

#[test]
fn the_rest_of_its_job_moves_all_the_same() {
    let mut world = keeping();
    let (home, other) = (place(&world, "detect"), place(&world, "track"));
    assert_ne!(home, other);
    world.power_off(&other);
    world.live(120);
    assert_eq!((place(&world, "detect"), view(&world).state), (home, JobState::Running));
    assert_ne!(place(&world, "track"), other);
}

#[test]
fn a_folder_of_the_host_is_given_only_where_nodes_let_it() {
    let mut world = World::of(&NODES);
    let text = "kind: Job\nname: a\ntasks:\n  t: { image: \"r/app:1\", volumes: [{ host: /srv/maps, path: /maps }] }\n";
    let order = || with_images(edgeloom_common::job::parse(text.as_bytes()).unwrap());
    let refused = format!("{:?}", world.owner.submit(order()).unwrap_err());
    assert!(refused.contains("does not let containers have /srv/maps"), "{refused}");
    let capabilities = Capabilities { host_folders: vec!["/srv".to_owned()], ..inventory().capabilities };
    let opened = NodeMessage::Inventory(Box::new(Inventory { capabilities, ..inventory() }));
    world.owner.observe(&node("n2"), opened);
    world.owner.submit(order()).unwrap();
    world.settle();
    world.live(20);
    assert_eq!((place(&world, "t"), view(&world).state), ("n2".to_owned(), JobState::Running));
}

/// Job `a` has run on `home` and is gone.
fn left() -> (World, String) {
    let mut world = keeping();
    let home = place(&world, "detect");
    stop(&mut world);
    (world, home)
}

fn stop(world: &mut World) {
    world.owner.stop(&"a".parse().unwrap()).unwrap();
    world.settle();
    world.live(5);
    assert!(world.owner.model().jobs.is_empty());
}

/// Job `a` as in [`keeping`], without the ports.
fn again(constraint: &str) -> Order {
    let mut order = roaming("a", "");
    let detect = order.job.tasks.get_mut(&"detect".parse().unwrap()).unwrap();
    detect.placement.mounts.push(data());
    if !constraint.is_empty() {
        let value = constraint.to_owned();
        detect.constraints.push(Constraint { attribute: Attribute::Name, equal: true, value });
    }
    order
}

#[test]
fn a_job_of_the_same_name_goes_where_its_data_is_also_after_a_restart() {
    for name in ["n2", "n3", "n4"] {
        let mut world = World::of(&["n1", "n2", "n3", "n4"]);
        world.owner.submit(again(name)).unwrap();
        world.settle();
        stop(&mut world);
        let mut world = world.restart();
        world.connect();
        let planned = world.owner.plan(again("")).unwrap().view;
        assert!(planned.tasks.iter().any(|task| task.name.as_str() == "detect" && task.node == node(name)));
        world.owner.submit(again("")).unwrap();
        world.settle();
        world.live(20);
        assert_eq!((place(&world, "detect"), view(&world).state), (name.to_owned(), JobState::Running));
        assert_eq!(view(&world).notes, Vec::<String>::new());
    }
}

#[test]
fn it_waits_while_the_node_that_has_its_data_is_away_and_says_so() {
    let (mut world, home) = left();
    world.power_off(&home);
    world.live(120);
    let waits = world.owner.submit(again("")).unwrap();
    assert_eq!(waits.state, JobState::Waiting);
    let note = format!("`edgeloom volume remove {home} a/detect/data` gives that data up");
    assert!(waits.notes.iter().any(|it| it.ends_with(&note)), "{waits:?}");
    world.bring_back(&home);
    world.live(60);
    assert_eq!((place(&world, "detect"), view(&world).state), (home, JobState::Running));
}

#[test]
fn without_the_data_it_goes_anywhere_again() {
    let (mut world, home) = left();
    world.power_off(&home);
    world.live(120);
    world.owner.submit(again("")).unwrap();
    world.live(5);
    assert_eq!(view(&world).state, JobState::Waiting);
    world.owner.forget(&node(&home)).unwrap();
    world.settle();
    world.live(60);
    assert_eq!(view(&world).state, JobState::Running);
    assert_ne!(place(&world, "detect"), home);
}

#[test]
fn a_constraint_against_the_data_is_refused_with_the_way_out() {
    let (mut world, home) = left();
    let other = if home == "n2" { "n3" } else { "n2" };
    let Err(SubmitError::Unplaceable(problems)) = world.owner.submit(again(other)) else { panic!() };
    assert_eq!(problems[0].field, "tasks.detect.volumes");
    assert!(problems[0].problem.contains(&home) && problems[0].remedy.contains("volume remove"));
    let volume: HeldVolume = "a/detect/data".parse().unwrap();
    world.owner.may_remove(&node(&home), &volume).unwrap();
    world.kept.clear();
    world.owner.forget_volume(&node(&home), &volume);
    world.owner.submit(again(other)).unwrap();
    world.settle();
    world.live(20);
    assert_eq!((place(&world, "detect"), view(&world).state), (other.to_owned(), JobState::Running));
}

#[test]
fn data_that_is_not_used_is_told_of_and_only_a_gone_jobs_is_let_go() {
    let mut world = keeping();
    let (home, volume): (_, HeldVolume) = (place(&world, "detect"), "a/detect/data".parse().unwrap());
    let other = ["n2", "n3", "n4"].into_iter().find(|name| *name != home).unwrap();
    let refused = world.owner.may_remove(&node(&home), &volume);
    assert_eq!(refused, Err(VolumeError::Used(volume.clone())));
    let unknown = world.owner.may_remove(&node(other), &volume);
    assert!(matches!(unknown, Err(VolumeError::Unknown { .. })), "{unknown:?}");
    world.kept.insert(node(other), vec![volume.clone()]);
    world.connect();
    let [note] = &view(&world).notes[..] else { panic!("{:?}", view(&world).notes) };
    assert!(note.contains(&format!("on node {home}; node {other} has one")), "{note}");
    let listed: Vec<_> = world.owner.volumes().into_iter().map(|it| (it.node.to_string(), it.used)).collect();
    assert!(listed.contains(&(home.clone(), true)) && listed.contains(&(other.to_owned(), true)));
    stop(&mut world);
    world.cut_off(other);
    assert_eq!(world.owner.may_remove(&node(other), &volume), Err(VolumeError::Offline(node(other))));
    world.owner.may_remove(&node(&home), &volume).unwrap();
}
