//! Nodes that take nothing new, over nodes of the test's own.

use super::jobs::{inventory, links};
use super::*;
use edgeloom_cluster::NodeMessage;
use edgeloom_common::report::Status;
use edgeloom_common::view::{ConsolidationView, NodeList, NodeView};

/// Two nodes that are ready, and run nothing.
async fn two_nodes() -> Fixture {
    let fixture = fixture();
    for name in ["n1", "n2"] {
        let messages = [
            NodeMessage::Status(Status::new(true, 1)),
            NodeMessage::Inventory(Box::new(inventory())),
            NodeMessage::Links(links()),
        ];
        for message in messages {
            fixture.cluster.observe(name.parse().unwrap(), message).await;
        }
    }
    fixture
}

#[tokio::test]
async fn a_node_is_drained_shown_so_and_opened_again() {
    let fixture = two_nodes().await;
    let ask = async |verb: &str| {
        let (status, body) = fixture.ask(Method::POST, &format!("/v1/nodes/n1/{verb}"), Body::empty()).await;
        (status, serde_json::from_slice::<NodeView>(&body).unwrap().cordon)
    };
    let (status, cordon) = ask("drain").await;
    assert_eq!((status, cordon.unwrap().drain), (StatusCode::ACCEPTED, true));
    assert!(ask("drain").await.1.unwrap().drain, "a second time changes nothing");
    let (_, body) = fixture.ask(Method::GET, "/v1/nodes", Body::empty()).await;
    let list: NodeList = serde_json::from_slice(&body).unwrap();
    let cordons: Vec<bool> = list.nodes.iter().map(|node| node.cordon.is_some()).collect();
    assert_eq!(cordons, [true, false]);
    let problem = fixture.refused(Method::POST, "/v1/nodes/n2/drain", Body::empty()).await;
    assert_eq!((problem.status, problem.code.as_str()), (409, "node.last"));
    let (status, cordon) = ask("cordon").await;
    assert_eq!((status, cordon.unwrap().drain), (StatusCode::OK, false));
    assert_eq!(ask("uncordon").await, (StatusCode::OK, None));
    assert_eq!(ask("uncordon").await, (StatusCode::OK, None));
}

#[tokio::test]
async fn nodes_that_are_not_there_are_told() {
    let fixture = two_nodes().await;
    for path in ["n9/drain", "n9/cordon", "n9/uncordon", "No%20Node/drain"] {
        let problem = fixture.refused(Method::POST, &format!("/v1/nodes/{path}"), Body::empty()).await;
        assert_eq!((problem.status, problem.code.as_str()), (404, "node.unknown"), "{path}");
    }
}

#[tokio::test]
async fn empty_nodes_are_named_and_drained_but_for_the_last() {
    let fixture = two_nodes().await;
    let ask = async |method| {
        let (status, body) = fixture.ask(method, "/v1/consolidation", Body::empty()).await;
        (status, serde_json::from_slice::<ConsolidationView>(&body).unwrap())
    };
    let (status, view) = ask(Method::GET).await;
    assert_eq!((status, view.applied, view.nodes.len(), view.kept.len()), (StatusCode::OK, false, 1, 1));
    assert_eq!(view.nodes[0].node.as_str(), "n1");
    assert!(view.nodes[0].moves.is_empty());
    let (status, applied) = ask(Method::POST).await;
    assert_eq!((status, applied.applied, applied.nodes), (StatusCode::ACCEPTED, true, view.nodes));
    let (_, again) = ask(Method::POST).await;
    assert!(again.nodes.is_empty(), "what is drained is not emptied again");
}
