//! The profiler over HTTP, with a registry in the process and agents that answer as they are told.

use super::{Fixture, with_registries};
use crate::logs::Logs;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use edgeloom_cluster::{NodeMessage, Publish, fake};
use edgeloom_common::ids::NodeId;
use edgeloom_common::measure::{
    MeasureCommand, MeasureLine, MeasureOutcome, MeasureReply, MeasureRow, Measured, ProfileList,
};
use edgeloom_common::report::{Inventory, Links, Reply, Status};
use edgeloom_common::topics::parse_command;
use edgeloom_common::units::Bytes;
use http_body_util::BodyExt;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tower::ServiceExt;

const NODES: [(&str, &str); 3] = [("n1", "pi4"), ("n2", "pi4"), ("n3", "nano")];

/// What an agent answers to a command; none: it stays silent.
type Answer = fn(&MeasureCommand) -> Vec<MeasureReply>;

/// Where each command went.
type Asked = Arc<Mutex<Vec<(NodeId, MeasureCommand)>>>;

struct Bench {
    fixture: Fixture,
    registry: String,
    asked: Asked,
}

fn measured(_: &MeasureCommand) -> Vec<MeasureReply> {
    let measured = Measured { wall_s: 0.04, cpu_s: 0.02, memory_peak: Bytes(5_000_000) };
    vec![MeasureReply::Queued, MeasureReply::Running { seconds: 1 }, MeasureReply::Measured(measured)]
}

async fn agents(logs: Logs, mut published: mpsc::Receiver<Publish>, (answer, asked): (Answer, Asked)) {
    while let Some(publish) = published.recv().await {
        for (name, _) in NODES {
            let node: NodeId = name.parse().unwrap();
            let Some(("measure", id)) = parse_command(&node, &publish.topic) else { continue };
            let command: MeasureCommand = serde_json::from_slice(&publish.payload).unwrap();
            let words = answer(&command);
            asked.lock().unwrap().push((node.clone(), command));
            for (sequence, word) in (0..).zip(&words) {
                let last = matches!(word, MeasureReply::Measured(_) | MeasureReply::Failed { .. });
                let text = serde_json::to_string(word).unwrap();
                logs.reply(&node, Reply { id, sequence, text, last, error: String::new() });
            }
        }
    }
}

