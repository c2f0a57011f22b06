//! What came in and waits for the agent. The agent may be busy for minutes; the connection may not
//! wait for it, so the newest document stands in for all before it.

use crate::accept::Refusal;
use crate::wire::{Down, Received};
use edgeloom_common::confidential::{Confidential, Enclosed};
use edgeloom_common::desired::{DesiredState, SCHEMA};
use edgeloom_common::ids::NodeId;
use edgeloom_common::measure;
use edgeloom_common::report::{DocumentCommand, Status};
use edgeloom_common::topics::{PACKET_MAX, controller_status, desired, parse_command};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// Documents that none of the others replaces: of different clusters, or older ones sent on purpose.
const DOCUMENTS_MAX: usize = 4;
const COMMANDS_MAX: usize = 64;
/// The longest command in bytes; a measurement has its own bound.
const COMMAND_MAX: usize = 4096;

#[derive(Debug, Default)]
struct Waiting {
    /// The newest of connections made and lost.
    presence: Option<Down>,
    documents: VecDeque<Box<Received>>,
    /// Why the last document is none, until one reads.
    unread: Option<Refusal>,
    commands: VecDeque<Down>,
}

/// The waiting room between the connection and the agent.
#[derive(Debug)]
pub(super) struct Inbox {
    node: NodeId,
    waiting: Mutex<Waiting>,
    changed: Notify,
}

impl Inbox {
    pub(super) fn new(node: NodeId) -> Self {
        Self { node, waiting: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn connected(&self) {
        self.change(|waiting| waiting.presence = Some(Down::Connected));
    }

    /// The session ended; something was heard last at this time.
    pub(super) fn disconnected(&self, heard: Instant) {
        self.change(|waiting| waiting.presence = Some(Down::Disconnected(heard)));
    }

    /// Sorts in one message; what does not read is reported and forgotten.
    pub(super) fn take_in(&self, topic: &str, payload: &[u8]) {
        if topic == desired(&self.node) {
            match received(topic, payload) {
                Ok(received) => self.change(|waiting| waiting.add_document(Box::new(received))),
                // The one that is held stays in force; people have to hear of it.
                Err(Unread::Syntax(reason)) => {
                    self.change(|waiting| waiting.unread = Some(unread_document(payload, reason)));
                }
                Err(Unread::Empty | Unread::TooLong) => {}
            }
        } else if topic == controller_status() {
            if let Ok(status) = read::<Status>(topic, payload, COMMAND_MAX) {
                tracing::info!(online = status.online, session = status.session, "controller's presence");
            }
        } else if let Some(command) = self.command(topic, payload) {
            self.change(|waiting| waiting.add_command(command));
        } else {
            tracing::debug!(topic, "message that is none for us");
        }
    }

    fn command(&self, topic: &str, payload: &[u8]) -> Option<Down> {
        match parse_command(&self.node, topic)? {
            ("document", _) => {
                read::<DocumentCommand>(topic, payload, COMMAND_MAX).ok().map(|_| Down::DocumentAsked)
            }
            ("logs", id) => read(topic, payload, COMMAND_MAX).ok().map(|command| Down::Logs(id, command)),
            ("volume", id) => read(topic, payload, COMMAND_MAX).ok().map(|command| Down::Volume(id, command)),
            ("measure", id) => {
                read(topic, payload, measure::COMMAND_MAX).ok().map(|command| Down::Measure(id, command))
            }
            _ => None,
        }
    }

    /// Hands on what waits, in order of urgency, until nobody listens.
    pub(super) async fn deliver(&self, down: mpsc::Sender<Down>) {
        loop {
            self.changed.notified().await;
            while let Some(next) = self.next() {
                if down.send(next).await.is_err() {
                    return;
                }
            }
        }
    }

    fn next(&self) -> Option<Down> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(presence) = waiting.presence.take() {
            return Some(presence);
        }
        if let Some(document) = waiting.documents.pop_front() {
            return Some(Down::Desired(document));
        }
        if let Some(refusal) = waiting.unread.take() {
            return Some(Down::Unread(refusal));
        }
        waiting.commands.pop_front()
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }
}

impl Waiting {
    /// A document replaces those of its cluster that are not newer. Which of them holds is the agent's
    /// to judge, so a newer one that waits stays.
    fn add_document(&mut self, received: Box<Received>) {
        let new = &received.document;
        let stays = |held: &DesiredState| held.cluster != new.cluster || held.version() > new.version();
        self.documents.retain(|held| stays(&held.document));
        if self.documents.len() == DOCUMENTS_MAX {
            self.documents.pop_front();
        }
        self.documents.push_back(received);
        self.unread = None;
    }

