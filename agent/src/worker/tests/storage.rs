//! A state directory that was damaged.

use super::*;

#[tokio::test]
async fn damaged_state_on_disk_is_reported_and_replaced_by_the_next_document() {
    let node = Node::new();
    std::fs::write(node.disk.path().join("desired.json"), b"{\"schema\":1,").unwrap();
    let mut agent = node.agent();
    let observed = agent.observed(|observed| !observed.problems.is_empty()).await;
    assert!(observed.problems[0].contains("desired.json"));
    agent.tell(document(1, tasks("h1"))).await;
    assert!(agent.converged(1).await.problems.is_empty());
}

#[tokio::test]
async fn a_damaged_copy_on_disk_is_reported_and_the_other_one_is_in_force() {
    let node = Node::new();
    let file = DesiredFile::open(node.disk.path(), node.disk.path().join("secrets.key")).unwrap();
    file.save(&document(1, tasks("h1")), &Confidential::default()).unwrap();
    std::fs::write(node.disk.path().join("desired.json"), b"{\"schema\":1,").unwrap();
    let mut agent = node.agent();
    let observed = agent.converged(1).await;
    assert!(observed.problems[0].contains("desired.json"), "{:?}", observed.problems);
    assert_eq!(observed.containers.len(), document(1, tasks("h1")).containers.len());
}
