//! Values on their way from a delivery to a container's folder, and over a restart without the controller.

use super::*;
use crate::wire::Received;
use edgeloom_common::confidential::{Login, Value};
use edgeloom_common::ids::SecretName;
use edgeloom_common::registry::RegistryHost;
use std::collections::BTreeMap;
use std::path::Path;

const VALUE: &str = "correct horse battery staple";

fn name() -> SecretName {
    "password".parse().unwrap()
}

fn with_secret(task: &str) -> ContainerSpec {
    ContainerSpec { secrets: BTreeMap::from([(name(), 1)]), ..spec(task, "h1") }
}

/// Task `a` with a secret and task `b` without.
fn wanted(generation: u64) -> DesiredState {
    document(generation, vec![with_secret("a"), spec("b", "h1")])
}

fn values(value: &str) -> Confidential {
    let value = Value::new(value.as_bytes()).unwrap();
    Confidential { secrets: BTreeMap::from([(name(), value)]), ..Confidential::default() }
}

impl Agent {
    async fn deliver(&self, document: DesiredState, confidential: Confidential) {
        let received = Received { document, confidential };
        self.commands.send(Command::Desired(Box::new(received))).await.unwrap();
    }

    /// Waits until task `a` says that it waits for values, while `b` runs.
    async fn waits(&mut self) {
        let told = |observed: &Observed, task: &str| {
            observed.containers.iter().find(|it| it.task.as_str() == task).cloned()
        };
        self.observed(|observed| {
            let waits = told(observed, "a").is_some_and(|it| it.detail.contains("values of its secrets"));
            waits && told(observed, "b").is_some_and(|it| it.phase == ContainerPhase::Running)
        })
        .await;
    }
}

impl Node {
    fn told(&self, task: &str) -> Option<String> {
        std::fs::read_to_string(self.secret_files().of(&key(task)).join("password")).ok()
    }

    /// The copy that is written last.
    fn kept(&self) -> Vec<u8> {
        std::fs::read(self.disk.path().join("desired.copy.json")).unwrap_or_default()
    }

    /// Waits until values are on the disk that were not there before.
    async fn kept_after(&self, before: &[u8]) {
        let is_new = |kept: &[u8]| kept != before && String::from_utf8_lossy(kept).contains("sealed");
        while !is_new(&self.kept()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Memory is empty; containers have ended.
    fn reboot(&self) {
        for entry in std::fs::read_dir(self.memory.path()).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        for task in ["a", "b"] {
            self.engine.end(&key(task), 137);
        }
    }
}

fn holds_value(folder: &Path) -> bool {
    let encoded: String = edgeloom_common::secret::Secret::from(Value::new(VALUE.as_bytes()).unwrap()).into();
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        if entry.path().is_dir() {
            return holds_value(&entry.path());
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|piece| piece == text.as_bytes());
        has(VALUE) || has(&encoded)
    })
}

#[tokio::test]
async fn a_task_starts_with_its_values_in_memory_and_they_go_with_it() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(wanted(1)).await;
    agent.waits().await;
    agent.deliver(wanted(1), values(VALUE)).await;
    agent.converged(1).await;
    assert_eq!((node.told("a").as_deref(), node.told("b")), (Some(VALUE), None));
    node.kept_after(&[]).await;
    assert!(!holds_value(node.disk.path()), "a value lies on the disk");
    agent.tell(document(2, vec![spec("b", "h1")])).await;
    agent.converged(2).await;
    assert!(!node.secret_files().of(&key("a")).exists());
}

#[tokio::test]
async fn after_a_reboot_without_the_controller_values_are_there_again() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.deliver(wanted(1), values(VALUE)).await;
    agent.converged(1).await;
    node.kept_after(&[]).await;
    agent.kill().await;
    node.reboot();
    assert_eq!(node.told("a"), None);
    let mut agent = node.agent();
    agent.converged(1).await;
    assert_eq!(node.told("a").as_deref(), Some(VALUE));
    assert_eq!(node.engine.starts(&key("a")), 2);
}

#[tokio::test]
async fn with_another_key_what_runs_goes_on_and_what_starts_waits_for_the_controller() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.deliver(wanted(1), values(VALUE)).await;
    agent.converged(1).await;
    node.kept_after(&[]).await;
    agent.kill().await;
    edgeloom_sealing::Key::create(&node.disk.path().join("secrets.key")).unwrap();
    let mut agent = node.agent();
    let observed = agent.converged(1).await;
    assert!(observed.problems.iter().any(|problem| problem.contains("do not open")), "{observed:?}");
    assert_eq!(node.engine.starts(&key("a")), 1);
    node.engine.end(&key("a"), 1);
    agent
        .observed(|observed| observed.containers.iter().any(|it| it.detail.contains("values of its secrets")))
        .await;
    let before = node.kept();
    agent.deliver(wanted(1), values(VALUE)).await;
    agent.converged(1).await;
    node.kept_after(&before).await;
    agent.kill().await;
    node.reboot();
    let mut agent = node.agent();
    agent.converged(1).await;
    assert_eq!(node.told("a").as_deref(), Some(VALUE), "it was sealed anew");
}

#[tokio::test]
async fn another_value_is_for_the_next_start_and_restarts_nothing() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.deliver(wanted(1), values("old")).await;
    agent.converged(1).await;
    let mut newer = wanted(2);
    newer.containers[0].secrets.insert(name(), 2);
    agent.deliver(newer, values("new")).await;
    agent.converged(2).await;
    assert_eq!((node.told("a").as_deref(), node.engine.starts(&key("a"))), (Some("old"), 1));
    node.engine.end(&key("a"), 1);
    agent.observed(|observed| observed.containers.iter().any(|it| it.restarts == 1)).await;
    agent.converged(2).await;
    assert_eq!(node.told("a").as_deref(), Some("new"));
}

#[tokio::test]
async fn a_pull_shows_the_login_and_a_new_one_is_tried_at_once() {
    let node = Node::new();
    let login = |password: &str| Login { username: "u".to_owned(), password: password.to_owned().into() };
    node.engine.want_login(login(VALUE));
    let mut agent = node.agent();
    // The fake's images are of Docker Hub.
    let hub: RegistryHost = "docker.io".parse().unwrap();
    let wanted = |generation, revision| DesiredState {
        logins: BTreeMap::from([(hub.clone(), revision)]),
        ..document(generation, tasks("h1"))
    };
    let with =
        |login| Confidential { logins: BTreeMap::from([(hub.clone(), login)]), ..Confidential::default() };
    agent.deliver(wanted(1, 1), with(login("wrong"))).await;
    let refused = agent.observed(|observed| observed.pulls.iter().any(|pull| !pull.error.is_empty())).await;
    assert!(refused.pulls[0].error.contains("unauthorized") && !refused.pulls[0].error.contains("wrong"));
    agent.deliver(wanted(2, 2), with(login(VALUE))).await;
    agent.converged(2).await;
    node.kept_after(&[]).await;
    assert!(!holds_value(node.disk.path()), "a password lies on the disk");
}
