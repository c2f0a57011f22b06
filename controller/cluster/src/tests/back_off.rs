//! What is not done again without end: commits that a node does not carry out, documents of a raised epoch.

use super::away::{node, place, roaming, view, world};
use super::world::{World, observed};
use crate::nodes::NodeMessage;
use edgeloom_common::desired::Version;
use edgeloom_common::view::JobState;

fn placed(world: &World) -> usize {
    world.owner.events.after(0, None).into_iter().filter(|event| event.kind == "placed").count()
}

#[test]
fn a_commit_that_its_only_node_never_carries_out_is_made_ever_more_seldom() {
    let mut world = World::new();
    world.refusing.insert((node("n1"), "source".parse().unwrap()));
    world.owner.submit(roaming("a", "")).unwrap();
    world.settle();
    let mut counts = Vec::new();
    for _ in 0..4 {
        world.live(300);
        counts.push(placed(&world));
    }
    assert!((4..=10).contains(&counts[0]), "{counts:?}");
    assert!(counts[3] <= counts[0] + 4, "{counts:?}");
    let job = view(&world);
    assert!(job.state == JobState::Waiting && job.reason.contains("tried again in"), "{job:?}");
    world.refusing.clear();
    world.show();
    world.live(310);
    assert_eq!(view(&world).state, JobState::Running);
}

#[test]
fn a_replacement_that_its_node_does_not_carry_out_is_made_ever_more_seldom() {
    let mut world = world("");
    let victim = place(&world, "detect");
    let other = if victim == "n2" { "n3" } else { "n2" };
    world.refusing.insert((node(other), "detect".parse().unwrap()));
    world.power_off(&victim);
    world.live(900);
    let replans = view(&world).replans;
    assert!((3..=12).contains(&replans), "{replans} {:?}", world.owner.events.after(0, None));
    world.refusing.clear();
    world.show();
    world.live(310);
    assert_eq!(view(&world).state, JobState::Running, "{:?}", world.owner.events.after(0, None));
}

#[test]
fn an_imported_state_raises_the_epoch_only_for_the_node_that_is_ahead() {
    let mut world = world("");
    world.owner.state.model.overrules = true;
    let mut ahead = observed(&world.held[&node("n2")]);
    ahead.version = Version { epoch: 5, generation: 1 };
    world.held.get_mut(&node("n2")).unwrap().epoch = 5;
    world.owner.observe(&node("n2"), NodeMessage::Observed(ahead));
    for _ in 0..10 {
        let links = super::world::links("n2");
        world.owner.observe(&node("n2"), NodeMessage::Links(links));
    }
    world.settle();
    let told: Vec<_> = world.arrivals.iter().map(|it| (it.node.as_str(), it.epoch)).collect();
    let epoch = world.owner.model().epoch;
    assert!(epoch > 5);
    assert_eq!(told, [("n2", epoch)]);
    assert_eq!(view(&world).state, JobState::Running);
}

#[test]
fn a_node_that_an_imported_state_never_sent_a_document_raises_the_epoch_once() {
    let mut world = world("");
    world.owner.state.model.overrules = true;
    let (stranger, mut seen) = (node("n9"), observed(&world.held[&node("n2")]));
    seen.version = Version { epoch: 7, generation: 3 };
    world.owner.observe(&stranger, NodeMessage::Observed(seen.clone()));
    let epoch = world.owner.model().epoch;
    assert!(epoch > 7);
    for _ in 0..10 {
        world.owner.observe(&stranger, NodeMessage::Observed(seen.clone()));
    }
    assert_eq!(world.owner.model().epoch, epoch);
    world.settle();
    let others = world.arrivals.iter().filter(|document| document.node != stranger);
    assert_eq!(others.count(), 0);
}
