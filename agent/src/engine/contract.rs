//! What every container engine has to do, tried on the fake and on a real Docker daemon.

mod hosting;

use super::docker::Docker;
use super::docker::private::{DaemonNetwork, PrivateDocker};
use super::fake::{DIGEST, FakeEngine, document, owner, spec};
use super::{
    Changes, ContainerEngine, EngineError, FoundLimits, FoundState, Limits, LogSelection, NetworkSpec,
    TaskKey, Times,
};
use crate::secrets::{SecretFiles, Values};
use bollard::Docker as Client;
use bollard::query_parameters::InspectContainerOptions;
use edgeloom_common::confidential::Value;
use edgeloom_common::desired::{ContainerSpec, ImageRef};
use edgeloom_common::units::{Bytes, MilliCores};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

const BRIDGE: &str = "edgeloom-test";
/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);
/// Pause before the list is read again: it may be a moment behind the event that was waited for.
const SETTLING: Duration = Duration::from_millis(300);

fn network() -> NetworkSpec {
    NetworkSpec { bridge: BRIDGE.to_owned(), pool: document(1, vec![]).pool }
}

fn task(name: &str, image: &ImageRef) -> ContainerSpec {
    ContainerSpec { image: image.clone(), command: vec!["/app".to_owned()], ..spec(name, "hash") }
}

async fn state(engine: &impl ContainerEngine, spec: &ContainerSpec) -> Option<FoundState> {
    let found = engine.list().await.unwrap();
    found.into_iter().find(|container| container.key == TaskKey::of(spec)).map(|container| container.state)
}

