//! Logs of containers, sent as numbered replies.
//!
//! A request reads from the engine only as fast as its replies leave: every channel on the way is
//! bounded. At most [`REQUESTS_MAX`] run at a time; the next is refused with the reason.

use crate::engine::{ContainerEngine, EngineError, LogSelection, TaskKey};
use crate::replies::{CHUNK_BYTES, Replies};
use crate::wire::Up;
use edgeloom_common::report::LogsCommand;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// People reading along on one node at a time.
const REQUESTS_MAX: usize = 4;
/// Pieces read ahead of a slow connection.
const READ_AHEAD: usize = 4;
/// A log that was cut must not look like a whole one.
const CUT: &str = "the log was cut: it was cancelled, or the agent connected anew; ask again";

/// The requests under way.
#[derive(Debug)]
pub(crate) struct LogRequests<E> {
    engine: Arc<E>,
    up: mpsc::Sender<Up>,
    running: HashMap<u64, CancellationToken>,
    tasks: JoinSet<u64>,
}

impl<E: ContainerEngine> LogRequests<E> {
    pub(crate) fn new(engine: Arc<E>, up: mpsc::Sender<Up>) -> Self {
        Self { engine, up, running: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Begins a request, or ends an earlier one.
    pub(crate) fn take(&mut self, id: u64, command: LogsCommand) {
        self.reap();
        if command.cancel {
            self.running.get(&id).iter().for_each(|token| token.cancel());
            return;
        }
        if self.running.contains_key(&id) {
            return;
        }
        let mut replies = Replies::new(id, self.up.clone());
        if REQUESTS_MAX <= self.running.len() {
            self.tasks.spawn(async move {
                let error =
                    format!("{REQUESTS_MAX} log requests are under way on this node; try again later");
                replies.end(error).await;
                id
            });
            return;
        }
        let stop = CancellationToken::new();
        self.running.insert(id, stop.clone());
        let engine = Arc::clone(&self.engine);
        self.tasks.spawn(async move {
            let error = match stop.run_until_cancelled(copy(engine, command, &mut replies)).await {
                Some(Ok(())) => String::new(),
                Some(Err(error)) => error.to_string(),
                None => CUT.to_owned(),
            };
            replies.end(error).await;
            id
        });
    }

    /// Ends all requests: what they said was lost with the connection before, and so may be the message
    /// that ends them. Their places are free at once.
    pub(crate) fn cancel_all(&mut self) {
        self.running.drain().for_each(|(_, token)| token.cancel());
    }

    /// Forgets requests that have ended. An id comes again only after that.
    fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Ok(id) = ended {
                self.running.remove(&id);
            }
        }
    }
}

