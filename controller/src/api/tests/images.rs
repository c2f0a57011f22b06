//! Images of the registries, and what registries tell.

use super::with_registries;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use edgeloom_cluster::NodeMessage;
use edgeloom_cluster::fake::{image, serve};
use edgeloom_common::images::{ImageList, ImageState};
use edgeloom_common::report::{Inventory, LayerInventory, Status};
use edgeloom_common::samples;

fn inventory(image_ids: Vec<String>) -> Inventory {
    let layers = LayerInventory { image_ids, ..LayerInventory::default() };
    Inventory { layers, ..samples::inventory("test") }
}

#[tokio::test]
async fn images_are_listed_with_their_layers_and_the_nodes_that_have_them() {
    let registry = serve(image(&[30, 20])).await;
    let mut fixture = with_registries(vec![registry.clone()]);
    // Nobody takes what is published here.
    let mut published = fixture.published.take().unwrap();
    tokio::spawn(async move { while published.recv().await.is_some() {} });
    let job = super::JOB.replace("127.0.0.1:9/pipeline:1", &format!("{registry}/app:1"));
    fixture.ask(Method::POST, "/v1/jobs?dry_run=true", job).await;
    let list = async |query: &str| {
        let (status, body) = fixture.ask(Method::GET, &format!("/v1/images{query}"), Body::empty()).await;
        assert_eq!(status, StatusCode::OK);
        serde_json::from_slice::<ImageList>(&body).unwrap().images
    };
    let found = list("").await;
    let [image] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((image.name.clone(), image.state), (format!("{registry}/app:1"), ImageState::Current));
    let platform = &image.platforms[0];
    assert_eq!((platform.architecture.as_str(), platform.layers.len(), image.nodes.len()), ("amd64", 2, 0));
    assert!(platform.compressed_bytes > 50 && image.seen_ms > 0);
    let node: edgeloom_common::ids::NodeId = "n1".parse().unwrap();
    fixture.cluster.observe(node.clone(), NodeMessage::Status(Status::new(true, 1))).await;
    let inventory = inventory(vec![platform.image_id.clone()]);
    fixture.cluster.observe(node.clone(), NodeMessage::Inventory(Box::new(inventory))).await;
    assert_eq!(list("?name=app").await[0].nodes, [node]);
    assert!(list("?name=other").await.is_empty());
    let problem = fixture.refused(Method::GET, "/v1/images?nmae=x", Body::empty()).await;
    assert_eq!(problem.status, 400);
}

#[tokio::test]
async fn notifications_are_taken_whatever_registry_they_are_of_and_garbage_is_refused() {
    let fixture = with_registries(Vec::new());
    let events =
        r#"{"events":[{"action":"push","target":{"repository":"a","tag":"1"},"request":{"host":"x"}}]}"#;
    for (query, body) in [("", events), ("?registry=reg.lan:5000", events), ("", "{\"events\":[]}")] {
        let (status, _) = fixture.ask(Method::POST, &format!("/v1/registry/events{query}"), body).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
    }
    for (query, body) in [("", "[1]"), ("", ""), ("?registry=http://x", events), ("?other=1", events)] {
        let problem = fixture.refused(Method::POST, &format!("/v1/registry/events{query}"), body).await;
        assert_eq!(problem.status, 400, "{query} {body}");
    }
}
