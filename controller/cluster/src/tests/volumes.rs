//! Tasks with volumes: beside their data, or waiting for it.

use super::away::{node, place, roaming, view};
use super::world::{NODES, World, inventory, with_images};
use crate::nodes::NodeMessage;
use edgeloom_common::job::{HostPort, Mount, Origin, Protocol};
use edgeloom_common::report::{Capabilities, Inventory};
use edgeloom_common::view::JobState;

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