fn status(result: Result<impl Sized, EngineError>) -> u16 {
    match result {
        Err(EngineError::Refused { status, .. }) => status,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

async fn a_container_lives_from_creation_to_removal(engine: &impl ContainerEngine, image: &ImageRef) {
    let spec = task("life", image);
    engine.ensure_network(&network()).await.unwrap();
    engine.ensure_network(&network()).await.unwrap();
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    assert_eq!(state(engine, &spec).await, Some(FoundState::Created));
    engine.start(&id).await.unwrap();
    engine.start(&id).await.unwrap();
    let found = engine.list().await.unwrap();
    let container = found.iter().find(|container| container.id == id).unwrap();
    assert_eq!((container.state, container.spec_hash.as_str()), (FoundState::Running, "hash"));
    assert_eq!(container.address, Some(spec.address));
    engine.remove(&id).await.unwrap();
    engine.remove(&id).await.unwrap();
    assert_eq!(state(engine, &spec).await, None);
}

async fn limits(engine: &impl ContainerEngine, id: &str) -> FoundLimits {
    let found = engine.list().await.unwrap();
    found.into_iter().find(|container| container.id == id).unwrap().limits
}

async fn limits_change_in_place_and_outlive_a_start(engine: &impl ContainerEngine, image: &ImageRef) {
    let spec = task("limited", image);
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    assert_eq!(limits(engine, &id).await, Limits::of(&spec).into());
    let limited = |cpu, memory| Limits { cpu: MilliCores(cpu), memory: Bytes(memory) };
    // Before its start, larger and smaller while it runs, without a limit and with one again.
    let (early, rest) = (limited(50, 24 << 20), [(300, 64 << 20), (150, 32 << 20), (0, 0), (200, 48 << 20)]);
    engine.limit(&id, early).await.unwrap();
    engine.start(&id).await.unwrap();
    assert_eq!(limits(engine, &id).await, early.into());
    for wanted in rest.map(|(cpu, memory)| limited(cpu, memory)) {
        engine.limit(&id, wanted).await.unwrap();
        assert_eq!(limits(engine, &id).await, wanted.into());
        assert_eq!(state(engine, &spec).await, Some(FoundState::Running));
    }
    engine.limit("gone", early).await.unwrap();
    engine.remove(&id).await.unwrap();
}

async fn what_cannot_be_is_refused(engine: &impl ContainerEngine, image: &ImageRef) {
    let absent = ImageRef { digest: format!("sha256:{}", "0".repeat(64)), ..image.clone() };
    assert!(!engine.image_present(&absent).await.unwrap());
    assert!(engine.image_present(image).await.unwrap());
    assert_eq!(status(engine.create(&task("none", &absent), BRIDGE).await), 404);
    let first = engine.create(&task("twice", image), BRIDGE).await.unwrap();
    assert_eq!(status(engine.create(&task("twice", image), BRIDGE).await), 409);
    engine.start(&first).await.unwrap();
    let same = ContainerSpec { address: task("twice", image).address, ..task("other", image) };
    let second = engine.create(&same, BRIDGE).await.unwrap();
    assert!(engine.start(&second).await.is_err());
    for id in [first, second] {
        engine.remove(&id).await.unwrap();
    }
}

async fn a_network_is_replaced_only_while_nothing_uses_it(engine: &impl ContainerEngine, image: &ImageRef) {
    let mut other = network();
    other.pool.network = Ipv4Addr::new(10, 78, 0, 0);
    other.pool.gateway = Ipv4Addr::new(10, 78, 0, 1);
    engine.ensure_network(&other).await.unwrap();
    engine.ensure_network(&network()).await.unwrap();
    let id = engine.create(&task("user", image), BRIDGE).await.unwrap();
    engine.start(&id).await.unwrap();
    assert!(matches!(engine.ensure_network(&other).await, Err(EngineError::NetworkInUse { .. })));
    engine.remove(&id).await.unwrap();
    engine.remove_network(BRIDGE).await.unwrap();
    engine.remove_network(BRIDGE).await.unwrap();
}

async fn a_container_is_stopped_and_started_but_not_after_its_network_was_made_anew(
    engine: &impl ContainerEngine,
    image: &ImageRef,
) {
    engine.ensure_network(&network()).await.unwrap();
    let spec = task("stale", image);
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    for _ in 0..2 {
        engine.start(&id).await.unwrap();
        // The kernel drops SIGTERM for a first process that has not asked for it yet.
        tokio::time::sleep(SETTLING).await;
        engine.stop(&id).await.unwrap();
        engine.stop(&id).await.unwrap();
        assert_eq!(state(engine, &spec).await, Some(FoundState::Exited(Some(0))));
    }
    engine.stop("gone").await.unwrap();
    engine.remove_network(BRIDGE).await.unwrap();
    assert!(matches!(engine.start(&id).await, Err(EngineError::NetworkGone { .. })));
    engine.ensure_network(&network()).await.unwrap();
    let refused = engine.start(&id).await;
    assert!(matches!(refused, Err(EngineError::NetworkGone { .. })), "{refused:?}");
    engine.remove(&id).await.unwrap();
    let anew = engine.create(&spec, BRIDGE).await.unwrap();
    engine.start(&anew).await.unwrap();
    engine.remove(&anew).await.unwrap();
}

async fn logs_end_with_the_receiver(engine: &impl ContainerEngine, image: &ImageRef) {
    engine.ensure_network(&network()).await.unwrap();
    let id = engine.create(&task("talk", image), BRIDGE).await.unwrap();
    engine.start(&id).await.unwrap();
    let (sender, mut text) = mpsc::channel(1);
    let reading = engine.logs(&id, LogSelection { follow: true, ..Default::default() }, sender);
    let listening = async {
        let first = text.recv().await;
        text.close();
        while text.recv().await.is_some() {}
        first
    };
    let (read, first) = tokio::join!(reading, listening);
    read.unwrap();
    assert!(!first.unwrap().is_empty());
    engine.remove(&id).await.unwrap();
}

async fn start_and_end_are_told_with_their_times(engine: &impl ContainerEngine, image: &ImageRef) {
    engine.ensure_network(&network()).await.unwrap();
    let id = engine.create(&task("timed", image), BRIDGE).await.unwrap();
    let times = async || {
        let found = engine.list().await.unwrap();
        found.into_iter().find(|container| container.id == id).unwrap().times
    };
    assert_eq!(times().await, Times::default());
    let mut last_ms = 0;
    for _ in 0..2 {
        engine.start(&id).await.unwrap();
        let running = times().await;
        let started_ms = running.started_ms.unwrap();
        assert_eq!(running.finished_ms, None);
        assert!(last_ms <= started_ms);
        tokio::time::sleep(SETTLING).await;
        engine.stop(&id).await.unwrap();
        let ended = times().await;
        assert_eq!(ended.started_ms, Some(started_ms));
        last_ms = ended.finished_ms.unwrap();
        assert!(started_ms < last_ms);
    }
    engine.remove(&id).await.unwrap();
}

/// As after a start that was asked for by an agent that died, and carried out once the next one had looked.
async fn what_was_started_since_it_was_found_is_not_started_again(
    engine: &impl ContainerEngine,
    image: &ImageRef,
) {
    let spec = task("late", image);
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    let found = async || {
        let found = engine.list().await.unwrap();
        found.into_iter().find(|container| container.id == id).unwrap()
    };
    let created = found().await;
    engine.resume(&created).await.unwrap();
    tokio::time::sleep(SETTLING).await;
    engine.stop(&id).await.unwrap();
    let ended = found().await;
    engine.resume(&created).await.unwrap();
    assert_eq!(found().await, ended, "it ran once");
    engine.resume(&ended).await.unwrap();
    assert_eq!(found().await.state, FoundState::Running);
    engine.remove(&id).await.unwrap();
}

async fn contract(engine: &impl ContainerEngine, image: &ImageRef) {
    a_container_lives_from_creation_to_removal(engine, image).await;
    limits_change_in_place_and_outlive_a_start(engine, image).await;
    what_cannot_be_is_refused(engine, image).await;
    a_network_is_replaced_only_while_nothing_uses_it(engine, image).await;
    a_container_is_stopped_and_started_but_not_after_its_network_was_made_anew(engine, image).await;
    logs_end_with_the_receiver(engine, image).await;
    start_and_end_are_told_with_their_times(engine, image).await;
    what_was_started_since_it_was_found_is_not_started_again(engine, image).await;
    hosting::a_port_of_the_host_leads_to_one_container(engine, image).await;
    hosting::a_folder_of_the_host_has_to_be_allowed(engine, image).await;
}

#[tokio::test]
async fn the_fake_keeps_the_contract() {
    let engine = FakeEngine::default();
    engine.load(DIGEST);
    engine.allow(hosting::allowed());
    contract(&engine, &spec("any", "any").image).await;
}

#[tokio::test]
async fn docker_keeps_the_contract() {
    let trial = async {
        let network = DaemonNetwork { enter: ["unshare", "--net"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else {
            return;
        };
        let client = docker.client().await;
        let image = docker.import(&client).await;
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let files = SecretFiles::new(memory.path(), &owner().node);
        let engine = Docker::new(docker.socket(), owner()).with_secrets(files.clone());
        let engine = engine.with_hosting(hosting::allowed());
        contract(&engine, &image).await;
        the_log_is_bounded(&engine, &client, &image).await;
        secrets_are_files_that_nobody_changes(&engine, &files, &image).await;
        limits_and_exit_code(&engine, &image).await;
        memory_in_use_is_not_taken_away(&engine, &image).await;
        the_kernel_holds_the_process_to_a_changed_limit(&engine, &image).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}

async fn the_log_is_bounded(engine: &Docker, client: &Client, image: &ImageRef) {
    engine.ensure_network(&network()).await.unwrap();
    let id = engine.create(&task("bounded", image), BRIDGE).await.unwrap();
    let made = client.inspect_container(&id, None::<InspectContainerOptions>).await.unwrap();
    let options = made.host_config.unwrap().log_config.unwrap().config.unwrap();
    assert_eq!((options["max-size"].as_str(), options["max-file"].as_str()), ("10m", "3"));
    engine.remove(&id).await.unwrap();
}

/// The folder is emptied in between, as by a reboot.
async fn secrets_are_files_that_nobody_changes(engine: &Docker, files: &SecretFiles, image: &ImageRef) {
    engine.ensure_network(&network()).await.unwrap();
    let mut spec = task("secret", image);
    spec.secrets.insert("password".parse().unwrap(), 1);
    spec.command.push("0".to_owned());
    let key = TaskKey::of(&spec);
    let none = engine.create(&spec, BRIDGE).await;
    assert!(matches!(none, Err(EngineError::Refused { .. })), "no folder, no container: {none:?}");
    let value =
        |text: &str| Values::from([("password".parse().unwrap(), Value::new(text.as_bytes()).unwrap())]);
    files.write(&key, &value("first")).unwrap();
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    for text in ["first", "second"] {
        files.remove(&key);
        files.write(&key, &value(text)).unwrap();
        engine.start(&id).await.unwrap();
        while state(engine, &spec).await != Some(FoundState::Exited(Some(0))) {
            tokio::time::sleep(SETTLING).await;
        }
        let (sender, mut pieces) = mpsc::channel(8);
        let reading = engine.logs(&id, LogSelection { tail: Some(3), ..Default::default() }, sender);
        let collect = async {
            let mut said = Vec::new();
            while let Some(piece) = pieces.recv().await {
                said.extend(piece);
            }
            String::from_utf8(said).unwrap()
        };
        let (read, said) = tokio::join!(reading, collect);
        read.unwrap();
        assert!(said.contains(&format!("secret {text}")) && said.contains("tried to write"), "{said}");
        assert!(!said.contains("writable"), "{said}");
    }
    engine.remove(&id).await.unwrap();
}

/// The container takes 24 MiB and burns its share until it is removed.
async fn memory_in_use_is_not_taken_away(engine: &Docker, image: &ImageRef) {
    let mut spec = ContainerSpec { memory: Bytes(64 << 20), ..task("full", image) };
    spec.command.extend(["0", "600000", "24"].map(str::to_owned));
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    engine.start(&id).await.unwrap();
    let (sender, mut text) = mpsc::channel(8);
    let reading = engine.logs(&id, LogSelection { follow: true, ..Default::default() }, sender);
    let taken = async {
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("memory taken") {
            said.extend(text.recv().await.unwrap());
        }
        text.close();
        while text.recv().await.is_some() {}
    };
    tokio::join!(async { reading.await.unwrap() }, taken);
    let lower = Limits { cpu: MilliCores(70), memory: Bytes(16 << 20) };
    let refused = engine.limit(&id, lower).await;
    assert!(matches!(refused, Err(EngineError::MemoryInUse { .. })), "{refused:?}");
    assert_eq!(limits(engine, &id).await, Limits { memory: spec.memory, ..lower }.into());
    assert_eq!(state(engine, &spec).await, Some(FoundState::Running));
    engine.remove(&id).await.unwrap();
}

/// What the fake has nothing to show for.
async fn limits_and_exit_code(engine: &Docker, image: &ImageRef) {
    let mut spec = task("ends", image);
    spec.command.push("3".to_owned());
    let (sender, mut signals) = mpsc::channel(8);
    let run = async {
        signals.recv().await.unwrap();
        let id = engine.create(&spec, BRIDGE).await.unwrap();
        engine.start(&id).await.unwrap();
        while state(engine, &spec).await != Some(FoundState::Exited(Some(3))) {
            let _ = tokio::time::timeout(SETTLING, signals.recv()).await;
        }
        engine.remove(&id).await.unwrap();
    };
    tokio::select! {
        () = run => {}
        ended = engine.events(Changes { containers: sender, images: watch::channel(0).0 }) => panic!("the events ended: {ended:?}"),
    }
    let version = engine.version().await.unwrap();
    assert!(!version.version.is_empty() && version.root_dir.is_absolute() && version.driver == "vfs");
}

/// The same process before and after.
async fn the_kernel_holds_the_process_to_a_changed_limit(engine: &Docker, image: &ImageRef) {
    let spec = task("resized", image);
    let id = engine.create(&spec, BRIDGE).await.unwrap();
    engine.start(&id).await.unwrap();
    let group = group_of(&id);
    let processes = || std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
    let first = processes();
    for cpu in [700, 250, 1300] {
        engine.limit(&id, Limits { cpu: MilliCores(cpu), memory: spec.memory }).await.unwrap();
        assert_eq!((quota(&group), processes()), (cpu, first.clone()));
    }
    assert!(!first.is_empty());
    engine.remove(&id).await.unwrap();
}

/// A container's control group for processor time, of either version: the daemon's own group is below the mount.
fn group_of(id: &str) -> PathBuf {
    let mounts =
        ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(std::fs::read_dir).into_iter().flatten().flatten();
    let mut groups = mounts.map(|parent| parent.unwrap().path().join(id));
    groups.find(|group| group.is_dir()).expect("engines name control groups after ids")
}

/// In thousandths of a core.
fn quota(group: &Path) -> u32 {
    let read = |name: &str| std::fs::read_to_string(group.join(name));
    let pair = read("cpu.max").or_else(|_| Ok(read("cpu.cfs_quota_us")? + &read("cpu.cfs_period_us")?));
    let pair: std::io::Result<String> = pair;
    let numbers: Vec<u32> = pair.unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers[0] / (numbers[1] / 1000)
}
