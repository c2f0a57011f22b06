//! A real daemon that is killed at the worst moment, and keeps its containers.

use super::super::Docker;
use super::super::private::{DaemonNetwork, PrivateDocker};
use super::*;
use crate::engine::fake::{document, owner, spec};
use crate::engine::{ContainerEngine, FoundState, NetworkSpec};
use edgeloom_common::desired::ContainerSpec;
use std::path::PathBuf;

const BRIDGE: &str = "edgeloom-test";
/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);

/// Puts a shell between the daemon and its namespace: the shell starts the daemon anew, and what the daemon started
/// outlives it. The first six words enter the namespaces.
const LASTING: &str = r#"
hold=$0.hold; enter="$1 $2 $3 $4 $5 $6"; shift 6
exec unshare --net $enter sh -c \
    'while :; do "$@"; while [ -e "$0" ]; do sleep 0.05; done; done' "$hold" "$@" --live-restore
"#;

/// What Docker keeps of a container that was made and never started.
const NEVER_STARTED: &str = r#"{"Running":false,"Paused":false,"Restarting":false,"OOMKilled":false,
    "RemovalInProgress":false,"Dead":false,"Pid":0,"ExitCode":0,"Error":"","StartedAt":"0001-01-01T00:00:00Z",
    "FinishedAt":"0001-01-01T00:00:00Z","Health":null}"#;

struct Site {
    docker: PrivateDocker,
    hold: PathBuf,
}

impl Site {
    /// Kills the daemon as if between the start of the container and its note of it; returns when it serves again.
    async fn forget(&mut self, id: &str) {
        std::fs::write(&self.hold, "").unwrap();
        let data = self.docker.socket().with_file_name("data");
        let daemon = daemon(&data);
        kill(daemon).unwrap();
        while Path::new("/proc").join(daemon.as_raw_nonzero().to_string()).join("exe").exists() {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        let note = data.join("containers").join(id).join("config.v2.json");
        let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
        kept["State"] = serde_json::from_str(NEVER_STARTED).unwrap();
        std::fs::write(&note, kept.to_string()).unwrap();
        std::fs::remove_file(&self.hold).unwrap();
        self.docker.client().await;
    }
}

fn daemon(data: &Path) -> Pid {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let is_it = |pid: &Pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        words.starts_with("dockerd\0") && words.contains(&data.display().to_string())
    };
    all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).find(is_it).unwrap()
}

#[tokio::test]
async fn what_docker_forgot_is_ended_before_its_container_starts_again_or_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("lasting");
    std::fs::write(&script, LASTING).unwrap();
    let network = DaemonNetwork { enter: ["sh", script.to_str().unwrap()], tables: "--iptables=false" };
    let Some(docker) = PrivateDocker::start(network) else { return };
    let mut site = Site { docker, hold: script.with_extension("hold") };
    tokio::time::timeout(TRIAL_MAX, forgets_twice(&mut site))
        .await
        .expect("a daemon that hangs fails the test");
}

async fn forgets_twice(site: &mut Site) {
    let client = site.docker.client().await;
    let image = site.docker.import(&client).await;
    let engine = Docker::new(site.docker.socket(), owner());
    let network = NetworkSpec { bridge: BRIDGE.to_owned(), pool: document(1, vec![]).pool };
    engine.ensure_network(&network).await.unwrap();
    let spec = ContainerSpec { image, command: vec!["/app".to_owned()], ..spec("lost", "hash") };
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    engine.start(&id).await.unwrap();
    let first = processes(&id);
    assert_eq!(first.len(), 1, "one process, and Docker knows it");

    site.forget(&id).await;
    assert_eq!(engine.list().await.unwrap()[0].state, FoundState::Created);
    assert_eq!(processes(&id), first, "it runs on, and Docker does not know");
    engine.start(&id).await.unwrap();
    assert_eq!(engine.list().await.unwrap()[0].state, FoundState::Running);
    let second = processes(&id);
    assert!(second.len() == 1 && second != first, "{first:?} {second:?}");

    site.forget(&id).await;
    assert_eq!(processes(&id), second);
    engine.remove(&id).await.unwrap();
    assert_eq!(processes(&id), []);
    assert!(engine.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn without_a_whole_id_nothing_is_ended() {
    for id in ["", "a", "user.slice", &"z".repeat(ID_LENGTH), &"0".repeat(ID_LENGTH)] {
        assert_eq!(end(id).await, Ok(0), "{id}");
    }
}
