//! Limits that change while containers run.

use super::*;

fn limited(cpu: u32, memory: u64) -> ContainerSpec {
    ContainerSpec { cpu: MilliCores(cpu), memory: Bytes(memory), ..spec("a", "h1") }
}

#[tokio::test]
async fn limits_change_without_a_restart_and_a_change_from_outside_is_undone() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![spec("a", "h1")])).await;
    agent.converged(1).await;
    agent.tell(document(2, vec![limited(900, 64 << 20)])).await;
    agent.converged(2).await;
    let id = node.engine.list().await.unwrap()[0].id.clone();
    node.engine.limit(&id, Limits { cpu: MilliCores(1), memory: Bytes(64 << 20) }).await.unwrap();
    agent.commands.send(Command::EngineChanged).await.unwrap();
    let wanted = Limits { cpu: MilliCores(900), memory: Bytes(64 << 20) };
    while node.engine.list().await.unwrap()[0].limits != wanted.into() {
        tokio::task::yield_now().await;
    }
    let found = &node.engine.list().await.unwrap()[0];
    assert_eq!((&found.id, node.engine.starts(&key("a"))), (&id, 1));
}

#[tokio::test(start_paused = true)]
async fn memory_below_what_is_used_is_told_and_tried_after_growing_pauses() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![limited(100, 64 << 20)])).await;
    agent.converged(1).await;
    node.engine.use_memory(Bytes(32 << 20));
    agent.tell(document(2, vec![limited(200, 16 << 20)])).await;
    let told = |observed: &Observed| observed.problems.iter().any(|text| text.contains("memory limit"));
    let observed = agent.observed(told).await;
    assert_eq!(observed.containers[0].phase, ContainerPhase::Running);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!((2..=25).contains(&node.engine.changes_of_limits()), "{}", node.engine.changes_of_limits());
    assert_eq!(node.engine.list().await.unwrap()[0].limits.cpu, Some(MilliCores(200)));
    node.engine.use_memory(Bytes(8 << 20));
    assert!(agent.converged(2).await.problems.is_empty());
}
