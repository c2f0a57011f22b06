//! Open requests by id, and the way of each reply to its reader. Logs, measurements and removals of volumes share it:
//! all are commands to one agent, answered in numbered pieces.

use edgeloom_cluster::Publish;
use edgeloom_common::ids::NodeId;
use edgeloom_common::measure::MeasureCommand;
use edgeloom_common::report::{LogsCommand, Reply};
use edgeloom_common::topics;
use edgeloom_common::volume::VolumeCommand;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Requests open at once, over all readers.
const OPEN_MAX: usize = 256;

/// Chunks that wait for one reader; agents send chunks of a few KiB.
const CHUNKS_MAX: usize = 256;

/// Room for this many requests a second of uptime before ids of two lives could meet.
const IDS_PER_SECOND: u64 = 1 << 20;

/// Why no stream opens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogsError {
    /// Too many readers.
    #[error("{OPEN_MAX} log streams are open already")]
    TooMany,
    /// The way to the agents is closed or full.
    #[error("commands do not reach the broker")]
    Unreachable,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Chunks are missing here: the node's connection was interrupted, or the reader was too slow.
    Gap,
    /// The agent could not go on.
    Failed(String),
}

/// A command that an agent answers in pieces.
pub trait Command: Serialize + Clone {
    /// The level of its topic.
    const KIND: &'static str;
    /// The same command, to end it.
    #[must_use]
    fn cancelled(self) -> Self;
}

impl Command for LogsCommand {
    const KIND: &'static str = "logs";
    fn cancelled(self) -> Self {
        Self { cancel: true, ..self }
    }
}

impl Command for MeasureCommand {
    const KIND: &'static str = "measure";
    fn cancelled(self) -> Self {
        Self { cancel: true, ..self }
    }
}

impl Command for VolumeCommand {
    const KIND: &'static str = "volume";
    fn cancelled(self) -> Self {
        Self { cancel: true, ..self }
    }
}

/// The switchboard; clones share it.
#[derive(Debug, Clone)]
pub struct Logs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    publish: mpsc::Sender<Publish>,
    open: Mutex<BTreeMap<u64, Request>>,
    next_id: AtomicU64,
}

#[derive(Debug)]
struct Request {
    node: NodeId,
    chunks: mpsc::Sender<Reply>,
}

impl Inner {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Request>> {
        self.open.lock().expect("no holder of this lock panics: it only moves entries")
    }

    fn publish(&self, publish: Publish) -> Result<(), LogsError> {
        self.publish.try_send(publish).map_err(|_| LogsError::Unreachable)
    }
}

fn publication<C: Command>((node, id): (&NodeId, u64), command: &C) -> Publish {
    let payload = serde_json::to_vec(command).expect("a command of texts and numbers is JSON");
    Publish { topic: topics::command(node, C::KIND, id), payload, retain: false }
}

impl Logs {
    /// A switchboard that sends its commands over `publish`.
    #[must_use]
    pub fn new(publish: mpsc::Sender<Publish>) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let next_id = AtomicU64::new(started.saturating_mul(IDS_PER_SECOND));
        Self { inner: Arc::new(Inner { publish, open: Mutex::default(), next_id }) }
    }

    /// Asks the agent of `node` and opens the stream of its answer.
    pub fn open<C: Command>(&self, node: NodeId, command: C) -> Result<Answer, LogsError> {
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = self.inner.open();
            if open.len() >= OPEN_MAX {
                return Err(LogsError::TooMany);
            }
            open.insert(id, Request { node: node.clone(), chunks: sender });
        }
        let asked = publication((&node, id), &command);
        let answer = Answer {
            id,
            cancel: publication((&node, id), &command.cancelled()),
            chunks,
            sequence: 0,
            ended: false,
            held: None,
            inner: Arc::clone(&self.inner),
        };
        self.inner.publish(asked)?;
        Ok(answer)
    }

    /// Hands a reply to its reader. Replies of another node than was asked are dropped; a reader that is
    /// behind loses chunks and sees a gap, rather than holding up the bus.
    pub fn reply(&self, node: &NodeId, reply: Reply) {
        let mut open = self.inner.open();
        let id = reply.id;
        let Some(request) = open.get(&id) else { return };
        if request.node != *node {
            tracing::warn!(%node, id, asked = %request.node, "reply of a node that was not asked, dropped");
            return;
        }
        let last = reply.last;
        let _ = request.chunks.try_send(reply);
        if last {
            open.remove(&id);
        }
    }
}

