//! Images that have no variant for some nodes.

use super::away::node;
use super::world::{World, inventory, with_images};
use crate::error::SubmitError;
use crate::nodes::NodeMessage;
use crate::owner::Order;
use edgeloom_common::report::Inventory;
use edgeloom_common::units::MilliCores;
use edgeloom_common::view::JobState;

const JOB: &str =
    "kind: Job\nname: a\ntasks:\n  t: { image: \"r/app:1\", resources: { cpu: 500m, memory: 16MiB } }\n";
const BATCH: &str =
    "kind: Batch\nname: a\ntasks:\n  t: { image: \"r/app:1\", resources: { cpu: 500m, memory: 16MiB } }\n";

/// Three nodes, of which n2 is of another architecture and has by far the most room.
fn mixed() -> World {
    let mut world = World::new();
    let large = Inventory { architecture: "aarch64".to_owned(), cpu: MilliCores(64_000), ..inventory() };
    world.owner.observe(&node("n2"), NodeMessage::Inventory(Box::new(large)));
    world.live(60);
    world
}

/// The job with an image for these platforms.
fn order(text: &str, platforms: &[&str]) -> Order {
    let mut order = with_images(edgeloom_common::job::parse(text.as_bytes()).unwrap());
    for image in order.images.values_mut() {
        let layers = image.platforms.values().next().unwrap().clone();
        image.platforms = platforms.iter().map(|it| ((*it).to_owned(), layers.clone())).collect();
    }
    order
}

fn place(world: &World) -> String {
    super::away::place(world, "t")
}

#[test]
fn a_task_goes_where_its_image_has_a_variant() {
    for text in [JOB, BATCH] {
        for (platforms, nodes) in [
            (&["amd64"][..], &["n1", "n3"][..]),
            (&["arm64"], &["n2"]),
            (&["amd64", "arm64"], &["n1", "n2", "n3"]),
        ] {
            let mut world = mixed();
            world.owner.submit(order(text, platforms)).unwrap();
            assert!(nodes.contains(&place(&world).as_str()), "{platforms:?} on {}", place(&world));
        }
    }
}

#[test]
fn an_image_without_any_variant_for_these_nodes_is_refused_with_that_reason() {
    let mut world = mixed();
    let Err(SubmitError::Unplaceable(problems)) = world.owner.submit(order(JOB, &["riscv64"])) else {
        panic!()
    };
    let told: Vec<&str> = problems.iter().map(|it| it.problem.as_str()).collect();
    assert!(told[0].contains("its image has no variant for amd64"), "{told:?}");
    assert!(told[1].contains("its image has no variant for arm64"), "{told:?}");
}

#[test]
fn what_runs_where_its_image_has_no_variant_stays_and_holds_up_nobody() {
    let mut world = World::new();
    world.owner.submit(order(JOB, &["amd64"])).unwrap();
    world.settle();
    world.live(20);
    let (at, other) = (place(&world), Inventory { architecture: "aarch64".to_owned(), ..inventory() });
    world.owner.observe(&node(&at), NodeMessage::Inventory(Box::new(other)));
    world.live(120);
    assert_eq!(place(&world), at);
    let second = order(&JOB.replace("name: a", "name: b"), &["amd64"]);
    assert_ne!(world.owner.submit(second).unwrap().state, JobState::Waiting);
}
