//! The whole worker over a fake engine and a fake kernel: documents in, observed state out.

mod alone;
mod ends;
mod limits;
mod secrets;
mod storage;

use super::act::{Done, Todo};
use super::contact::Contact;
use super::{Command, NodeState, Settings, Worker};
use crate::contact::{ContactFile, Past};
use crate::counts::Counts;
use crate::engine::fake::{DIGEST, FakeEngine, document, found, owner, spec};
use crate::engine::{ContainerEngine, EngineError, FoundState, Hold, Limits, TaskKey};
use crate::network::NetworkThread;
use crate::secrets::SecretFiles;
use crate::store::{DesiredFile, History, StateError};
use crate::wire::Up;
use edgeloom_common::confidential::Confidential;
use edgeloom_common::desired::{ContainerSpec, DesiredState};
use edgeloom_common::report::{ContainerPhase, ContainerState, Observed};
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_net::fake::Fake;
use edgeloom_net::{LinkSettings, Network};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A node that outlives its agents: engine, kernel and disk.
struct Node {
    engine: FakeEngine,
    network: NetworkThread,
    disk: TempDir,
    memory: TempDir,
}

/// One life of the agent on a node.
struct Agent {
    commands: mpsc::Sender<Command>,
    said: mpsc::Receiver<Up>,
    running: JoinHandle<()>,
}

impl Node {
    fn new() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let settings = edgeloom_net::Settings {
            bridge: "edgeloom0".to_owned(),
            links: vec![LinkSettings {
                neighbour: "n2".parse().unwrap(),
                interface: "link0".to_owned(),
                neighbour_address: Ipv4Addr::new(10, 61, 1, 2),
                capacity: None,
            }],
            state_dir: disk.path().to_owned(),
        };
        let kernel = Fake::with_interfaces(&["edgeloom0", "link0"]);
        let network = NetworkThread::start(move || Network::over(kernel, settings)).unwrap();
        Self {
            engine: FakeEngine::with_registry(&[DIGEST]),
            network,
            disk,
            memory: TempDir::new_in("/dev/shm").unwrap(),
        }
    }

    fn secret_files(&self) -> SecretFiles {
        SecretFiles::new(self.memory.path(), &"n1".parse().unwrap())
    }

    fn agent(&self) -> Agent {
        let (up, said) = mpsc::channel(1);
        let (commands, inbox) = mpsc::channel(8);
        let (history, _) = History::open(self.disk.path());
        let settings = Settings {
            owner: owner(),
            bridge: "edgeloom0".to_owned(),
            engine: Arc::new(self.engine.clone()),
            network: self.network.clone(),
            file: DesiredFile::open(self.disk.path(), self.disk.path().join("secrets.key")).unwrap(),
            contact: ContactFile::in_directory(self.disk.path()),
            history,
            exchange: None,
            counts: Counts::default(),
            secrets: self.secret_files(),
        };
        let running = tokio::spawn(Worker::new(settings, up).run(inbox, CancellationToken::new()));
        Agent { commands, said, running }
    }
}

impl Agent {
    async fn tell(&self, document: DesiredState) {
        self.commands.send(Command::Desired(Box::new(document.into()))).await.unwrap();
    }

    /// Waits for an observed state that satisfies the condition.
    async fn observed(&mut self, condition: impl Fn(&Observed) -> bool) -> Observed {
        loop {
            match self.said.recv().await {
                Some(Up::Observed(observed)) if condition(&observed) => return observed,
                Some(_) => {}
                None => panic!("the worker ended"),
            }
        }
    }

    async fn converged(&mut self, generation: u64) -> Observed {
        self.observed(|observed| observed.converged && observed.version.generation == generation).await
    }

    /// Dies at once, as under SIGKILL.
    async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
    }
}

fn tasks(hash: &str) -> Vec<ContainerSpec> {
    ["a", "b", "c"].map(|task| spec(task, hash)).to_vec()
}