/// The answer to one command, piece by piece.
#[derive(Debug)]
pub struct Answer {
    id: u64,
    /// What ends it before its end.
    cancel: Publish,
    chunks: mpsc::Receiver<Reply>,
    /// The next chunk's number.
    sequence: u64,
    ended: bool,
    /// A chunk that came after a gap, to be given after the gap is told.
    held: Option<Reply>,
    inner: Arc<Inner>,
}

impl Answer {
    /// The next piece; none at the end. Loses nothing when the wait is given up.
    pub async fn next(&mut self) -> Option<Piece> {
        while !self.ended {
            let reply = match self.held.take() {
                Some(held) => held,
                None => match self.chunks.recv().await {
                    Some(reply) => reply,
                    None => {
                        // The last chunk itself did not fit into the queue.
                        self.ended = true;
                        return Some(Piece::Gap);
                    }
                },
            };
            if reply.sequence < self.sequence {
                continue;
            }
            if reply.sequence > self.sequence {
                self.sequence = reply.sequence;
                self.held = Some(reply);
                return Some(Piece::Gap);
            }
            self.sequence += 1;
            self.ended = reply.last;
            if !reply.error.is_empty() {
                self.ended = true;
                return Some(Piece::Failed(reply.error));
            }
            if !reply.text.is_empty() {
                return Some(Piece::Text(reply.text));
            }
        }
        None
    }
}

impl Drop for Answer {
    /// An unfinished request ends at the agent too; if that message is lost, the agent's own limit ends it.
    fn drop(&mut self) {
        self.inner.open().remove(&self.id);
        if !self.ended {
            let _ = self.inner.publish(self.cancel.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> LogsCommand {
        let (job, task) = ("j".parse().unwrap(), "t".parse().unwrap());
        LogsCommand { job, task, follow: true, tail: None, since_s: None, timestamps: false, cancel: false }
    }

    fn reply(id: u64, sequence: u64, text: &str) -> Reply {
        Reply { id, sequence, text: text.to_owned(), last: false, error: String::new() }
    }

    fn node(name: &str) -> NodeId {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn chunks_arrive_once_and_in_order_and_gaps_are_told() {
        let (publish, mut published) = mpsc::channel(8);
        let logs = Logs::new(publish);
        let mut log = logs.open(node("n1"), command()).unwrap();
        let id = log.id;
        assert_eq!(published.recv().await.unwrap().topic, topics::command(&node("n1"), "logs", id));
        logs.reply(&node("n2"), reply(id, 0, "not mine"));
        logs.reply(&node("n1"), reply(id, 0, "a"));
        logs.reply(&node("n1"), reply(id, 0, "a"));
        logs.reply(&node("n1"), reply(id, 3, "d"));
        logs.reply(&node("n1"), Reply { last: true, ..reply(id, 4, "e") });
        let mut pieces = Vec::new();
        while let Some(piece) = log.next().await {
            pieces.push(piece);
        }
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(pieces, [text("a"), Piece::Gap, text("d"), text("e")]);
        drop(log);
        assert!(published.try_recv().is_err(), "a finished request is not cancelled");
    }

    #[tokio::test]
    async fn a_dropped_stream_is_cancelled_at_the_agent() {
        let (publish, mut published) = mpsc::channel(8);
        let logs = Logs::new(publish);
        let log = logs.open(node("n1"), command()).unwrap();
        published.recv().await.unwrap();
        drop(log);
        let cancel: LogsCommand = serde_json::from_slice(&published.recv().await.unwrap().payload).unwrap();
        assert!(cancel.cancel);
    }

    #[tokio::test]
    async fn a_reader_that_is_behind_sees_a_gap() {
        let (publish, _published) = mpsc::channel(8);
        let logs = Logs::new(publish);
        let mut log = logs.open(node("n1"), command()).unwrap();
        let total = u64::try_from(CHUNKS_MAX).unwrap() + 5;
        for sequence in 0..total {
            let last = sequence + 1 == total;
            logs.reply(&node("n1"), Reply { last, ..reply(log.id, sequence, "x") });
        }
        let mut last = None;
        while let Some(piece) = log.next().await {
            last = Some(piece);
        }
        assert_eq!(last, Some(Piece::Gap));
    }
}
