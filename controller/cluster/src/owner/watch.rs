//! Nodes and links that come and go, as events.

use super::Owner;
use crate::events::Kind;
use crate::topology::DownLinks;
use edgeloom_common::ids::NodeId;
use std::collections::BTreeMap;

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Presence {
    online: BTreeMap<NodeId, bool>,
    down: DownLinks,
}

impl Owner {
    /// Tells of nodes and links that are other than told last.
    pub(super) fn note_presence(&mut self) {
        for (node, known) in &self.nodes.table {
            let told = self.presence.online.insert(node.clone(), known.online);
            let (kind, text) = match (told, known.online) {
                (None, true) => (Kind::NodeUp, format!("node {node} is online")),
                (Some(false), true) => (Kind::NodeUp, format!("node {node} is back")),
                (Some(true), false) => (Kind::NodeDown, format!("node {node} is offline")),
                _ => continue,
            };
            self.events.note(self.now_ms, None, kind, text);
        }
        let down = self.nodes.down(&self.state.model.topology);
        for (a, b) in down.difference(&self.presence.down) {
            self.events.note(self.now_ms, None, Kind::LinkDown, format!("link {a}-{b} is down"));
        }
        for (a, b) in self.presence.down.difference(&down) {
            self.events.note(self.now_ms, None, Kind::LinkUp, format!("link {a}-{b} is up"));
        }
        self.presence.down = down;
    }
}
