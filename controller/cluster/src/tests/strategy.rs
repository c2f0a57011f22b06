//! The paper's job configuration (Fig. 5) becomes its strategy document (Fig. 7), byte for byte.
//!
//! The cluster makes the paper's outcome the planner's own choice: n1 has room for task0 beside the source,
//! n2 is the fastest node, n3 the only one with room for two tasks, n4 a relay without room. The links form a
//! square n1-n2-n4-n3.

use super::world::{inventory, owner, with_images};
use crate::nodes::NodeMessage;
use crate::owner::{Order, Owner};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{Inventory, Links, Status};
use edgeloom_common::samples;
use edgeloom_common::units::MilliCores;
use edgeloom_common::view::{JobState, StrategyView};
use std::net::Ipv4Addr;

const DOCUMENT: &[u8] = include_bytes!("../../../../examples/jobs/four-functions.yaml");
const GOLDEN: &str = include_str!("golden/four-functions.strategy.json");

/// Name, millicores, core speed and neighbours.
const SQUARE: [(&str, u32, f64, [&str; 2]); 4] = [
    ("n1", 400, 1.0, ["n2", "n3"]),
    ("n2", 400, 2.0, ["n1", "n4"]),
    ("n3", 700, 1.0, ["n1", "n4"]),
    ("n4", 100, 1.0, ["n2", "n3"]),
];

fn square() -> (Owner, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (mut owner, _published) = owner(&dir, 1_000);
    for (name, cpu, core_speed, neighbours) in SQUARE {
        let node: NodeId = name.parse().unwrap();
        let link = |peer: &str| samples::link(peer, Ipv4Addr::new(10, 61, 0, name.as_bytes()[1]));
        let inventory = Inventory { cpu: MilliCores(cpu), core_speed, ..inventory() };
        owner.observe(&node, NodeMessage::Status(Status::new(true, 1)));
        owner.observe(&node, NodeMessage::Inventory(Box::new(inventory)));
        owner.observe(&node, NodeMessage::Links(Links { schema: 1, links: neighbours.map(link).into() }));
    }
    (owner, dir)
}

fn order() -> Order {
    with_images(edgeloom_common::job::parse(DOCUMENT).unwrap_or_else(|problems| panic!("{problems:#?}")))
}

fn text(strategy: &StrategyView) -> String {
    serde_json::to_string_pretty(strategy).unwrap() + "\n"
}

#[test]
fn the_papers_configuration_becomes_its_strategy_document() {
    let (owner, _dir) = square();
    let view = owner.plan(order()).unwrap().view;
    assert_eq!((view.state, view.reason.as_str()), (JobState::Planned, ""));
    assert_eq!(text(&view.strategy.unwrap()), GOLDEN);
}

#[test]
fn the_running_job_shows_the_strategy_that_was_planned() {
    let (mut owner, _dir) = square();
    let planned = owner.plan(order()).unwrap().view.strategy.unwrap();
    let running = owner.submit(order()).unwrap().strategy.unwrap();
    assert_eq!(running, planned);
    assert_eq!(serde_json::from_str::<StrategyView>(GOLDEN).unwrap(), planned, "it reads back whole");
}
