//! Documents on their way to the nodes: sent when published, again on every connect and whenever a node
//! shows an older version. The values of secrets and logins that a document names go with it; here they are
//! opened, and nowhere before.
//!
//! The way out is a bounded queue; what does not fit stays marked and is tried again at the next turn.

use crate::model::Model;
use edgeloom_common::confidential::Delivery;
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::DocumentCommand;
use edgeloom_common::topics;
use edgeloom_sealing::Key;
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// A message for the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub topic: String,
    pub payload: Vec<u8>,
    pub retain: bool,
}

/// What is still to be sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    outgoing: mpsc::Sender<Publish>,
    unsent: BTreeSet<NodeId>,
}

impl Outbox {
    pub(crate) fn new(outgoing: mpsc::Sender<Publish>) -> Self {
        Self { outgoing, unsent: BTreeSet::new() }
    }

    /// The node's document goes out at the next [`flush`](Self::flush).
    pub(crate) fn mark(&mut self, node: NodeId) {
        self.unsent.insert(node);
    }

    /// Asks a node for the document that it holds; false: not now.
    pub(crate) fn ask_for_document(&self, node: &NodeId, id: u64) -> bool {
        let payload = serde_json::to_vec(&DocumentCommand {}).expect("nothing in it fails");
        let topic = topics::command(node, "document", id);
        self.outgoing.try_send(Publish { topic, payload, retain: false }).is_ok()
    }

    /// Sends as much as the queue takes, but for nodes whose document is held back.
    pub(crate) fn flush(&mut self, model: &Model, key: &Key, held_back: &BTreeSet<NodeId>) {
        let outgoing = &self.outgoing;
        self.unsent.retain(|node| {
            if held_back.contains(node) {
                return true;
            }
            let Some(document) = model.published.get(node) else { return false };
            let Ok(permit) = outgoing.try_reserve() else { return true };
            let confidential = model.vault.confidential(key, document);
            let delivery = Delivery { document, confidential: &confidential };
            let payload = serde_json::to_vec(&delivery).expect("a document is plain data with text keys");
            permit.send(Publish { topic: topics::desired(node), payload, retain: true });
            false
        });
    }
}
