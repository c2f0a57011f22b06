//! Requests into the router over a cluster without nodes, and over real sockets where those matter.

mod batches;
mod drain;
mod identity;
mod images;
mod jobs;
mod measure;
mod metrics;
mod prefetch;
mod secrets;
mod volumes;

use super::{Api, Guard, Joining, router, serve};
use crate::logs::Logs;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::routing::get;
use edgeloom_cluster::{Cluster, CopyKeys, NodeMessage, Registries, Settings};
use edgeloom_common::desired::Pool;
use edgeloom_common::report::Status;
use edgeloom_common::usage::UsageList;
use edgeloom_common::view::{EventList, JobList, JobView, NodeList, Problem};
use edgeloom_identity::Identity;
use http_body_util::BodyExt;
use std::net::SocketAddr;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;

/// A job that every rule of the document accepts.
const JOB: &str = "
kind: Job
name: three
source: { node: n1, item: 60KB, rate: 10/s }
tasks:
  detect:
    image: 127.0.0.1:9/pipeline:1
    resources: { cpu: 100m, memory: 32MiB }
    work: 5ms
    inputs: [source]
    outputs: { track: 4KB }
  track:
    image: 127.0.0.1:9/pipeline:1
    resources: { cpu: 100m, memory: 32MiB }
    work: 5ms
";

struct Fixture {
    router: Router,
    api: Api,
    cluster: Cluster,
    _state: TempDir,
    logs: Logs,
    /// What cluster and logs publish; whoever plays the agents takes it.
    published: Option<mpsc::Receiver<edgeloom_cluster::Publish>>,
}

fn fixture() -> Fixture {
    with_registries(Vec::new())
}

fn with_registries(insecure: Vec<String>) -> Fixture {
    let state = tempfile::tempdir().unwrap();
    let settings = Settings {
        cluster: "test".parse().unwrap(),
        state_dir: state.path().to_owned(),
        profile: "edgeloom".to_owned(),
        scoring: edgeloom_sched::scoring::Scoring::default(),
        batching: edgeloom_cluster::Batching::default(),
        pool: Pool { network: [10, 77, 0, 0].into(), prefix_len: 16, gateway: [10, 77, 0, 1].into() },
        registries: Registries { insecure, ..Registries::default() },
        copy_keys: CopyKeys::new(&[]),
        follow: None,
        secrets_key: state.path().join("secrets.key"),
        prices: None,
    };
    let (publish, published) = mpsc::channel(64);
    let cluster = Cluster::start(settings, publish.clone()).unwrap();
    let logs = Logs::new(publish);
    let identity = Identity::open(edgeloom_identity::Settings {
        cluster: "test".parse().unwrap(),
        directory: state.path().join("identity"),
        names: vec!["127.0.0.1".to_owned()],
    })
    .unwrap();
    let api = Api {
        cluster: cluster.clone(),
        logs: logs.clone(),
        identity,
        guard: Guard::Open,
        joining: Joining::Here { mqtt_port: 8883 },
    };
    let router = router(api.clone());
    Fixture { router, cluster, logs, api, _state: state, published: Some(published) }
}

impl Fixture {
    async fn ask(&self, method: Method, path: &str, body: impl Into<Body>) -> (StatusCode, Vec<u8>) {
        let request = Request::builder().method(method).uri(path).body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let kind = response.headers().get("content-type").cloned();
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        if status.is_client_error() || status.is_server_error() {
            assert_eq!(kind.unwrap(), "application/problem+json", "{path}");
        }
        (status, body)
    }

    async fn refused(&self, method: Method, path: &str, body: impl Into<Body>) -> Problem {
        let (status, body) = self.ask(method, path, body).await;
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem.status, status.as_u16());
        assert!(!problem.detail.is_empty());
        problem
    }

    async fn job_count(&self) -> usize {
        let (_, body) = self.ask(Method::GET, "/v1/jobs", Body::empty()).await;
        serde_json::from_slice::<JobList>(&body).unwrap().jobs.len()
    }
}

