//! What the agent said and has not left yet.
//!
//! Reports are worth something only when fresh: sent at once or never. Of inventory, links, observed state
//! and the document held the newest waits for the connection. Pieces of replies keep their order in a bounded
//! queue and do not outlive a connection.

use crate::wire::Up;
use edgeloom_common::ids::NodeId;
use edgeloom_common::topics::{PACKET_MAX, Uplink};
use rumqttc::{AsyncClient, ClientError, QoS, Request};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Room for the MQTT header and the topic, which count as part of the packet.
const PAYLOAD_MAX: usize = PACKET_MAX - 1024;
/// Bytes of replies that wait; a reader of logs slower than this loses pieces, and sees it from the
/// sequence numbers.
const REPLIES_MAX_BYTES: usize = 256 * 1024;

#[derive(Debug, Default)]
struct Waiting {
    connected: bool,
    status: Option<Vec<u8>>,
    inventory: Option<Vec<u8>>,
    links: Option<Vec<u8>>,
    observed: Option<Vec<u8>>,
    held: Option<Vec<u8>>,
    replies: VecDeque<Vec<u8>>,
    replies_bytes: usize,
}

/// The waiting room between the agent and the connection.
#[derive(Debug)]
pub(super) struct Outbox {
    node: NodeId,
    client: AsyncClient,
    waiting: Mutex<Waiting>,
}

impl Outbox {
    pub(super) fn new(node: NodeId, client: AsyncClient) -> Self {
        Self { node, client, waiting: Mutex::default() }
    }

    /// Takes a message, and sends what can be sent. Never waits.
    pub(super) fn offer(&self, message: &Up) {
        match message {
            Up::Report(report) => self.send_or_drop(Uplink::Report, report),
            Up::Links(links) => self.lock().links = encode(Uplink::Links, links),
            Up::Inventory(inventory) => self.lock().inventory = encode(Uplink::Inventory, inventory),
            Up::Observed(observed) => self.lock().observed = encode(Uplink::Observed, observed),
            Up::Held(document) => self.lock().held = encode(Uplink::Held, &**document),
            Up::Reply(reply) => self.lock().add_reply(encode(Uplink::Reply, reply), reply.last),
        }
        self.flush();
    }

    /// From here on messages leave; presence goes first.
    pub(super) fn connected(&self, presence: Vec<u8>) {
        let mut waiting = self.lock();
        waiting.connected = true;
        waiting.status = Some(presence);
    }

    pub(super) fn disconnected(&self) {
        let mut waiting = self.lock();
        waiting.connected = false;
        waiting.replies.clear();
        waiting.replies_bytes = 0;
    }

    pub(super) fn is_connected(&self) -> bool {
        self.lock().connected
    }

    /// Hands on what waits, as far as the connection's queue takes it.
    pub(super) fn flush(&self) {
        let mut waiting = self.lock();
        let waiting = &mut *waiting;
        if !waiting.connected {
            return;
        }
        let slots = [
            (Uplink::Status, &mut waiting.status),
            (Uplink::Inventory, &mut waiting.inventory),
            (Uplink::Links, &mut waiting.links),
            (Uplink::Observed, &mut waiting.observed),
            (Uplink::Held, &mut waiting.held),
        ];
        for (kind, slot) in slots {
            if let Some(payload) = slot.take() {
                *slot = self.send(kind, payload);
            }
        }
        while let Some(payload) = waiting.replies.pop_front() {
            let bytes = payload.len();
            if let Some(refused) = self.send(Uplink::Reply, payload) {
                waiting.replies.push_front(refused);
                return;
            }
            waiting.replies_bytes -= bytes;
        }
    }

    fn send_or_drop(&self, kind: Uplink, message: &impl Serialize) {
        if self.is_connected()
            && let Some(payload) = encode(kind, message)
        {
            drop(self.send(kind, payload));
        }
    }