fn key(task: &str) -> TaskKey {
    TaskKey::of(&spec(task, "any"))
}

#[tokio::test]
async fn a_document_becomes_containers_and_an_empty_one_removes_them() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    let observed = agent.converged(1).await;
    assert!(observed.network_applied && observed.containers.len() == 3);
    assert_eq!(observed.pulls.len(), 1);
    assert_eq!((observed.pulls[0].bytes_fetched.0, observed.pulls[0].done), (100, true));
    agent.tell(document(2, vec![])).await;
    assert!(agent.converged(2).await.containers.is_empty());
    assert!(node.engine.running().is_empty());
}

#[tokio::test]
async fn a_controller_that_asks_gets_the_document_in_force() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.commands.send(Command::DocumentAsked).await.unwrap();
    let wanted = document(1, tasks("h1"));
    agent.tell(wanted.clone()).await;
    agent.converged(1).await;
    agent.commands.send(Command::DocumentAsked).await.unwrap();
    let held = loop {
        if let Up::Held(held) = agent.said.recv().await.unwrap() {
            break held;
        }
    };
    assert_eq!(*held, wanted);
}

#[tokio::test]
async fn the_network_is_told_applied_before_any_container_runs() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    let first = agent.observed(|observed| observed.network_applied).await;
    assert!(first.containers.iter().all(|container| container.phase != ContainerPhase::Running));
}

#[tokio::test]
async fn lost_repeated_and_reordered_documents_converge_to_the_newest() {
    let node = Node::new();
    let mut agent = node.agent();
    for generation in [3, 1, 3, 5, 2, 5, 4] {
        agent.tell(document(generation, vec![spec("a", &format!("h{generation}"))])).await;
    }
    agent.converged(5).await;
    assert_eq!(node.engine.running().get(&key("a")).map(String::as_str), Some("h5"));
}

#[tokio::test]
async fn a_lower_version_and_a_foreign_cluster_change_nothing_and_are_told() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(2, tasks("h1"))).await;
    agent.converged(2).await;
    agent.tell(DesiredState { epoch: 0, ..document(9, vec![]) }).await;
    let observed = agent.observed(|observed| !observed.problems.is_empty()).await;
    assert!(observed.converged && observed.problems[0].contains("refused"));
    agent.tell(DesiredState { cluster: "other".parse().unwrap(), ..document(9, vec![]) }).await;
    let foreign = |observed: &Observed| observed.problems.iter().any(|problem| problem.contains("other"));
    assert_eq!(agent.observed(foreign).await.containers.len(), 3);
    assert_eq!(node.engine.running().len(), 3);
}

#[tokio::test]
async fn a_new_connection_hears_what_the_last_one_heard() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    let before = agent.converged(1).await;
    agent.commands.send(Command::Connected).await.unwrap();
    assert_eq!(agent.observed(|_| true).await, before);
}

#[tokio::test]
async fn a_new_agent_adopts_what_runs_and_restarts_nothing() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.converged(1).await;
    agent.kill().await;
    node.agent().converged(1).await;
    assert!(["a", "b", "c"].iter().all(|task| node.engine.starts(&key(task)) == 1));
}

#[tokio::test]
async fn an_agent_killed_at_any_moment_is_followed_by_one_that_converges() {
    for messages in 0..8 {
        let node = Node::new();
        let mut agent = node.agent();
        agent.tell(document(1, tasks("h1"))).await;
        for _ in 0..messages {
            if let Some(Up::Observed(observed)) = agent.said.recv().await
                && observed.converged
            {
                break;
            }
        }
        agent.kill().await;
        let mut agent = node.agent();
        // The message is repeated on connection: the first may have been lost with the agent.
        agent.tell(document(1, tasks("h1"))).await;
        agent.converged(1).await;
        assert!(
            ["a", "b", "c"].iter().all(|task| node.engine.starts(&key(task)) == 1),
            "killed after {messages}"
        );
    }
}

