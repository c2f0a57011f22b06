//! Who is connected, what each subscribed to, and the way of a message from one side to the other.
//!
//! Nothing here waits for a client: messages go into bounded queues under a short lock.

use crate::outbox::{Closed, Message, Outbox};
use crate::retained::Retained;
use crate::{Incoming, Outgoing};
use bytes::Bytes;
use edgeloom_common::ids::NodeId;
use edgeloom_common::topics::{self, Uplink};
use edgeloom_identity::{Peer, Revoked};
use rumqttc::QoS;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The controller's presence until it says it itself; `schema` is that of the documents.
const PRESENT: &[u8] = br#"{"schema":1,"online":true,"session":0}"#;

/// The controller no longer listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the controller no longer takes messages")]
pub(crate) struct ControllerGone;

/// How long a session gets to show that it lives when another of the same node is at the door.
const CHALLENGE_PATIENCE: Duration = Duration::from_secs(3);

/// Why a node gets no session.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "node {node} is connected already, and that connection answers: is there a copy of its disk or certificate? Join the copy under a name of its own"
    )]
    Twice { node: NodeId },
    #[error("certificate {serial} of node {node} was revoked; the node has to join again")]
    Revoked { node: NodeId, serial: String },
}

/// One session, from accepted connect to its end.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) node: NodeId,
    pub(crate) outbox: Arc<Outbox>,
}

#[derive(Debug)]
struct Client {
    serial: String,
    outbox: Arc<Outbox>,
    filters: BTreeMap<String, QoS>,
}

#[derive(Debug, Default)]
struct State {
    clients: BTreeMap<NodeId, Client>,
    retained: Retained,
    /// What was refused in each node's name, since start.
    refusals: BTreeMap<NodeId, u64>,
}

/// The broker's middle.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    incoming: mpsc::Sender<(NodeId, Incoming)>,
    revoked: watch::Receiver<Revoked>,
    /// Payloads that did not parse, since start.
    unreadable: AtomicU64,
    /// QoS 0 messages dropped because the controller was behind, since start.
    dropped: AtomicU64,
}