    /// Gives the payload back when the connection's queue is full.
    fn send(&self, kind: Uplink, payload: Vec<u8>) -> Option<Vec<u8>> {
        let (quality, retain) = match kind {
            Uplink::Report | Uplink::Links => (QoS::AtMostOnce, false),
            Uplink::Observed | Uplink::Reply | Uplink::Held => (QoS::AtLeastOnce, false),
            Uplink::Status | Uplink::Inventory => (QoS::AtLeastOnce, true),
        };
        match self.client.try_publish(kind.topic(&self.node), quality, retain, payload) {
            Err(ClientError::TryRequest(Request::Publish(refused))) => Some(refused.payload.into()),
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// The last piece of an answer always fits, so that nobody waits for it in vain.
    fn add_reply(&mut self, payload: Option<Vec<u8>>, last: bool) {
        let Some(payload) = payload.filter(|_| self.connected) else {
            return;
        };
        if !last && self.replies_bytes + payload.len() > REPLIES_MAX_BYTES {
            tracing::debug!(bytes = payload.len(), "piece of a reply dropped: too many wait");
            return;
        }
        self.replies_bytes += payload.len();
        self.replies.push_back(payload);
    }
}

/// None for a message that no broker of ours would take: sending it would end the connection.
fn encode(kind: Uplink, message: &impl Serialize) -> Option<Vec<u8>> {
    match serde_json::to_vec(message) {
        Ok(payload) if payload.len() <= PAYLOAD_MAX => Some(payload),
        Ok(payload) => {
            let bytes = payload.len();
            tracing::error!(kind = kind.level(), bytes, bound = PAYLOAD_MAX, "message too long to send");
            None
        }
        Err(error) => {
            tracing::error!(kind = kind.level(), %error, "message cannot be written as JSON");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::desired::{SCHEMA, Version};
    use edgeloom_common::report::{Links, Reply, Report};
    use edgeloom_common::samples;
    use edgeloom_common::units::{Bytes, MilliCores};
    use rumqttc::{EventLoop, MqttOptions};

    const QUEUE: usize = 4;

    fn outbox() -> (Outbox, EventLoop) {
        let (client, event_loop) = AsyncClient::new(MqttOptions::new("n1", "localhost", 1), QUEUE);
        (Outbox::new("n1".parse().unwrap(), client), event_loop)
    }

    /// The payloads that reached the connection's queue.
    fn sent(event_loop: &mut EventLoop) -> Vec<String> {
        event_loop.clean();
        let payload = |request| match request {
            Request::Publish(publish) => String::from_utf8(publish.payload.to_vec()).unwrap(),
            other => panic!("unexpected request {other:?}"),
        };
        event_loop.pending.drain(..).map(payload).collect()
    }

    fn report() -> Up {
        let (cpu_used, memory_used, disk_used) = (MilliCores(1), Bytes(2), Bytes(3));
        Up::Report(Report { schema: SCHEMA, cpu_used, memory_used, disk_used, ..Report::default() })
    }

    fn links() -> Up {
        Up::Links(Links { schema: SCHEMA, links: Vec::new() })
    }

    fn observed(generation: u64) -> Up {
        Up::Observed(samples::observed(Version { epoch: 1, generation }, Vec::new()))
    }

    fn reply(sequence: u64, text: String, last: bool) -> Up {
        Up::Reply(Reply { id: 1, sequence, text, last, error: String::new() })
    }

    #[tokio::test]
    async fn without_a_connection_only_the_newest_state_is_kept() {
        let (outbox, mut event_loop) = outbox();
        (0..100).for_each(|_| outbox.offer(&report()));
        (0..100).for_each(|generation| outbox.offer(&observed(generation)));
        outbox.offer(&reply(0, "line".to_owned(), true));
        assert!(sent(&mut event_loop).is_empty());

        outbox.connected(b"here".to_vec());
        outbox.flush();
        let sent = sent(&mut event_loop);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0], "here");
        assert!(sent[1].contains("\"generation\":99"), "{sent:?}");
    }

    #[tokio::test]
    async fn a_full_queue_drops_reports_and_keeps_the_newest_state() {
        let (outbox, mut event_loop) = outbox();
        outbox.connected(b"here".to_vec());
        (0..100).for_each(|_| outbox.offer(&report()));
        (0..100).for_each(|_| outbox.offer(&links()));
        (0..100).for_each(|generation| outbox.offer(&observed(generation)));
        assert_eq!(sent(&mut event_loop).len(), QUEUE);
        outbox.flush();
        let rest = sent(&mut event_loop);
        assert_eq!(rest.len(), 2, "{rest:?}");
        assert!(rest[0].contains("links") && rest[1].contains("\"generation\":99"), "{rest:?}");
    }

    #[tokio::test]
    async fn replies_keep_their_order_are_bounded_and_end() {
        let (outbox, mut event_loop) = outbox();
        outbox.connected(b"here".to_vec());
        for sequence in 0..1000 {
            outbox.offer(&reply(sequence, "x".repeat(1000), false));
        }
        outbox.offer(&reply(1000, String::new(), true));
        let mut all = Vec::new();
        loop {
            outbox.flush();
            let some = sent(&mut event_loop);
            if some.is_empty() {
                break;
            }
            all.extend(some.into_iter().filter(|payload| payload != "here"));
        }
        assert!(all.len() < 300 && all.iter().map(String::len).sum::<usize>() < REPLIES_MAX_BYTES + 5000);
        let read = |payload: &String| serde_json::from_str::<Reply>(payload).unwrap();
        let sequences: Vec<u64> = all.iter().map(|payload| read(payload).sequence).collect();
        assert!(sequences.is_sorted());
        assert!(read(all.last().unwrap()).last);
        assert_eq!(outbox.lock().replies_bytes, 0);
    }
}