    fn add_command(&mut self, command: Down) {
        if self.commands.len() == COMMANDS_MAX {
            tracing::warn!(bound = COMMANDS_MAX, "command dropped: too many wait");
            return;
        }
        self.commands.push_back(command);
    }
}

/// Why a payload is no message.
#[derive(Debug)]
enum Unread {
    /// How a retained message is deleted.
    Empty,
    TooLong,
    Syntax(serde_json::Error),
}

/// Reads a payload of at most `bound` bytes, and logs why it does not read.
fn read<T: DeserializeOwned>(topic: &str, payload: &[u8], bound: usize) -> Result<T, Unread> {
    if payload.is_empty() {
        return Err(Unread::Empty);
    }
    if payload.len() > bound {
        tracing::warn!(topic, bytes = payload.len(), bound, "message ignored: too long");
        return Err(Unread::TooLong);
    }
    serde_json::from_slice(payload).map_err(|error| {
        tracing::warn!(topic, %error, "message ignored: does not read");
        Unread::Syntax(error)
    })
}

/// A document and the values beside it, with which it may fill a packet. Values that do not read leave the document
/// as it is; why is not said, since the reason would quote them.
fn received(topic: &str, payload: &[u8]) -> Result<Received, Unread> {
    let document = read(topic, payload, PACKET_MAX)?;
    let confidential = serde_json::from_slice::<Enclosed>(payload).map(|enclosed| enclosed.confidential);
    let confidential = confidential.unwrap_or_else(|_| {
        tracing::warn!(topic, "the values beside the document do not read; update the agent");
        Confidential::default()
    });
    Ok(Received { document, confidential })
}

/// A document of a later schema need not read at all, but for its number.
fn unread_document(payload: &[u8], reason: serde_json::Error) -> Refusal {
    #[derive(Deserialize)]
    struct Header {
        schema: u32,
    }
    match serde_json::from_slice::<Header>(payload) {
        Ok(Header { schema }) if schema != SCHEMA => Refusal::Schema { found: schema },
        _ => Refusal::Syntax { reason: reason.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::desired::Pool;
    use std::net::Ipv4Addr;

    fn inbox() -> Inbox {
        Inbox::new("n1".parse().unwrap())
    }

    fn document(cluster: &str, generation: u64) -> DesiredState {
        let pool = Pool {
            network: Ipv4Addr::new(10, 77, 0, 0),
            prefix_len: 16,
            gateway: Ipv4Addr::new(10, 77, 0, 1),
        };
        let empty = DesiredState::empty(cluster.parse().unwrap(), "n1".parse().unwrap(), pool);
        DesiredState { generation, ..empty }
    }

    fn take_in(inbox: &Inbox, document: &DesiredState) {
        inbox.take_in("edgeloom/v1/n1/desired", &serde_json::to_vec(document).unwrap());
    }

    fn generations(inbox: &Inbox) -> Vec<u64> {
        let next = || match inbox.next() {
            Some(Down::Desired(received)) => Some(received.document.generation),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn only_the_newest_document_waits() {
        let inbox = inbox();
        (1..=100).for_each(|generation| take_in(&inbox, &document("home", generation)));
        assert_eq!(generations(&inbox), [100]);
    }

    #[test]
    fn an_older_or_foreign_document_does_not_push_out_a_newer_one() {
        let inbox = inbox();
        for (cluster, generation) in [("home", 7), ("home", 3), ("elsewhere", 9)] {
            take_in(&inbox, &document(cluster, generation));
        }
        assert_eq!(generations(&inbox), [7, 3, 9]);
    }

    #[test]
    fn what_does_not_read_is_forgotten() {
        let inbox = inbox();
        for topic in
            ["edgeloom/v1/controller/status", "edgeloom/v1/n1/cmd/logs/1", "edgeloom/v1/n1/cmd/logs/x"]
        {
            for payload in [&b""[..], b"{", b"[]", b"\xff\xff", &[b'['; 2000]] {
                inbox.take_in(topic, payload);
            }
        }
        let mut long = serde_json::to_vec(&document("home", 1)).unwrap();
        long.resize(PACKET_MAX + 1, b' ');
        inbox.take_in("edgeloom/v1/n1/desired", &long);
        take_in(&Inbox::new("n2".parse().unwrap()), &document("home", 1));
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_document_that_does_not_read_is_told_until_one_does() {
        let inbox = inbox();
        let of_later_schema = br#"{"schema":7,"everything":"else"}"#;
        for payload in [&b""[..], b"{", of_later_schema] {
            inbox.take_in("edgeloom/v1/n1/desired", payload);
        }
        let told = inbox.next();
        assert!(matches!(told, Some(Down::Unread(Refusal::Schema { found: 7 }))), "{told:?}");
        inbox.take_in("edgeloom/v1/n1/desired", br#"{"schema":1,"cluster":[]}"#);
        let told = inbox.next();
        assert!(matches!(told, Some(Down::Unread(Refusal::Syntax { .. }))), "{told:?}");
        inbox.take_in("edgeloom/v1/n1/desired", b"{");
        take_in(&inbox, &document("home", 1));
        assert_eq!(generations(&inbox), [1]);
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_measurement_may_be_longer_than_other_commands() {
        let inbox = inbox();
        let command = |bytes: usize| {
            let image = r#"{"repository":"r","digest":"d","name":"n"}"#;
            let argument = "x".repeat(bytes);
            format!(
                r#"{{"image":{image},"command":["{argument}"],"cpu":0,"memory":0,"items":1,"timeout_s":1}}"#
            )
        };
        for bytes in [1, COMMAND_MAX, measure::COMMAND_MAX] {
            inbox.take_in("edgeloom/v1/n1/cmd/measure/7", command(bytes).as_bytes());
        }
        let next = || match inbox.next() {
            Some(Down::Measure(7, command)) => Some(command.command[0].len()),
            _ => None,
        };
        assert_eq!(std::iter::from_fn(next).collect::<Vec<_>>(), [1, COMMAND_MAX]);
    }

    #[test]
    fn commands_are_bounded_and_come_after_documents() {
        let inbox = inbox();
        let command = br#"{"job":"j","task":"t","follow":false}"#;
        (0..200).for_each(|id| inbox.take_in(&format!("edgeloom/v1/n1/cmd/logs/{id}"), command));
        take_in(&inbox, &document("home", 1));
        inbox.connected();
        assert!(matches!(inbox.next(), Some(Down::Connected)));
        assert!(matches!(inbox.next(), Some(Down::Desired(_))));
        let ids: Vec<u64> = std::iter::from_fn(|| match inbox.next() {
            Some(Down::Logs(id, _)) => Some(id),
            _ => None,
        })
        .collect();
        assert_eq!(ids, (0..COMMANDS_MAX as u64).collect::<Vec<_>>());
    }
}
