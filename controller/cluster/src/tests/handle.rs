//! The handle as the daemon uses it: the owner on its thread, a registry on a socket, nodes that confirm.

use super::world::{NODES, inventory, links, nothing, observed};
use crate::{Cluster, CopyKeys, NodeMessage, Publish, Registries, Settings, StopError, SubmitError};
use edgeloom_common::desired::{DesiredState, Pool};
use edgeloom_common::ids::NodeId;
use edgeloom_common::job::Job;
use edgeloom_common::report::Status;
use edgeloom_common::view::{JobState, JobView, ProblemItem};
use edgeloom_registry::fake::{Answers, image, serve};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

struct Fixture {
    cluster: Cluster,
    registry: String,
    state: TempDir,
}

/// A cluster of three nodes that apply and confirm whatever is published to them.
async fn fixture() -> Fixture {
    with_registry(serve(image(&[30, 20])).await).await
}

async fn with_registry(registry: String) -> Fixture {
    let state = tempfile::tempdir().unwrap();
    let settings = Settings {
        cluster: "home".parse().unwrap(),
        state_dir: state.path().to_owned(),
        profile: "edgeloom".to_owned(),
        scoring: edgeloom_sched::scoring::Scoring::default(),
        batching: crate::Batching::default(),
        pool: Pool { network: [10, 77, 0, 0].into(), prefix_len: 16, gateway: [10, 77, 0, 1].into() },
        registries: Registries {
            insecure: vec![registry.clone(), "127.0.0.1:1".to_owned()],
            ..Registries::default()
        },
        copy_keys: CopyKeys::new(&[]),
        follow: None,
        secrets_key: state.path().join("secrets.key"),
        prices: None,
    };
    let (outgoing, mut published) = mpsc::channel::<Publish>(64);
    let cluster = Cluster::start(settings, outgoing).unwrap();
    for name in NODES {
        let node: NodeId = name.parse().unwrap();
        let hello = [
            NodeMessage::Status(Status::new(true, 1)),
            NodeMessage::Inventory(Box::new(inventory())),
            NodeMessage::Links(links(name)),
            NodeMessage::Observed(nothing(name)),
        ];
        for message in hello {
            cluster.observe(node.clone(), message).await;
        }
    }
    let nodes = cluster.clone();
    tokio::spawn(async move {
        while let Some(publish) = published.recv().await {
            let document: DesiredState = serde_json::from_slice(&publish.payload).unwrap();
            nodes.observe(document.node.clone(), NodeMessage::Observed(observed(&document))).await;
        }
    });
    let fixture = Fixture { cluster, registry, state };
    fixture.quiet().await;
    fixture
}

impl Fixture {
    /// Waits until every node has confirmed what was sent to it.
    async fn quiet(&self) {
        until(async || {
            let nodes = self.cluster.nodes().await;
            (nodes.len() == NODES.len() && nodes.iter().all(|node| node.converged)).then_some(())
        })
        .await;
    }

    fn text(&self, name: &str) -> String {
        let registry = &self.registry;
        format!(
            "kind: Job\nname: {name}\nsource: {{ node: n1, item: 10KB }}\ntasks:\n  detect:\n    \
             image: {registry}/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    work: 1ms\n    inputs: [source]\n"
        )
    }

    fn job(&self, name: &str) -> Job {
        read(&self.text(name))
    }

    /// Everything that outlives the controller: the journal's bytes, and each node's version.
    async fn traces(&self) -> (Vec<u8>, Vec<(u64, u64)>) {
        let versions = self.cluster.nodes().await.iter().map(|node| node.version_sent).collect();
        (std::fs::read(self.state.path().join("journal")).unwrap(), versions)
    }
}