async fn bench(answer: Answer) -> Bench {
    let registry = fake::serve(fake::image(&[30, 20])).await;
    let mut fixture = with_registries(vec![registry.clone()]);
    for (name, class) in NODES {
        let node: NodeId = name.parse().unwrap();
        let inventory = Inventory { class: class.to_owned(), ..super::jobs::inventory() };
        for message in [
            NodeMessage::Status(Status::new(true, 1)),
            NodeMessage::Inventory(Box::new(inventory)),
            NodeMessage::Links(Links { schema: 1, links: Vec::new() }),
        ] {
            fixture.cluster.observe(node.clone(), message).await;
        }
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let published = fixture.published.take().unwrap();
    tokio::spawn(agents(fixture.logs.clone(), published, (answer, Arc::clone(&asked))));
    Bench { fixture, registry, asked }
}

impl Bench {
    fn text(&self) -> String {
        let registry = &self.registry;
        format!(
            "kind: Job\nname: one\nsource: {{ node: n1, item: 10KB }}\ntasks:\n  detect:\n    \
             image: {registry}/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    inputs: [source]\n    \
             measure: {{ command: [measure], items: 20 }}\n"
        )
    }

    async fn lines(&self, query: &str, text: String) -> Vec<MeasureLine> {
        let (status, body) = self.fixture.ask(Method::POST, &format!("/v1/measure{query}"), text).await;
        assert_eq!(status, StatusCode::OK);
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    async fn rows(&self, query: &str, text: String) -> Vec<MeasureRow> {
        match self.lines(query, text).await.pop() {
            Some(MeasureLine::Done { rows }) => rows,
            other => panic!("the last line is {other:?}"),
        }
    }

    async fn kept(&self) -> usize {
        let (_, body) = self.fixture.ask(Method::GET, "/v1/profiles", Body::empty()).await;
        serde_json::from_slice::<ProfileList>(&body).unwrap().profiles.len()
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn outcomes(rows: &[MeasureRow]) -> Vec<(&str, MeasureOutcome)> {
    rows.iter().map(|row| (row.class.as_str(), row.outcome)).collect()
}

#[tokio::test]
async fn every_class_is_measured_with_progress_and_kept_until_asked_again() {
    use MeasureOutcome::{Kept, New};
    let bench = bench(measured).await;
    let lines = bench.lines("", bench.text()).await;
    assert!(
        lines.iter().any(|line| matches!(line, MeasureLine::Progress { text, .. } if text == "runs for 1 s"))
    );
    assert_eq!(lines.iter().filter(|line| matches!(line, MeasureLine::Row(_))).count(), 2);
    let Some(MeasureLine::Done { rows }) = lines.last() else { panic!("{lines:?}") };
    assert_eq!(outcomes(rows), [("nano", New), ("pi4", New)]);
    let profile = rows[0].profile.as_ref().unwrap();
    assert_eq!((profile.wall_s_measured, profile.memory_peak_bytes), (0.04, 5_000_000));
    assert_eq!((bench.asked(), bench.kept().await), (2, 2));
    assert_eq!(outcomes(&bench.rows("", bench.text()).await), [("nano", Kept), ("pi4", Kept)]);
    assert_eq!(bench.asked(), 2, "nobody was asked for what is kept");
    let rows = bench.rows("?again=true&timeout_s=9", bench.text()).await;
    assert_eq!(outcomes(&rows), [("nano", New), ("pi4", New)]);
    assert_eq!((bench.asked(), bench.kept().await), (4, 2));
    assert_eq!(bench.asked.lock().unwrap()[3].1.timeout_s, 9);
}

#[tokio::test]
async fn a_program_that_two_tasks_run_is_measured_once() {
    let bench = bench(measured).await;
    let second = "  other:\n    image: R/app:1\n    resources: { cpu: 100m, memory: 16MiB }\n    inputs: [source]\n    \
                  measure: { command: [measure], items: 20 }\n";
    let rows = bench.rows("", bench.text() + &second.replace('R', &bench.registry)).await;
    assert_eq!((rows.len(), bench.asked(), bench.kept().await), (4, 2, 2));
}

#[tokio::test]
async fn a_failed_run_keeps_nothing_and_tells_why() {
    let bench = bench(|_| {
        let log = vec!["no model".to_owned(); 50];
        vec![MeasureReply::Failed { reason: "exit code 3".to_owned(), exit_code: Some(3), log }]
    })
    .await;
    let rows = bench.rows("", bench.text()).await;
    assert!(rows.iter().all(|row| row.reason == "exit code 3" && row.log.len() == 10), "{rows:?}");
    assert_eq!(bench.kept().await, 0);
    let (_, jobs) = bench.fixture.ask(Method::GET, "/v1/jobs", Body::empty()).await;
    assert_eq!(jobs, br#"{"jobs":[]}"#);
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_run_at_the_agent() {
    let bench = bench(|_| vec![MeasureReply::Running { seconds: 1 }]).await;
    let request = Request::post("/v1/measure").body(Body::from(bench.text())).unwrap();
    let response = bench.fixture.router.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    while bench.asked.lock().unwrap().iter().filter(|(_, command)| command.cancel).count() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.kept().await, 0);
}

#[tokio::test]
async fn an_agent_that_says_nothing_or_nonsense_is_named() {
    let silent = bench(|_| Vec::new()).await;
    tokio::time::pause();
    let rows = silent.rows("", silent.text()).await;
    assert!(rows.iter().all(|row| row.reason.contains("does not answer")), "{rows:?}");
    tokio::time::resume();
    let nonsense =
        bench(|_| vec![MeasureReply::Measured(Measured { wall_s: -1.0, cpu_s: 0.0, memory_peak: Bytes(0) })])
            .await;
    let rows = nonsense.rows("", nonsense.text()).await;
    assert!(rows.iter().all(|row| row.reason.contains("are not kept")), "{rows:?}");
    assert_eq!(nonsense.kept().await, 0);
}

#[tokio::test]
async fn what_cannot_be_measured_is_refused_or_told() {
    let bench = bench(measured).await;
    let refused = |text: String| bench.fixture.refused(Method::POST, "/v1/measure", text);
    let without = refused(bench.text().replace("measure: { command: [measure], items: 20 }", "")).await;
    assert_eq!((without.status, without.problems[0].line), (422, 4));
    assert!(without.problems[0].problem.contains("no task has a `measure` block"));
    let items = refused(bench.text().replace(", items: 20", "")).await;
    assert!(items.problems[0].field.ends_with("measure.items"), "{items:?}");
    assert_eq!(refused(bench.text().replace("app:1", "app:2")).await.code, "image.unknown");
    for query in ["?timeout_s=0", "?timeout_s=3601", "?agian=true"] {
        let path = format!("/v1/measure{query}");
        assert_eq!(bench.fixture.refused(Method::POST, &path, bench.text()).await.code, "query.invalid");
    }
    let nowhere = bench.rows("", bench.text().replace("cpu: 100m", "cpu: 64")).await;
    assert!(nowhere[0].reason.contains("no node can take it"), "{nowhere:?}");
    assert_eq!(bench.asked(), 0);
}