/// Why a request brought no log, or not all of it.
#[derive(Debug, thiserror::Error)]
enum LogsError {
    #[error("task {task} has no container on this node")]
    NoContainer { task: TaskKey },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

async fn copy<E: ContainerEngine>(
    engine: Arc<E>,
    command: LogsCommand,
    replies: &mut Replies,
) -> Result<(), LogsError> {
    let task = TaskKey { job: command.job, task: command.task };
    let found = engine.list().await?.into_iter().find(|container| container.key == task);
    let container = found.ok_or(LogsError::NoContainer { task })?;
    let selection = LogSelection {
        follow: command.follow,
        tail: command.tail,
        since_s: command.since_s,
        timestamps: command.timestamps,
    };
    let (sender, mut pieces) = mpsc::channel(READ_AHEAD);
    let reading = engine.logs(&container.id, selection, sender);
    let sending = async {
        while let Some(mut bytes) = pieces.recv().await {
            while bytes.len() < CHUNK_BYTES {
                let Ok(more) = pieces.try_recv() else { break };
                bytes.extend(more);
            }
            replies.send(&String::from_utf8_lossy(&bytes)).await;
        }
    };
    let (read, ()) = tokio::join!(reading, sending);
    Ok(read?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NetworkSpec;
    use crate::engine::fake::{DIGEST, FakeEngine, document, spec};
    use edgeloom_common::report::Reply;
    use std::collections::BTreeMap;

    async fn engine() -> Arc<FakeEngine> {
        let engine = FakeEngine::default();
        engine.load(DIGEST);
        let network = NetworkSpec { bridge: "b".to_owned(), pool: document(1, vec![]).pool };
        engine.ensure_network(&network).await.unwrap();
        engine.create(&spec("a", "h"), "b").await.unwrap();
        Arc::new(engine)
    }

    fn command(task: &str, follow: bool) -> LogsCommand {
        let spec = spec(task, "h");
        let (tail, since_s) = (Some(2), None);
        LogsCommand {
            job: spec.job,
            task: spec.task,
            follow,
            tail,
            since_s,
            timestamps: false,
            cancel: false,
        }
    }

    async fn replies(up: &mut mpsc::Receiver<Up>) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(Up::Reply(reply)) = up.recv().await {
            let last = reply.last;
            replies.push(reply);
            if last {
                break;
            }
        }
        replies
    }

    #[tokio::test]
    async fn replies_are_numbered_and_end_once() {
        let (sender, mut up) = mpsc::channel(8);
        let mut requests = LogRequests::new(engine().await, sender);
        requests.take(7, command("a", false));
        let replies = replies(&mut up).await;
        let text: String = replies.iter().map(|reply| reply.text.as_str()).collect();
        assert_eq!(text, "line 0\nline 1\n");
        assert!(replies.iter().zip(0..).all(|(reply, sequence)| reply.sequence == sequence && reply.id == 7));
        assert_eq!(replies.last().map(|reply| reply.error.as_str()), Some(""));
    }

    #[tokio::test]
    async fn a_followed_log_ends_when_it_is_cancelled() {
        let (sender, mut up) = mpsc::channel(8);
        let mut requests = LogRequests::new(engine().await, sender);
        requests.take(1, command("a", true));
        assert!(matches!(up.recv().await, Some(Up::Reply(Reply { last: false, .. }))));
        requests.take(1, LogsCommand { cancel: true, ..command("a", true) });
        assert!(replies(&mut up).await.last().unwrap().last);
    }

    #[tokio::test]
    async fn a_new_connection_ends_all_requests_and_frees_their_places() {
        let (sender, mut up) = mpsc::channel(32);
        let mut requests = LogRequests::new(engine().await, sender);
        for id in 0..REQUESTS_MAX as u64 {
            requests.take(id, command("a", true));
        }
        requests.cancel_all();
        requests.take(9, command("a", false));
        let mut ended = BTreeMap::new();
        while ended.len() <= REQUESTS_MAX {
            match up.recv().await {
                Some(Up::Reply(reply)) if reply.last => drop(ended.insert(reply.id, reply.error)),
                _ => {}
            }
        }
        assert_eq!(ended.remove(&9).as_deref(), Some(""));
        assert!(ended.values().all(|error| error == CUT));
    }

    #[tokio::test]
    async fn a_task_that_is_not_here_is_answered_with_an_error() {
        let (sender, mut up) = mpsc::channel(8);
        let mut requests = LogRequests::new(engine().await, sender);
        requests.take(1, command("elsewhere", false));
        assert!(replies(&mut up).await[0].error.contains("j/elsewhere"));
    }

    #[tokio::test]
    async fn requests_beyond_the_bound_are_refused() {
        let (sender, mut up) = mpsc::channel(32);
        let mut requests = LogRequests::new(engine().await, sender);
        for id in 0..=REQUESTS_MAX as u64 {
            requests.take(id, command("a", true));
        }
        let refused = loop {
            match up.recv().await {
                Some(Up::Reply(reply)) if reply.last => break reply,
                _ => {}
            }
        };
        assert_eq!(refused.id, REQUESTS_MAX as u64);
    }
}