fn read(text: &str) -> Job {
    edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Asks again until there is an answer.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            match ask().await {
                Some(answer) => return answer,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("the answer comes")
}

fn unplaceable(error: SubmitError) -> Vec<ProblemItem> {
    match error {
        SubmitError::Unplaceable(problems) => problems,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_job_is_planned_run_found_and_stopped() {
    let fixture = fixture().await;
    let Fixture { cluster, .. } = &fixture;
    let before = fixture.traces().await;
    let planned = cluster.plan(fixture.job("a")).await.unwrap();
    assert_eq!((planned.state, planned.tasks[0].bytes_predicted > 50), (JobState::Planned, true));
    assert_eq!(fixture.traces().await, before, "a plan changes nothing");
    let view = cluster.submit(fixture.job("a")).await.unwrap();
    assert_eq!(view.tasks[0].node, planned.tasks[0].node);
    let name = view.name.clone();
    let runs = |view: Option<JobView>| view.filter(|view| view.state == JobState::Running);
    let running = until(async || runs(cluster.job(&name).await)).await;
    assert_eq!(cluster.task_node(&name, &running.tasks[0].name).await.as_ref(), Some(&running.tasks[0].node));
    assert_eq!((cluster.jobs().await.len(), cluster.ready().await), (1, true));
    assert!(!cluster.explain(&name).await.unwrap().lines.is_empty());
    assert_eq!(cluster.stop(name.clone()).await.unwrap().state, JobState::Stopping);
    until(async || cluster.job(&name).await.is_none().then_some(())).await;
    assert_eq!(cluster.stop(name.clone()).await.unwrap_err(), StopError::Unknown(name.clone()));
}

#[tokio::test]
async fn a_job_that_fits_nowhere_is_told_the_reason_of_each_node() {
    let fixture = fixture().await;
    let before = fixture.traces().await;
    let large = read(&fixture.text("a").replace("memory: 16MiB", "memory: 4GiB"));
    let gpu = fixture.text("a") + "    constraints: [\"node.labels.gpu == true\"]\n";
    for (job, word) in [(large, "memory"), (read(&gpu), "gpu")] {
        let planned = unplaceable(fixture.cluster.plan(job.clone()).await.unwrap_err());
        let problems = unplaceable(fixture.cluster.submit(job).await.unwrap_err());
        assert_eq!(planned, problems);
        assert_eq!(problems.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), NODES);
        for problem in problems {
            assert!(
                problem.problem.starts_with("task detect: ") && problem.problem.contains(word),
                "{problem:?}"
            );
        }
    }
    assert_eq!(fixture.traces().await, before);
    assert!(fixture.cluster.jobs().await.is_empty());
}

#[tokio::test]
async fn what_does_not_exist_is_refused_and_changes_nothing() {
    let fixture = fixture().await;
    let before = fixture.traces().await;
    let text = fixture.text("a");
    let cases = [
        ("no such tag", text.replace("app:1", "app:2"), "image"),
        ("no such repository", text.replace("app:1", "ghost:1"), "image"),
        ("no registry", text.replace(&fixture.registry, "127.0.0.1:1"), "registry"),
        ("no such profile", text.replace("kind: Job\n", "kind: Job\nprofile: ghost\n"), "profile"),
        ("no such node", text.replace("node: n1", "node: n9"), "node"),
    ];
    for (case, text, kind) in cases {
        for submitted in [true, false] {
            let job = read(&text);
            let answer =
                if submitted { fixture.cluster.submit(job).await } else { fixture.cluster.plan(job).await };
            let found = match answer.unwrap_err() {
                SubmitError::ImageUnknown(problems) if problems[0].field == "tasks.detect.image" => "image",
                SubmitError::RegistryUnreachable(_) => "registry",
                SubmitError::ProfileUnknown { profile, .. } if profile == "ghost" => "profile",
                SubmitError::SourceUnknown(node) if node.as_str() == "n9" => "node",
                other => panic!("{case}: {other:?}"),
            };
            assert_eq!(found, kind, "{case}");
        }
    }
    assert_eq!(fixture.traces().await, before);
    assert!(fixture.cluster.jobs().await.is_empty());
}

#[tokio::test]
async fn a_name_in_use_is_refused_until_its_job_is_gone() {
    let fixture = fixture().await;
    let name = fixture.cluster.submit(fixture.job("a")).await.unwrap().name;
    let job = async || fixture.cluster.job(&name).await.filter(|view| view.state == JobState::Running);
    until(job).await;
    fixture.quiet().await;
    let before = fixture.traces().await;
    let other = read(&fixture.text("a").replace("work: 1ms", "work: 2ms"));
    assert_eq!(fixture.cluster.submit(other.clone()).await, Err(SubmitError::Exists(name.clone())));
    assert_eq!(fixture.cluster.plan(other.clone()).await, Err(SubmitError::Exists(name.clone())));
    assert_eq!(fixture.traces().await, before);
    fixture.cluster.stop(name.clone()).await.unwrap();
    until(async || fixture.cluster.job(&name).await.is_none().then_some(())).await;
    fixture.cluster.submit(other).await.unwrap();
}

#[tokio::test]
async fn two_at_once_of_one_name_are_one_job() {
    let fixture = fixture().await;
    let (one, other) =
        tokio::join!(fixture.cluster.submit(fixture.job("a")), fixture.cluster.submit(fixture.job("a")));
    assert_eq!([one.is_ok(), other.is_ok()].iter().filter(|accepted| **accepted).count(), 1);
    assert_eq!(fixture.cluster.jobs().await.len(), 1);
}

/// A registry on a thread of its own, with an address that answers until the second half is dropped.
fn served(answers: Answers) -> (String, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    runtime.spawn(async move { tell.send(serve(answers).await).unwrap() });
    (told.recv().unwrap(), runtime)
}

#[tokio::test]
async fn a_known_image_serves_while_its_registry_is_away_and_the_job_says_so() {
    let (registry, serving) = served(image(&[30, 20]));
    let fixture = with_registry(registry).await;
    let planned = fixture.cluster.plan(fixture.job("a")).await.unwrap();
    assert!(planned.notes.is_empty(), "{:?}", planned.notes);
    serving.shutdown_background();
    let noted = until(async || {
        let planned = fixture.cluster.plan(fixture.job("a")).await.unwrap();
        planned.notes.first().cloned()
    });
    let note = noted.await;
    assert!(note.contains("/app:1 is as it was known before: the registry"), "{note}");
}

#[tokio::test]
async fn an_image_with_a_missing_layer_refuses_the_job_with_the_reason() {
    let mut answers = image(&[30, 20]);
    let is_layer =
        |(path, (_, body)): &(&String, &(u16, Vec<u8>))| path.contains("/blobs/") && body.is_empty();
    let layer = answers.iter().find(is_layer).unwrap().0.clone();
    answers.remove(&layer);
    let fixture = with_registry(serve(answers).await).await;
    let problems = match fixture.cluster.submit(fixture.job("a")).await.unwrap_err() {
        SubmitError::ImageUnknown(problems) => problems,
        other => panic!("{other:?}"),
    };
    assert_eq!(problems[0].field, "tasks.detect.image");
    assert!(problems[0].problem.contains("its layer sha256:"), "{problems:?}");
}
