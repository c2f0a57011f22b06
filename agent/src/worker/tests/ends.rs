//! Containers that run to an end of their own.

use super::*;
use edgeloom_common::desired::{Kept, ToEnd};
use edgeloom_common::report::{ContainerState, Outcome};

/// Task `a`, of this run of its job.
fn ending(retries: u32, run: u64) -> ContainerSpec {
    ContainerSpec { to_end: Some(ToEnd { retries, run }), ..spec("a", &format!("h{run}")) }
}

fn outcome(exit_code: i32, attempts: u32) -> Option<Outcome> {
    Some(Outcome { exit_code: Some(exit_code), attempts })
}

fn phase(observed: &Observed) -> Option<ContainerPhase> {
    observed.containers.first().map(|container| container.phase)
}

async fn runs(agent: &mut Agent) {
    agent.observed(|observed| phase(observed) == Some(ContainerPhase::Running)).await;
}

async fn over(agent: &mut Agent) -> ContainerState {
    let seen =
        agent.observed(|observed| observed.containers.first().is_some_and(|it| it.outcome.is_some())).await;
    seen.containers[0].clone()
}

/// Looks for long enough that whatever is to be started again is started.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_success_is_told_and_never_run_again_whoever_comes_back() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(3, 1)])).await;
    runs(&mut agent).await;
    node.engine.end(&key("a"), 0);
    let seen = over(&mut agent).await;
    assert_eq!(
        (seen.phase, seen.outcome, seen.detail.as_str()),
        (ContainerPhase::Succeeded, outcome(0, 1), "")
    );
    assert!(seen.started_ms <= seen.finished_ms && seen.started_ms.is_some());
    agent.kill().await;
    let mut agent = node.agent();
    assert_eq!(over(&mut agent).await.outcome, outcome(0, 1));
    node.engine.set_answering(false);
    settle().await;
    node.engine.set_answering(true);
    agent.commands.send(Command::EngineRestarted).await.unwrap();
    settle().await;
    assert_eq!(node.engine.starts(&key("a")), 1);
}

#[tokio::test(start_paused = true)]
async fn what_ended_while_nobody_looked_is_told_and_stays_ended_when_somebody_removes_it() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(0, 1)])).await;
    runs(&mut agent).await;
    agent.kill().await;
    node.engine.end(&key("a"), 0);
    let mut agent = node.agent();
    assert_eq!(over(&mut agent).await.outcome, outcome(0, 1));
    let id = node.engine.list().await.unwrap()[0].id.clone();
    node.engine.remove(&id).await.unwrap();
    agent.kill().await;
    let mut agent = node.agent();
    let seen = over(&mut agent).await;
    assert_eq!((seen.phase, seen.outcome), (ContainerPhase::Succeeded, outcome(0, 1)));
    settle().await;
    assert_eq!(node.engine.starts(&key("a")), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_so_often_and_told_with_its_code() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(2, 1)])).await;
    for attempt in 1..=3 {
        runs(&mut agent).await;
        if attempt == 2 {
            agent.kill().await;
            node.engine.end(&key("a"), 7);
            agent = node.agent();
        } else {
            node.engine.end(&key("a"), 7);
        }
    }
    let seen = over(&mut agent).await;
    assert_eq!((seen.phase, seen.outcome), (ContainerPhase::Failed, outcome(7, 3)));
    assert_eq!(seen.detail, "exited with code 7, 3 of 3 attempts");
    settle().await;
    assert_eq!(node.engine.starts(&key("a")), 3);
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_may_succeed() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(5, 1)])).await;
    runs(&mut agent).await;
    node.engine.end(&key("a"), 1);
    agent.observed(|observed| phase(observed) == Some(ContainerPhase::Exited)).await;
    runs(&mut agent).await;
    node.engine.end(&key("a"), 0);
    assert_eq!(over(&mut agent).await.outcome, outcome(0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_kept_container_stays_for_its_logs_until_it_is_not_named_any_more() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(0, 1)])).await;
    runs(&mut agent).await;
    node.engine.end(&key("a"), 0);
    over(&mut agent).await;
    let kept = Kept { job: "j".parse().unwrap(), task: "a".parse().unwrap() };
    agent.tell(DesiredState { kept: vec![kept], ..document(2, vec![]) }).await;
    let seen = agent.converged(2).await;
    assert_eq!(seen.containers[0].outcome, outcome(0, 1));
    settle().await;
    assert_eq!((node.engine.removals(), node.engine.starts(&key("a"))), (0, 1));
    agent.tell(document(3, vec![])).await;
    assert!(agent.converged(3).await.containers.is_empty());
    assert_eq!(node.engine.removals(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_the_same_name_runs_though_an_earlier_one_ended() {
    let node = Node::new();
    let mut agent = node.agent();
    for run in 1..=2 {
        agent.tell(document(run, vec![ending(0, run)])).await;
        let starts = |observed: &Observed| observed.version.generation == run && observed.converged;
        agent.observed(|seen| starts(seen) && phase(seen) == Some(ContainerPhase::Running)).await;
        node.engine.end(&key("a"), 4);
        assert_eq!(over(&mut agent).await.outcome, outcome(4, 1));
    }
    assert_eq!(node.engine.starts(&key("a")), 2);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_engine_does_not_tell_is_told_as_unknown_and_not_waited_for() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(3, 1)])).await;
    runs(&mut agent).await;
    node.engine.hold(&key("a"), FoundState::Running, Hold::Brief);
    settle().await;
    node.engine.hold(&key("a"), FoundState::Exited(None), Hold::Long);
    let seen = over(&mut agent).await;
    assert_eq!(
        (seen.phase, seen.outcome),
        (ContainerPhase::Failed, Some(Outcome { exit_code: None, attempts: 1 }))
    );
    assert!(seen.detail.contains("restart docker"), "{}", seen.detail);
    agent.kill().await;
    assert_eq!(over(&mut node.agent()).await.outcome, seen.outcome, "whoever comes back");
}

