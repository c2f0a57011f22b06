//! What waits for one client: bounded, so that a client that does not read costs no more than this.

use bytes::Bytes;
use rumqttc::QoS;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Messages that wait for one client.
const MESSAGES_MAX: usize = 1024;

/// Payload bytes that wait for one client: eight packets of the largest size.
const BYTES_MAX: usize = 8 * edgeloom_common::topics::PACKET_MAX;

/// A message on its way to one client.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) qos: QoS,
    /// The latest value of its topic: one that waits is replaced by it.
    pub(crate) replaces: bool,
    /// Comes from the retained store, at subscription (MQTT 3.1.1, 3.3.1.3).
    pub(crate) retained: bool,
}

/// Why the broker ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Closed {
    #[error("the same node connected again, and this connection no longer answered")]
    TakenOver,
    #[error("the node's certificate was revoked")]
    Revoked,
    #[error("the session is over")]
    Over,
    #[error("the client does not read: {MESSAGES_MAX} messages or {BYTES_MAX} bytes wait")]
    Overflow,
}

/// The queue between the hub, which never waits, and one connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    closed: CancellationToken,
    /// Packets that came from the client.
    heard: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    closed: Option<Closed>,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of this lock panics: it only moves messages")
    }

    /// Adds a message. One that does not fit is dropped at QoS 0 and ends the session at QoS 1, so that
    /// the client comes back and gets the latest values instead of a gap.
    pub(crate) fn push(&self, message: Message) {
        let mut queue = self.queue();
        if message.replaces
            && let Some(waiting) = queue.messages.iter().position(|waiting| waiting.topic == message.topic)
            && let Some(old) = queue.messages.remove(waiting)
        {
            queue.bytes -= old.payload.len();
        }
        if queue.messages.len() >= MESSAGES_MAX || queue.bytes + message.payload.len() > BYTES_MAX {
            drop(queue);
            if message.qos != QoS::AtMostOnce {
                self.close(Closed::Overflow);
            }
            return;
        }
        queue.bytes += message.payload.len();
        queue.messages.push_back(message);
        drop(queue);
        self.filled.notify_one();
    }

    /// The next message; waits for one. Loses nothing when the wait is given up.
    pub(crate) async fn next(&self) -> Message {
        loop {
            {
                let mut queue = self.queue();
                if let Some(message) = queue.messages.pop_front() {
                    queue.bytes -= message.payload.len();
                    return message;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Ends the session; the first reason counts.
    pub(crate) fn close(&self, reason: Closed) {
        self.queue().closed.get_or_insert(reason);
        self.closed.cancel();
    }

    /// Notes that the client said something.
    pub(crate) fn hear(&self) {
        self.heard.send_modify(|packets| *packets += 1);
    }

    /// Sends the client something to acknowledge and waits whether it does, or says anything else.
    pub(crate) async fn answers(&self, challenge: Message, patience: Duration) -> bool {
        let mut heard = self.heard.subscribe();
        heard.mark_unchanged();
        self.push(challenge);
        tokio::select! {
            word = heard.changed() => word.is_ok(),
            _ = self.closed() => false,
            () = sleep(patience) => false,
        }
    }

    /// Waits for the end of the session.
    pub(crate) async fn closed(&self) -> Closed {
        self.closed.cancelled().await;
        self.queue().closed.unwrap_or(Closed::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(topic: &str, bytes: usize, replaces: bool) -> Message {
        let payload = Bytes::from(vec![0; bytes]);
        Message { topic: topic.to_owned(), payload, qos: QoS::AtLeastOnce, replaces, retained: false }
    }

    #[tokio::test]
    async fn a_newer_value_replaces_the_one_that_waits() {
        let outbox = Outbox::default();
        for bytes in 1..=100 {
            outbox.push(message("desired", bytes * 1000, true));
        }
        outbox.push(message("cmd", 1, false));
        assert_eq!(outbox.next().await.payload.len(), 100_000);
        assert_eq!(outbox.next().await.topic, "cmd");
        assert_eq!(outbox.queue().bytes, 0);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_ended() {
        let outbox = Outbox::default();
        for _ in 0..9 {
            outbox.push(message("cmd", 1024 * 1024, false));
        }
        assert_eq!(outbox.closed().await, Closed::Overflow);
    }
}