#[tokio::test]
async fn documents_that_are_no_job_are_refused_and_change_nothing() {
    let fixture = fixture();
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("no document", Vec::new(), "body.unreadable"),
        ("only space", b" \n ".to_vec(), "body.unreadable"),
        ("invalid UTF-8", b"kind: Job\nname: \xff\xfe".to_vec(), "body.unreadable"),
        ("no YAML", b"kind: [Job\n}".to_vec(), "job.invalid"),
        ("YAML that is no job", b"- 1\n- 2\n".to_vec(), "job.invalid"),
        ("unknown field", JOB.replace("work: 5ms", "wrok: 5ms").into_bytes(), "job.invalid"),
        (
            "cycle",
            JOB.replace("    outputs: { track: 4KB }", "    outputs: { track: 4KB, detect: 1KB }")
                .into_bytes(),
            "job.invalid",
        ),
        ("rate without unit", JOB.replace("rate: 10/s", "rate: 10").into_bytes(), "job.invalid"),
        ("too large", vec![b'x'; 10_000_000], "body.too-large"),
    ];
    for (case, body, code) in cases {
        for path in ["/v1/jobs", "/v1/jobs?dry_run=true"] {
            let problem = fixture.refused(Method::POST, path, body.clone()).await;
            assert_eq!(problem.code, code, "{case}: {problem:?}");
            if code == "job.invalid" {
                assert!(!problem.problems.is_empty(), "{case} names no problem");
            }
        }
    }
    assert_eq!(fixture.job_count().await, 0);
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let fixture = fixture();
    let cases = [
        (Method::GET, "/v1/jobs/ghost", 404, "job.unknown"),
        (Method::GET, "/v1/jobs/ghost/explain", 404, "job.unknown"),
        (Method::GET, "/v1/jobs/ghost/logs", 404, "job.unknown"),
        (Method::DELETE, "/v1/jobs/ghost", 404, "job.unknown"),
        (Method::GET, "/v1/jobs/No%20Name", 404, "job.unknown"),
        (Method::GET, "/v1/jobs/%ff%fe", 400, "path.unreadable"),
        (Method::GET, "/v1/jobs/a/logs?tail=many", 400, "query.invalid"),
        (Method::GET, "/v1/jobs/a/logs?fellow=true", 400, "query.invalid"),
        (Method::POST, "/v1/jobs?dryrun=true", 400, "query.invalid"),
        (Method::GET, "/v1/events?job=No%20Name", 404, "job.unknown"),
        (Method::GET, "/v1/events?after=-1", 400, "query.invalid"),
        (Method::GET, "/v1/events?jobs=a", 400, "query.invalid"),
        (Method::GET, "/v1/usage?job=No%20Name", 404, "job.unknown"),
        (Method::GET, "/v1/usage?limit=0", 400, "query.invalid"),
        (Method::GET, "/v1/usage?limit=1001", 400, "query.invalid"),
        (Method::GET, "/v1/usage?since_ms=-1", 400, "query.invalid"),
        (Method::GET, "/v1/usage?since_ms=2&until_ms=2", 400, "query.invalid"),
        (Method::GET, "/v1/usage?task=a", 400, "query.invalid"),
        (Method::GET, "/v2/jobs", 404, "path.unknown"),
        (Method::PUT, "/v1/jobs", 405, "method.unknown"),
        (Method::POST, "/v1/nodes", 405, "method.unknown"),
    ];
    for (method, path, status, code) in cases {
        let problem = fixture.refused(method, path, Body::empty()).await;
        assert_eq!((problem.status, problem.code.as_str()), (status, code), "{path}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let fixture = fixture();
    let request = Request::builder().method(Method::PUT).uri("/v1/jobs").body(Body::empty()).unwrap();
    let response = fixture.router.oneshot(request).await.unwrap();
    assert!(response.headers()["allow"].to_str().unwrap().contains("POST"));
}

#[tokio::test]
async fn an_empty_cluster_answers() {
    let fixture = fixture();
    let (status, body) = fixture.ask(Method::GET, "/v1/nodes", Body::empty()).await;
    assert_eq!((status, serde_json::from_slice::<NodeList>(&body).unwrap().nodes.len()), (StatusCode::OK, 0));
    assert_eq!(fixture.ask(Method::GET, "/livez", Body::empty()).await.0, StatusCode::OK);
    assert_eq!(fixture.ask(Method::GET, "/readyz", Body::empty()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn events_are_listed_after_a_number_and_by_job() {
    let fixture = fixture();
    for online in [true, false] {
        let status = NodeMessage::Status(Status::new(online, 1));
        fixture.cluster.observe("n1".parse().unwrap(), status).await;
    }
    let list = async |path: &str| {
        let (status, body) = fixture.ask(Method::GET, path, Body::empty()).await;
        assert_eq!(status, StatusCode::OK);
        serde_json::from_slice::<EventList>(&body).unwrap().events
    };
    let all = list("/v1/events").await;
    let kinds: Vec<_> = all.iter().map(|event| (event.number, event.kind.as_str())).collect();
    assert_eq!(kinds, [(1, "node-up"), (2, "node-down")]);
    assert_eq!(list("/v1/events?after=1").await, all[1..]);
    assert!(list("/v1/events?after=2").await.is_empty());
    assert!(list("/v1/events?job=ghost").await.is_empty());
}

#[tokio::test]
async fn the_usage_of_a_cluster_without_jobs_is_empty_and_says_since_when() {
    let fixture = fixture();
    // The accounts begin with the owner's first beat.
    let mut beats = fixture.cluster.beats();
    beats.changed().await.unwrap();
    for path in ["/v1/usage", "/v1/usage?job=ghost&since_ms=1&until_ms=2&after=7&limit=1000"] {
        let (status, body) = fixture.ask(Method::GET, path, Body::empty()).await;
        let list: UsageList = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, list.records.len(), list.next, list.tariff), (StatusCode::OK, 0, None, None));
        assert!(list.counted_since_ms > 0);
    }
}

#[tokio::test]
async fn a_dry_run_leaves_no_job() {
    let fixture = fixture();
    let (status, body) = fixture.ask(Method::POST, "/v1/jobs?dry_run=true", JOB).await;
    if status == StatusCode::OK {
        serde_json::from_slice::<JobView>(&body).unwrap();
    } else {
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert!(
            ["job.invalid", "job.unplaceable", "image.unknown", "registry.unreachable"]
                .contains(&problem.code.as_str()),
            "{problem:?}"
        );
    }
    assert_eq!(fixture.job_count().await, 0);
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    async fn panics() -> &'static str {
        panic!("not for the client")
    }
    let router: Router =
        Router::new().route("/", get(panics)).layer(CatchPanicLayer::custom(super::error::after_panic));
    let response = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let problem: Problem = serde_json::from_slice(&body).unwrap();
    assert!(!problem.detail.contains("not for the client"));
}

async fn listening(fixture: &Fixture) -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(serve::serve(listener, None, fixture.router.clone(), stop.clone()));
    (address, stop)
}

async fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_large_body_gets_its_answer_over_a_real_connection() {
    let fixture = fixture();
    let (address, _stop) = listening(&fixture).await;
    let mut request =
        b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 10000000\r\n\r\n"
            .to_vec();
    request.resize(request.len() + 10_000_000, b'x');
    let answer = exchange(address, &request).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("body.too-large"), "{answer}");
}

#[tokio::test]
async fn silent_clients_hold_up_nobody() {
    let fixture = fixture();
    let (address, _stop) = listening(&fixture).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /livez HTT").await.unwrap();
        silent.push(stream);
    }
    let answer = exchange(address, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    // The silent ones are sent away in the end, which frees their places.
    let mut rest = Vec::new();
    silent.pop().unwrap().read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn a_stopped_server_takes_no_more() {
    let fixture = fixture();
    let (address, stop) = listening(&fixture).await;
    exchange(address, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    stop.cancel();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