#[tokio::test]
async fn after_a_reboot_the_state_on_disk_is_applied_without_a_controller() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.converged(1).await;
    agent.kill().await;
    ["a", "b", "c"].iter().for_each(|task| node.engine.end(&key(task), 137));
    let observed = node.agent().converged(1).await;
    assert!(observed.containers.iter().all(|container| container.phase == ContainerPhase::Running));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_ends_is_started_again_and_counted() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.converged(1).await;
    node.engine.end(&key("b"), 3);
    agent.commands.send(Command::EngineChanged).await.unwrap();
    let ended = agent.observed(|observed| !observed.converged).await;
    let state = ended.containers.iter().find(|container| container.task.as_str() == "b").unwrap();
    assert_eq!((state.phase, state.detail.as_str()), (ContainerPhase::Exited, "exited with code 3"));
    let again = agent.converged(1).await;
    let state = again.containers.iter().find(|container| container.task.as_str() == "b").unwrap();
    assert_eq!((state.restarts, node.engine.starts(&key("b")), node.engine.starts(&key("a"))), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_is_tried_again() {
    let node = Node::new();
    node.engine.fail_starts(2);
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.converged(1).await;
    assert_eq!(node.engine.running().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_is_refused_is_tried_again_after_growing_pauses() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![spec("a", "h1")])).await;
    agent.converged(1).await;
    node.engine.fail_removals(100);
    agent.tell(document(2, vec![])).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    // At least 45 s between attempts after the first seven.
    assert!((2..=25).contains(&node.engine.removals()), "{} removals", node.engine.removals());
    node.engine.fail_removals(0);
    agent.converged(2).await;
    assert!(node.engine.running().is_empty());
}

#[test]
fn a_pause_ends_when_something_else_is_wanted() {
    let disk = tempfile::tempdir().unwrap();
    let contact = Contact::at_start(Past::Nothing, Instant::now());
    let mut state = NodeState::new(History::open(disk.path()).0, contact);
    let now = Instant::now();
    state.take(document(1, vec![spec("a", "h1")]).into());
    let refused = EngineError::Unreachable { socket: "fake".to_owned(), reason: "away".to_owned() };
    state.absorb(Done::Removed(found("a", "h0", FoundState::Running), Err(refused)), now);
    state.take(document(2, vec![spec("a", "h1"), spec("b", "h1")]).into());
    assert!(state.next_pause(now).is_some());
    state.take(document(3, vec![spec("a", "h2")]).into());
    assert_eq!(state.next_pause(now), None);
}