impl Hub {
    pub(crate) fn new(incoming: mpsc::Sender<(NodeId, Incoming)>, revoked: watch::Receiver<Revoked>) -> Self {
        let (unreadable, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { state: Mutex::default(), incoming, revoked, unreadable, dropped }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics: it only moves messages")
    }

    /// Opens a session. An older one of the same node ends if it no longer answers (MQTT 3.1.1, 3.1.4 would
    /// end it always; two clones would then push each other out for ever).
    pub(crate) async fn open(&self, peer: Peer) -> Result<Session, Refused> {
        let Peer { node, serial } = peer;
        if let Some(old) = self.outbox(&node)
            && old.answers(self.challenge(), CHALLENGE_PATIENCE).await
        {
            return Err(Refused::Twice { node });
        }
        let outbox = Arc::new(Outbox::default());
        let mut state = self.state();
        // Under the lock: a revocation that comes later finds the session.
        if self.revoked.borrow().contains(&serial) {
            return Err(Refused::Revoked { node, serial });
        }
        let client = Client { serial, outbox: Arc::clone(&outbox), filters: BTreeMap::new() };
        if let Some(old) = state.clients.insert(node.clone(), client) {
            old.outbox.close(Closed::TakenOver);
        }
        Ok(Session { node, outbox })
    }

    fn outbox(&self, node: &NodeId) -> Option<Arc<Outbox>> {
        self.state().clients.get(node).map(|client| Arc::clone(&client.outbox))
    }

    /// The controller's presence, which every node knows and may be told at any time.
    fn challenge(&self) -> Message {
        let topic = topics::controller_status();
        let retained = self.state().retained.matching(&topic).pop();
        let payload = retained.map_or(Bytes::from_static(PRESENT), |(_, payload)| payload);
        Message { topic, payload, qos: QoS::AtLeastOnce, replaces: false, retained: false }
    }

    /// Ends the sessions of certificates that were revoked meanwhile.
    pub(crate) fn end_revoked(&self) {
        let revoked = Arc::clone(&self.revoked.borrow());
        for client in self.state().clients.values().filter(|client| revoked.contains(&client.serial)) {
            client.outbox.close(Closed::Revoked);
        }
    }

    /// Tells people what was refused in a node's name; powers of two, so that one who tries again and again
    /// fills neither log nor events.
    pub(crate) fn refuse(&self, node: &NodeId, reason: String) {
        let mut state = self.state();
        let count = state.refusals.entry(node.clone()).or_default();
        *count += 1;
        if count.is_power_of_two() {
            tracing::warn!(%node, count, "{reason}");
            // A controller that is behind has it in the log.
            let _ = self.incoming.try_send((node.clone(), Incoming::Refused(reason)));
        }
    }

    /// Forgets a session; false if a newer one of the node has its place already.
    pub(crate) fn close(&self, session: &Session) -> bool {
        session.outbox.close(Closed::Over);
        let mut state = self.state();
        let same = |client: &Client| Arc::ptr_eq(&client.outbox, &session.outbox);
        let current = state.clients.get(&session.node).is_some_and(same);
        if current {
            state.clients.remove(&session.node);
        }
        current
    }

    /// Subscribes a session and queues what is retained; false: the node may not read that.
    pub(crate) fn subscribe(&self, session: &Session, filter: &str, qos: QoS) -> bool {
        if !topics::may_subscribe(&session.node, filter) {
            tracing::warn!(node = %session.node, filter, "subscription refused: not among the node's filters");
            return false;
        }
        let mut state = self.state();
        for (topic, payload) in state.retained.matching(filter) {
            session.outbox.push(Message { topic, payload, qos, replaces: true, retained: true });
        }
        if let Some(client) = state.clients.get_mut(&session.node)
            && Arc::ptr_eq(&client.outbox, &session.outbox)
        {
            client.filters.insert(filter.to_owned(), qos);
        }
        true
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&self, session: &Session, filter: &str) {
        if let Some(client) = self.state().clients.get_mut(&session.node) {
            client.filters.remove(filter);
        }
    }

    /// Publishes a message of the controller.
    pub(crate) fn publish(&self, message: Outgoing) {
        let Outgoing { topic, payload, retain } = message;
        let payload = Bytes::from(payload);
        let mut state = self.state();
        for client in state.clients.values() {
            let Some((_, qos)) = client.filters.iter().find(|(filter, _)| rumqttc::matches(&topic, filter))
            else {
                continue;
            };
            let (topic, payload) = (topic.clone(), payload.clone());
            client.outbox.push(Message { topic, payload, qos: *qos, replaces: retain, retained: false });
        }
        if retain && let Err(error) = state.retained.set(&topic, payload) {
            tracing::error!(topic, %error, "value not retained");
        }
    }

    /// Hands a node's message to the controller. At QoS 0 it is dropped when the controller is behind;
    /// above, the node waits. Payloads that do not parse are counted and logged.
    pub(crate) async fn deliver(
        &self,
        node: &NodeId,
        kind: Uplink,
        message: (QoS, &[u8]),
    ) -> Result<(), ControllerGone> {
        let (qos, payload) = message;
        let parsed = match Incoming::parse(kind, payload) {
            Ok(parsed) => parsed,
            Err(error) => {
                let count = self.unreadable.fetch_add(1, Ordering::Relaxed) + 1;
                // Powers of two: a node that repeats itself does not fill the log.
                if count.is_power_of_two() {
                    tracing::warn!(%node, kind = kind.level(), %error, count, "message does not parse");
                }
                return Ok(());
            }
        };
        let item = (node.clone(), parsed);
        if qos != QoS::AtMostOnce {
            return self.incoming.send(item).await.map_err(|_| ControllerGone);
        }
        match self.incoming.try_send(item) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(ControllerGone),
            Err(mpsc::error::TrySendError::Full(_)) => {
                let count = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
                if count.is_power_of_two() {
                    tracing::warn!(%node, kind = kind.level(), count, "controller is behind, report dropped");
                }
                Ok(())
            }
        }
    }
}
