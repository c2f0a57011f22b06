//! Volumes that nodes keep: listed, and let go by the node itself.

use super::{Fixture, fixture};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use edgeloom_cluster::{NodeMessage, Publish};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{Inventory, Reply, Status};
use edgeloom_common::topics;
use edgeloom_common::volume::{HeldVolume, VolumeCommand, VolumeList};
use tokio::sync::mpsc;

const PATH: &str = "/v1/volumes/n1/gone/keeps/data";

async fn list(fixture: &Fixture) -> Vec<String> {
    let (status, body) = fixture.ask(Method::GET, "/v1/volumes", Body::empty()).await;
    assert_eq!(status, StatusCode::OK);
    let list: VolumeList = serde_json::from_slice(&body).unwrap();
    list.volumes.iter().map(|view| format!("{} {}", view.node, view.volume)).collect()
}

/// The node answers a request to remove the volume with this error, or none.
async fn answer(fixture: &Fixture, published: &mut mpsc::Receiver<Publish>, error: &str) -> VolumeCommand {
    let node: NodeId = "n1".parse().unwrap();
    loop {
        let message = published.recv().await.unwrap();
        if let Some(("volume", id)) = topics::parse_command(&node, &message.topic) {
            let (text, error) = (String::new(), error.to_owned());
            fixture.logs.reply(&node, Reply { id, sequence: 0, text, last: true, error });
            return serde_json::from_slice(&message.payload).unwrap();
        }
    }
}

#[tokio::test]
async fn a_volume_is_listed_until_its_node_has_removed_it() {
    let mut fixture = fixture();
    let mut published = fixture.published.take().unwrap();
    let (node, volume): (NodeId, HeldVolume) = ("n1".parse().unwrap(), "gone/keeps/data".parse().unwrap());
    fixture.cluster.observe(node.clone(), NodeMessage::Status(Status::new(true, 1))).await;
    let inventory = Inventory { volumes: vec![volume.clone()], ..super::jobs::inventory() };
    fixture.cluster.observe(node.clone(), NodeMessage::Inventory(Box::new(inventory))).await;
    assert_eq!(list(&fixture).await, ["n1 gone/keeps/data"]);
    for (path, status, code) in [
        ("/v1/volumes/n2/gone/keeps/data", 404, "volume.unknown"),
        ("/v1/volumes/n1/gone/keeps/other", 404, "volume.unknown"),
        ("/v1/volumes/No%20Name/gone/keeps/data", 404, "node.unknown"),
        ("/v1/volumes/n1/gone/keeps/..%2Fdata", 400, "path.unreadable"),
    ] {
        let problem = fixture.refused(Method::DELETE, path, Body::empty()).await;
        assert_eq!((problem.status, problem.code.as_str()), (status, code), "{path}");
    }
    let asked = fixture.refused(Method::DELETE, PATH, Body::empty());
    let (problem, _) = tokio::join!(asked, answer(&fixture, &mut published, "volume is in use"));
    assert_eq!((problem.status, problem.code.as_str()), (409, "volume.stays"));
    assert!(problem.detail.contains("volume is in use"));
    let asked = fixture.ask(Method::DELETE, PATH, Body::empty());
    let ((status, _), command) = tokio::join!(asked, answer(&fixture, &mut published, ""));
    assert_eq!((status, command), (StatusCode::NO_CONTENT, VolumeCommand { volume, cancel: false }));
    assert!(list(&fixture).await.is_empty());
    fixture.cluster.observe(node, NodeMessage::Status(Status::new(false, 1))).await;
    assert_eq!(fixture.refused(Method::DELETE, PATH, Body::empty()).await.status, 404);
}