#[test]
fn a_document_that_could_not_be_saved_is_saved_at_the_next_look() {
    let disk = tempfile::tempdir().unwrap();
    let contact = Contact::at_start(Past::Nothing, Instant::now());
    let mut state = NodeState::new(History::open(disk.path()).0, contact);
    let saves = |state: &mut NodeState| {
        let todo = state.next_actions(Instant::now());
        todo.iter().any(|todo| matches!(todo, Todo::Save(..)))
    };
    let full = || StateError::Write { path: "desired.json".into(), source: ErrorKind::StorageFull.into() };
    let document = document(1, vec![]);
    let version = document.version();
    state.take(document.into());
    assert!(saves(&mut state));
    state.absorb(Done::Saved(version, Err(full())), Instant::now());
    assert!(!saves(&mut state) && state.observed().problems.len() == 1);
    state.look_again();
    assert!(saves(&mut state));
    state.absorb(Done::Saved(version, Ok(())), Instant::now());
    state.look_again();
    assert!(!saves(&mut state) && state.observed().problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_away_is_used_again_when_it_is_back() {
    let node = Node::new();
    node.engine.set_answering(false);
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.observed(|observed| observed.problems.iter().any(|problem| problem.contains("docker"))).await;
    node.engine.set_answering(true);
    agent.commands.send(Command::EngineRestarted).await.unwrap();
    assert_eq!(agent.converged(1).await.problems, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_registry_lacks_is_reported_with_its_reason() {
    let node = Node { engine: FakeEngine::default(), ..Node::new() };
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    let failed = |observed: &Observed| observed.pulls.iter().any(|pull| !pull.error.is_empty());
    let observed = agent.observed(failed).await;
    assert!(observed.pulls[0].error.contains("manifest unknown"));
    assert!(observed.containers.iter().all(|container| container.phase == ContainerPhase::Failed));
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_fails_holds_up_nobody_and_is_mended_with_its_registry() {
    let node = Node::new();
    let mut agent = node.agent();
    let mut waiting = spec("a", "h1");
    waiting.image.digest = format!("sha256:{}", "e".repeat(64));
    agent.tell(document(1, vec![waiting.clone(), spec("b", "h1")])).await;
    let runs = |observed: &Observed, task: &str| {
        let of = |it: &&ContainerState| it.task.as_str() == task;
        observed.containers.iter().find(of).map(|it| it.phase) == Some(ContainerPhase::Running)
    };
    let others = agent.observed(|observed| runs(observed, "b") && !runs(observed, "a")).await;
    assert!(others.containers[0].detail.contains("manifest unknown"), "{others:?}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let later = agent.observed(|observed| !observed.converged).await;
    assert!(later.containers[0].detail.contains("manifest unknown"), "also between two attempts: {later:?}");
    node.engine.publish(&waiting.image.digest);
    let mended = agent.converged(1).await;
    assert!(runs(&mended, "a") && mended.containers[0].detail.is_empty(), "{mended:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_goes_between_its_pull_and_its_container_comes_again() {
    let node = Node::new();
    let mut agent = node.agent();
    node.engine.pull_in_vain(2);
    agent.tell(document(1, vec![spec("a", "h1")])).await;
    let missed =
        |observed: &Observed| observed.containers.iter().any(|it| it.detail.contains("no such image"));
    agent.observed(missed).await;
    let mended = agent.converged(1).await;
    assert!(mended.containers[0].detail.is_empty() && mended.problems.is_empty(), "{mended:?}");
}

#[tokio::test]
async fn containers_of_a_network_that_was_made_anew_are_made_anew() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.converged(1).await;
    let before: Vec<String> =
        node.engine.list().await.unwrap().into_iter().map(|container| container.id).collect();
    agent.kill().await;
    ["a", "b", "c"].iter().for_each(|task| node.engine.end(&key(task), 137));
    node.engine.remove_network("edgeloom0").await.unwrap();
    node.agent().converged(1).await;
    let after = node.engine.list().await.unwrap();
    assert_eq!(node.engine.running().len(), 3);
    assert!(after.iter().all(|container| !before.contains(&container.id)));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_does_not_start_is_made_anew_after_growing_pauses() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![spec("a", "h1")])).await;
    agent.converged(1).await;
    node.engine.fail_starts(1000);
    node.engine.end(&key("a"), 1);
    agent.commands.send(Command::EngineChanged).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!((1..=10).contains(&node.engine.removals()), "{} removals", node.engine.removals());
    node.engine.fail_starts(0);
    agent.converged(1).await;
}

#[tokio::test(start_paused = true)]
async fn containers_that_ended_with_the_engine_are_started_and_have_no_fault() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, tasks("h1"))).await;
    agent.converged(1).await;
    node.engine.set_answering(false);
    agent.commands.send(Command::EngineChanged).await.unwrap();
    agent.observed(|observed| !observed.problems.is_empty()).await;
    ["a", "b", "c"].iter().for_each(|task| node.engine.end(&key(task), 137));
    node.engine.set_answering(true);
    agent.commands.send(Command::EngineRestarted).await.unwrap();
    let again = agent.observed(|observed| observed.converged && observed.containers[0].restarts == 1).await;
    assert!(again.containers.iter().all(|container| container.detail.is_empty()));
}
