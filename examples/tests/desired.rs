//! The example of a desired state, written by hand: it reads, nothing in it is ignored, and its flows go
//! the way they say.

use edgeloom_common::desired::{DesiredState, FlowSpec};
use edgeloom_common::ids::NodeId;
use serde_json::Value;

const TEXT: &str = include_str!("../desired/flows.json");

fn document() -> DesiredState {
    serde_json::from_str(TEXT).unwrap()
}

/// The node after `node` on the flow's path.
fn successor<'a>(flow: &'a FlowSpec, node: &NodeId) -> Option<&'a NodeId> {
    flow.path.iter().skip_while(|on_path| *on_path != node).nth(1)
}

#[test]
fn every_word_of_the_document_is_read() {
    let written: Value = serde_json::from_str(TEXT).unwrap();
    assert_eq!(serde_json::to_value(document()).unwrap(), written);
}

#[test]
fn each_flow_goes_on_along_its_path_and_is_shaped_where_it_begins() {
    let document = document();
    for flow in &document.flows {
        assert_eq!(successor(flow, &document.node), Some(&flow.next_hop), "{}", flow.id);
        assert_eq!(flow.rate.is_some(), flow.path[0] == document.node, "{}", flow.id);
    }
    assert!(document.flows.iter().any(|flow| flow.rate.is_some()), "one flow begins here");
    assert!(document.flows.iter().any(|flow| flow.rate.is_none()), "one flow passes");
}
