//! `GET /metrics`, read back as its specification has it.

use super::super::{Guard, router};
use super::{Fixture, JOB, with_registries};
use crate::metrics::read::{Families, read};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use edgeloom_cluster::NodeMessage;
use edgeloom_cluster::fake::{image, serve};
use edgeloom_common::desired::Version;
use edgeloom_common::report::{Observed, PullState, Status};
use edgeloom_common::samples;
use edgeloom_common::units::Bytes;
use tower::ServiceExt;

fn pull(image: &str, took_ms: u64) -> PullState {
    PullState {
        image: image.to_owned(),
        bytes_fetched: Bytes(10_000_000),
        bytes_total: None,
        layers: 1,
        took_ms: Some(took_ms),
        bytes_elsewhere: Bytes(0),
        done: true,
        error: String::new(),
    }
}

async fn observe(fixture: &Fixture, pulls: Vec<PullState>) {
    let observed = Observed { pulls, ..samples::observed(Version::default(), Vec::new()) };
    fixture.cluster.observe("n1".parse().unwrap(), NodeMessage::Observed(observed)).await;
}

async fn metrics(fixture: &Fixture) -> Families {
    let (status, body) = fixture.ask(Method::GET, "/metrics", Body::empty()).await;
    assert_eq!(status, StatusCode::OK);
    read(std::str::from_utf8(&body).unwrap())
}

#[tokio::test]
async fn counters_never_fall_and_count_each_pull_and_request_once() {
    let registry = serve(image(&[30, 20])).await;
    let fixture = with_registries(vec![registry.clone()]);
    fixture.cluster.observe("n1".parse().unwrap(), NodeMessage::Status(Status::new(true, 1))).await;
    observe(&fixture, vec![pull("a", 8_164)]).await;
    let before = metrics(&fixture).await;
    let job = |name: &str| JOB.replace("127.0.0.1:9/pipeline:1", &format!("{registry}/{name}"));
    fixture.ask(Method::POST, "/v1/jobs?dry_run=true", job("app:1")).await;
    fixture.ask(Method::POST, "/v1/jobs?dry_run=true", job("no/such:1@sha256:12")).await;
    let broken = PullState { done: false, took_ms: None, error: "no such blob".to_owned(), ..pull("c", 0) };
    observe(&fixture, vec![pull("a", 8_164), pull("b", 8_164), broken]).await;
    let after = metrics(&fixture).await;
    for (name, (kind, samples)) in before.iter().filter(|(_, (kind, _))| kind != "gauge") {
        for (sample, value) in samples {
            assert!(after[name].1[sample] >= *value, "{kind} {sample} fell");
        }
    }
    let value = |families: &Families, family: &str, labels: &str| {
        families[family].1.get(&format!("{family}{labels}")).copied()
    };
    assert_eq!(value(&before, "edgeloom_pulls_total", r#"{node="n1"}"#), Some(1.0));
    assert_eq!(value(&after, "edgeloom_pulls_total", r#"{node="n1"}"#), Some(2.0));
    assert_eq!(value(&after, "edgeloom_pulls_failing", r#"{node="n1"}"#), Some(1.0));
    assert_eq!(value(&after, "edgeloom_nodes", r#"{state="joining"}"#), Some(1.0));
    assert_eq!(value(&after, "edgeloom_jobs", r#"{state="running"}"#), Some(0.0));
    let requests = |families, method| {
        let labels = format!(r#"{{registry="{registry}",method="{method}"}}"#);
        value(families, "edgeloom_registry_requests_total", &labels)
    };
    assert_eq!(requests(&before, "GET"), None);
    assert!(requests(&after, "GET") > Some(0.0) && requests(&after, "HEAD") > Some(0.0));
    let goodput = value(&after, "edgeloom_node_goodput_bytes_per_second", r#"{node="n1"}"#).unwrap();
    assert!((1_200_000.0..1_500_000.0).contains(&goodput), "bytes, not bits: {goodput}");
}

#[tokio::test]
async fn they_take_a_token_that_may_read() {
    let mut fixture = with_registries(Vec::new());
    fixture.api.guard = Guard::Tokens;
    fixture.router = router(fixture.api.clone());
    let token = fixture.token(edgeloom_common::join::Scope::Read);
    let ask = async |authorization: Option<String>| {
        let mut request = Request::get("/metrics");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Body::empty()).unwrap();
        fixture.router.clone().oneshot(request).await.unwrap()
    };
    assert_eq!(ask(None).await.status(), StatusCode::UNAUTHORIZED);
    let answer = ask(Some(format!("Bearer {}", token.expose()))).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
}
