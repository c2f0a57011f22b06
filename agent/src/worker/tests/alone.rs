//! Time without the controller.

use super::*;

/// Task `a` may run half a minute without the controller, task `b` of another job as long as it likes.
fn bounded(generation: u64) -> DesiredState {
    let mut document = document(generation, vec![spec("a", "h1"), elsewhere()]);
    document.stop_after_s.insert(spec("a", "h1").job, 30);
    document
}

fn elsewhere() -> ContainerSpec {
    ContainerSpec { job: "k".parse().unwrap(), ..spec("b", "h1") }
}

fn runs(node: &Node, task: &str) -> bool {
    node.engine.running().keys().any(|key| key.task.as_str() == task)
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_to_stop_without_the_controller_stops_and_starts_with_its_next_document() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(bounded(1)).await;
    agent.converged(1).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(runs(&node, "a"), "the session goes on");
    agent.commands.send(Command::Disconnected(Instant::now() - Duration::from_secs(10))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert!(runs(&node, "a"));
    let stopped = agent.observed(|observed| observed.containers[0].phase == ContainerPhase::Exited).await;
    assert!(stopped.containers[0].detail.contains("controller") && !stopped.converged);
    assert!(!runs(&node, "a") && runs(&node, "b"));
    // The controller is there again, but has not said yet what it wants.
    agent.commands.send(Command::Connected).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!runs(&node, "a"));
    agent.tell(bounded(1)).await;
    let again = agent.converged(1).await;
    assert_eq!(again.containers[0].restarts, 0, "that it was stopped is no failure");
    assert_eq!((node.engine.starts(&key("a")), node.engine.starts(&TaskKey::of(&elsewhere()))), (2, 1));
}

/// Waits until the session is on disk.
async fn kept(node: &Node) {
    while ContactFile::in_directory(node.disk.path()).load() != Past::Session {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn the_time_without_the_controller_outlives_the_agent_and_a_reboot_ends_it() {
    for (record, stops) in [
        (None, false),
        (Some(Some(Duration::from_secs(1))), false),
        (Some(Some(Duration::from_secs(31))), true),
    ] {
        let node = Node::new();
        let mut agent = node.agent();
        agent.tell(bounded(1)).await;
        agent.converged(1).await;
        kept(&node).await;
        agent.kill().await;
        if let Some(silence) = record {
            ContactFile::in_directory(node.disk.path()).save(silence).unwrap();
        }
        let mut agent = node.agent();
        agent.observed(|observed| observed.listed && (stops || observed.converged)).await;
        while stops && runs(&node, "a") {
            tokio::task::yield_now().await;
        }
        assert_eq!((runs(&node, "a"), runs(&node, "b")), (!stops, true), "{record:?}");
    }
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(bounded(1)).await;
    agent.converged(1).await;
    kept(&node).await;
    agent.kill().await;
    [spec("a", "h1"), elsewhere()].iter().for_each(|spec| node.engine.end(&TaskKey::of(spec), 137));
    std::fs::write(node.disk.path().join("contact.json"), r#"{"boot":"another","heard_s":null}"#).unwrap();
    let mut agent = node.agent();
    agent
        .observed(|observed| observed.containers.iter().any(|found| found.phase == ContainerPhase::Running))
        .await;
    assert!(!runs(&node, "a") && runs(&node, "b"), "nobody knows how long the machine was off");
    agent.tell(bounded(1)).await;
    agent.converged(1).await;
}