#[tokio::test(start_paused = true)]
async fn a_code_that_is_known_counts_though_nobody_is_let_at_the_container() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(1, 1)])).await;
    runs(&mut agent).await;
    node.engine.hold(&key("a"), FoundState::Exited(Some(0)), Hold::Brief);
    assert_eq!(over(&mut agent).await.outcome, outcome(0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_waits_for_a_busy_engine_and_is_tried_again() {
    let node = Node::new();
    let mut agent = node.agent();
    agent.tell(document(1, vec![ending(1, 1)])).await;
    runs(&mut agent).await;
    node.engine.hold(&key("a"), FoundState::Exited(Some(7)), Hold::Brief);
    agent.observed(|observed| phase(observed) == Some(ContainerPhase::Exited)).await;
    settle().await;
    assert_eq!(node.engine.starts(&key("a")), 1);
    node.engine.hold(&key("a"), FoundState::Exited(Some(7)), Hold::Free);
    runs(&mut agent).await;
    node.engine.end(&key("a"), 0);
    assert_eq!(over(&mut agent).await.outcome, outcome(0, 2));
}

#[tokio::test(start_paused = true)]
async fn an_action_that_does_not_end_hides_no_other_container() {
    let node = Node::new();
    let mut agent = node.agent();
    let other = ContainerSpec { to_end: Some(ToEnd { retries: 0, run: 1 }), ..spec("b", "h1") };
    agent.tell(document(1, vec![ending(1, 1), other.clone()])).await;
    agent.converged(1).await;
    // Nothing was asked of it before, so nobody knows yet; and then its removal does not end.
    node.engine.hold_unseen(&key("a"));
    agent.tell(document(2, vec![other])).await;
    agent.observed(|observed| observed.version.generation == 2).await;
    settle().await;
    node.engine.end(&key("b"), 0);
    let ended = |observed: &Observed| observed.containers.iter().any(|it| it.outcome == outcome(0, 1));
    let seen = agent.observed(ended).await;
    assert_eq!(seen.containers.len(), 2, "the other one is told still");
    node.engine.hold(&key("a"), FoundState::Running, Hold::Free);
    agent.observed(|observed| observed.containers.len() == 1).await;
}
