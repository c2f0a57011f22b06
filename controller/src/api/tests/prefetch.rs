//! Images to hold ready, over a registry of the test's own.

use super::*;
use edgeloom_cluster::fake::{image, serve};
use edgeloom_common::prefetch::{PrefetchList, PrefetchView};

const PATH: &str = "/v1/images/prefetch";

#[tokio::test]
async fn an_image_is_held_ready_listed_and_released() {
    let registry = serve(image(&[1])).await;
    let fixture = with_registries(vec![registry.clone()]);
    let ask = |hold: &str| format!(r#"{{"image":"{registry}/app:1","on":"all","hold":"{hold}"}}"#);
    let (status, body) = fixture.ask(Method::POST, PATH, ask("pinned")).await;
    assert_eq!(status, StatusCode::OK);
    let view: PrefetchView = serde_json::from_slice(&body).unwrap();
    assert!(view.everywhere && view.pinned && view.digest.starts_with("sha256:"), "{view:?}");
    let (_, body) = fixture.ask(Method::GET, PATH, Body::empty()).await;
    let list: PrefetchList = serde_json::from_slice(&body).unwrap();
    assert_eq!(list.images, [view]);
    let (status, _) = fixture.ask(Method::POST, PATH, ask("released")).await;
    assert_eq!(status, StatusCode::OK);
    let problem = fixture.refused(Method::POST, PATH, ask("released")).await;
    assert_eq!((problem.status, problem.code.as_str()), (404, "prefetch.unknown"));
}

#[tokio::test]
async fn what_cannot_be_held_ready_is_refused() {
    let registry = serve(image(&[1])).await;
    let fixture = with_registries(vec![registry.clone(), "127.0.0.1:9".to_owned()]);
    for (body, status, code) in [
        (format!(r#"{{"image":"{registry}/app:2"}}"#), 422, "image.unknown"),
        (r#"{"image":"Not An Image"}"#.to_owned(), 422, "image.unknown"),
        (r#"{"image":"127.0.0.1:9/app:1"}"#.to_owned(), 503, "registry.unreachable"),
        (format!(r#"{{"image":"{registry}/app:1","on":{{"nodes":["n9"]}}}}"#), 422, "node.unknown"),
        (format!(r#"{{"image":"{registry}/app:1","on":{{"nodes":[]}}}}"#), 422, "prefetch.nowhere"),
        (format!(r#"{{"image":"{registry}/app:1","on":"some"}}"#), 400, "body.unreadable"),
        (format!(r#"{{"image":"{registry}/app:1","forever":true}}"#), 400, "body.unreadable"),
        ("{}".to_owned(), 400, "body.unreadable"),
    ] {
        let problem = fixture.refused(Method::POST, PATH, body.clone()).await;
        assert_eq!((problem.status, problem.code.as_str()), (status, code), "{body}");
    }
}
