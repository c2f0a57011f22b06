//! Who is there and who is away, and for how long, as far as that can be judged from here.
//!
//! In: when each node was heard, its Will, and what its neighbours say of their links to it. Out: presence,
//! and the time that a node has been away, which starts anew where the controller may have been away itself.

use super::{DOUBT_MS, GATHER_MS, NodeRecord, Nodes, SETTLED_IN_MS, SILENCE_MS};
use edgeloom_common::ids::NodeId;
use std::collections::BTreeSet;

impl Nodes {
    /// Marks nodes that have not spoken for too long; true if any changed.
    pub(crate) fn expire(&mut self, now_ms: u64) -> bool {
        let mut changed = false;
        let unreached: BTreeSet<NodeId> =
            self.table.keys().filter(|node| self.unreached(node)).cloned().collect();
        for (node, record) in &mut self.table {
            let doubted_ms = unreached.contains(node).then(|| record.doubted_ms.unwrap_or(now_ms));
            record.doubted_ms = doubted_ms;
            let silent = |since_ms: u64, max_ms: u64| now_ms.saturating_sub(since_ms) > max_ms;
            let doubted = doubted_ms.is_some_and(|ms| silent(ms.max(record.heard_ms), DOUBT_MS));
            if record.online && (doubted || silent(record.heard_ms, SILENCE_MS)) {
                (record.online, record.since_ms) = (false, record.heard_ms);
                changed = true;
            }
        }
        self.attend(now_ms);
        changed
    }

    /// Every neighbour that is there says that its link to the node is down, and the node has not told the
    /// same: one that is only alone notices as soon as they do.
    fn unreached(&self, node: &NodeId) -> bool {
        let others = self.table.iter().filter(|(other, record)| record.online && *other != node);
        let towards = |(other, record): (&NodeId, &NodeRecord)| {
            let mut links = record.links.iter().flat_map(|links| &links.links);
            let there = links.find(|link| link.neighbour == *node)?;
            let back = self.reported(node, other)?;
            Some((there.up, back.up))
        };
        let links: Vec<(bool, bool)> = others.filter_map(towards).collect();
        !links.is_empty() && links.iter().all(|(there, _)| !there) && links.iter().any(|(_, back)| *back)
    }

    pub(super) fn attend(&mut self, now_ms: u64) {
        let anybody = self.table.values().any(|record| record.online);
        self.attended_ms = anybody.then(|| self.attended_ms.unwrap_or(now_ms));
    }

    /// For how long a node has been away, as far as that can be judged; none while it is there. Where nobody
    /// was online it may be the controller that was away, so that counts for nothing.
    pub(crate) fn away_ms(&self, node: &NodeId, now_ms: u64) -> Option<u64> {
        let since_ms = match self.table.get(node) {
            Some(record) if record.online => return None,
            Some(record) => record.since_ms,
            None => 0,
        };
        let Some(attended_ms) = self.attended_ms else { return Some(0) };
        let since_ms = if since_ms >= attended_ms { since_ms } else { attended_ms + GATHER_MS };
        Some(now_ms.saturating_sub(since_ms))
    }

    /// For how long somebody has been there.
    pub(crate) fn attended_for_ms(&self, now_ms: u64) -> Option<u64> {
        self.attended_ms.map(|since_ms| now_ms.saturating_sub(since_ms))
    }

    pub(crate) fn online(&self, node: &NodeId) -> bool {
        self.table.get(node).is_some_and(|record| record.online)
    }

    /// Why nothing is known of what the node does now; none if it speaks and confirms.
    pub(crate) fn absence(&self, node: &NodeId) -> Option<&'static str> {
        match self.table.get(node) {
            Some(known) if known.online && known.silent => Some("does not confirm its desired state"),
            Some(known) if known.online => None,
            Some(known) if known.heard_ms > 0 => Some("is offline"),
            _ => Some("has not been heard of since the controller started"),
        }
    }

    /// The node has been there for long enough to know its links, and its neighbours to know of it.
    pub(super) fn settled_in(&self, node: &NodeId, now_ms: u64) -> bool {
        let known = self.table.get(node).filter(|record| record.online);
        known.is_some_and(|record| now_ms.saturating_sub(record.since_ms) >= SETTLED_IN_MS)
    }
}
