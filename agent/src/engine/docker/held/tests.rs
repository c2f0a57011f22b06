use super::*;
use crate::engine::docker::Docker;
use crate::engine::docker::private::{DaemonNetwork, PrivateDocker};
use crate::engine::fake::{document, found, owner, spec};
use crate::engine::{ContainerEngine, NetworkSpec};
use bollard::Docker as Client;
use bollard::models::EventActor;
use bollard::query_parameters::KillContainerOptionsBuilder;
use edgeloom_common::desired::ContainerSpec;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;

const BRIDGE: &str = "edgeloom-test";
/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);
const AGAIN_AFTER: Duration = Duration::from_millis(100);
const SHORT: Patience = Patience {
    answer: Duration::from_secs(2),
    again: Duration::from_millis(100),
    long: Duration::from_secs(5),
};

fn running(hold: Hold) -> FoundContainer {
    let times = Times { started_ms: Some(1), finished_ms: None };
    FoundContainer { hold, times, ..found("t", "h", FoundState::Running) }
}

#[test]
fn what_has_no_process_left_has_ended_with_the_code_that_was_told_or_at_last_without_one() {
    let end = Some(End { exit_code: Some(3), at_ms: Some(9) });
    let seen = |hold, end, runs| {
        let seen = shown(running(hold), end, runs);
        (seen.state, seen.times.finished_ms)
    };
    let ended = (FoundState::Exited(Some(3)), Some(9));
    assert_eq!(seen(Hold::Brief, end, false), ended);
    assert_eq!(seen(Hold::Long, end, false), ended);
    assert_eq!(seen(Hold::Brief, None, false), (FoundState::Running, None), "docker may only be busy");
    assert_eq!(seen(Hold::Long, None, false), (FoundState::Exited(None), None));
    for hold in [Hold::Brief, Hold::Long] {
        assert_eq!(seen(hold, end, true), (FoundState::Running, None), "an event of an earlier run");
    }
    let listed = FoundContainer { state: FoundState::Exited(Some(4)), ..running(Hold::Brief) };
    let seen = shown(listed, end, true);
    assert_eq!((seen.state, seen.times.finished_ms), (FoundState::Exited(Some(4)), Some(9)));
}

#[test]
fn an_event_tells_code_and_time_of_an_end_until_the_next_start() {
    let attributes = HashMap::from([("exitCode".to_owned(), "137".to_owned())]);
    let actor = Some(EventActor { id: None, attributes: Some(attributes) });
    let event = EventMessage { actor, time_nano: Some(1_795_327_340_500_000_000), ..Default::default() };
    let mut held = Held::default();
    held.ended("a", &event);
    assert_eq!(held.ends.get("a"), Some(&End { exit_code: Some(137), at_ms: Some(1_795_327_340_500) }));
    held.started("a");
    assert!(held.ends.is_empty());
}

#[tokio::test(start_paused = true)]
async fn docker_is_asked_again_after_a_pause_and_told_busy_before_it_is_told_stuck() {
    let (mut held, patience) = (Held::default(), Patience::default());
    let hold = |held: &Held| held.shown(found("t", "h", FoundState::Created), patience).hold;
    let id = found("t", "h", FoundState::Created).id;
    assert!(held.may_be_asked(&id, patience));
    held.unanswered(&id);
    assert!(!held.may_be_asked(&id, patience) && hold(&held) == Hold::Brief);
    tokio::time::advance(patience.again).await;
    assert!(held.may_be_asked(&id, patience));
    held.unanswered(&id);
    assert!(!held.may_be_asked(&id, patience));
    held.heard(&id);
    assert!(held.may_be_asked(&id, patience) && hold(&held) == Hold::Brief);
    held.unanswered(&id);
    tokio::time::advance(patience.long - patience.again).await;
    assert_eq!(hold(&held), Hold::Long);
    held.answered(&id);
    held.unanswered(&id);
    assert_eq!(hold(&held), Hold::Brief);
}

fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

/// What watches over the container's first process for Docker.
fn shim(process: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap();
    Pid::from_raw(parent.parse().unwrap()).unwrap()
}

/// A Docker that waits for a container's shim keeps the container's lock.
#[tokio::test]
async fn a_container_that_docker_keeps_locked_hides_no_other_and_has_ended_when_nothing_of_it_is_left() {
    let trial = async {
        let network = DaemonNetwork { enter: ["unshare", "--net"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else { return };
        let client = docker.client().await;
        let image = docker.import(&client).await;
        let engine = Docker::new(docker.socket(), owner()).with_patience(SHORT);
        let network = NetworkSpec { bridge: BRIDGE.to_owned(), pool: document(1, vec![]).pool };
        engine.ensure_network(&network).await.unwrap();
        let task = |name: &str| ContainerSpec {
            image: image.clone(),
            command: vec!["/app".to_owned()],
            ..spec(name, "hash")
        };
        let [held, other] = [task("held"), task("other")];
        let id = engine.create(&held, BRIDGE).await.unwrap();
        engine.start(&id).await.unwrap();
        let first = processes(&id)[0];
        let shim = shim(first);
        signal(shim, Signal::STOP);
        tokio::select! {
            () = held_container(&engine, (&id, first), &other) => {}
            () = keeps_asking(&client, &id) => {}
        }
        signal(shim, Signal::CONT);
        // Docker tells it in the end.
        let code = FoundState::Exited(Some(137));
        seen(&engine, "held", |it| it.hold == Hold::Free && it.state == code).await;
        engine.remove(&id).await.unwrap();
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}

/// The request that takes the lock and waits; it stays open.
async fn keeps_asking(client: &Client, id: &str) {
    let options = KillContainerOptionsBuilder::new().signal("SIGUSR1").build();
    let _ = client.kill_container(id, Some(options)).await;
    std::future::pending::<()>().await;
}

async fn held_container(engine: &Docker, (id, first): (&str, Pid), other: &ContainerSpec) {
    // The list after the request: what was read before stays known while the process lives.
    tokio::time::sleep(AGAIN_AFTER).await;
    let another = engine.create(other, BRIDGE).await.unwrap();
    assert_eq!(seen(engine, "held", |_| true).await.state, FoundState::Running);
    signal(first, Signal::KILL);
    let brief = seen(engine, "held", |it| it.hold != Hold::Free).await;
    assert_eq!((brief.state, brief.hold), (FoundState::Running, Hold::Brief));
    let others = engine.list().await.unwrap();
    assert!(others.iter().any(|it| it.id == another && it.state == FoundState::Created));
    let long = seen(engine, "held", |it| it.hold == Hold::Long).await;
    assert_eq!((long.state, long.id.as_str()), (FoundState::Exited(None), id));
}

async fn seen(engine: &Docker, task: &str, condition: impl Fn(&FoundContainer) -> bool) -> FoundContainer {
    loop {
        let found = engine.list().await.unwrap();
        if let Some(found) = found.into_iter().find(|it| it.key.task.as_str() == task && condition(it)) {
            return found;
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}
