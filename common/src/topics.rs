//! Where each message travels: `edgeloom/v1/<node>/<kind>[/<sub>/<id>]`.
//!
//! The node stands always at the same level, so one wildcard serves the controller and one prefix
//! serves the access list: a node publishes only below its own name and reads only its own
//! `desired`, `cmd/#`, `weights` and the controller's status.

use crate::ids::NodeId;

/// The largest MQTT packet that agent, controller and broker accept, in bytes.
pub const PACKET_MAX: usize = 1024 * 1024;

/// The largest desired-state document that a commit accepts, in bytes.
pub const DOCUMENT_MAX: usize = 512 * 1024;

const ROOT: &str = "edgeloom/v1";

/// Retained: the controller's presence.
#[must_use]
pub fn controller_status() -> String {
    format!("{ROOT}/controller/status")
}

/// What a node says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uplink {
    /// Presence; retained, also the Last Will.
    Status,
    /// CPU, memory, disk, flow rates; QoS 0.
    Report,
    /// Hardware, capabilities, addresses, layers; QoS 1, retained.
    Inventory,
    /// Latency and capacity to each neighbour; QoS 0.
    Links,
    /// What was applied and what runs; QoS 1.
    Observed,
    /// Chunks of an answer to a command; QoS 1.
    Reply,
    /// The document that the node holds, when it was asked for it; QoS 1.
    Held,
}

impl Uplink {
    /// Every kind, for subscriptions and access lists.
    pub const ALL: [Self; 7] =
        [Self::Status, Self::Report, Self::Inventory, Self::Links, Self::Observed, Self::Reply, Self::Held];

    /// The topic level of this kind.
    #[must_use]
    pub fn level(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Report => "report",
            Self::Inventory => "inventory",
            Self::Links => "links",
            Self::Observed => "observed",
            Self::Reply => "reply",
            Self::Held => "held",
        }
    }

    /// The topic of `node` for this kind.
    #[must_use]
    pub fn topic(self, node: &NodeId) -> String {
        format!("{ROOT}/{node}/{}", self.level())
    }

    /// The controller's subscription for this kind, all nodes.
    #[must_use]
    pub fn filter(self) -> String {
        format!("{ROOT}/+/{}", self.level())
    }

    /// Which node and kind a topic is, if it is one of ours.
    #[must_use]
    pub fn parse(topic: &str) -> Option<(NodeId, Self)> {
        let rest = topic.strip_prefix(ROOT)?.strip_prefix('/')?;
        let (node, level) = rest.split_once('/')?;
        let kind = Self::ALL.into_iter().find(|kind| kind.level() == level)?;
        Some((node.parse().ok()?, kind))
    }
}

/// The node's desired-state document; QoS 1, retained.
#[must_use]
pub fn desired(node: &NodeId) -> String {
    format!("{ROOT}/{node}/desired")
}

/// A one-shot command for a node, for instance `cmd/logs/17`.
#[must_use]
pub fn command(node: &NodeId, kind: &str, id: u64) -> String {
    format!("{ROOT}/{node}/cmd/{kind}/{id}")
}

/// What a node subscribes to.
#[must_use]
pub fn node_filters(node: &NodeId) -> Vec<String> {
    vec![desired(node), format!("{ROOT}/{node}/cmd/#"), format!("{ROOT}/{node}/weights"), controller_status()]
}

/// Whether `node` may subscribe to `filter`: exactly its own list, since a broader filter would match more.
#[must_use]
pub fn may_subscribe(node: &NodeId, filter: &str) -> bool {
    node_filters(node).iter().any(|allowed| allowed == filter)
}

/// Whether `node` may publish to `topic`.
#[must_use]
pub fn may_publish(node: &NodeId, topic: &str) -> bool {
    Uplink::parse(topic).is_some_and(|(owner, _)| owner == *node)
}

/// The kind and id of a command topic of `node`.
#[must_use]
pub fn parse_command<'a>(node: &NodeId, topic: &'a str) -> Option<(&'a str, u64)> {
    let rest =
        topic.strip_prefix(ROOT)?.strip_prefix('/')?.strip_prefix(node.as_str())?.strip_prefix("/cmd/")?;
    let (kind, id) = rest.split_once('/')?;
    Some((kind, id.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        name.parse().unwrap()
    }

    #[test]
    fn a_node_stays_below_its_own_name() {
        let n1 = node("n1");
        assert!(may_publish(&n1, "edgeloom/v1/n1/report"));
        for topic in ["edgeloom/v1/n2/report", "edgeloom/v1/n1/desired", "edgeloom/v1/controller/status", "x"]
        {
            assert!(!may_publish(&n1, topic), "{topic}");
        }
        assert!(may_subscribe(&n1, "edgeloom/v1/n1/desired"));
        for filter in ["#", "edgeloom/v1/+/desired", "edgeloom/v1/n2/desired", "edgeloom/v1/n1/#"] {
            assert!(!may_subscribe(&n1, filter), "{filter}");
        }
    }

    #[test]
    fn topics_read_back() {
        let n1 = node("n1");
        for kind in Uplink::ALL {
            assert_eq!(Uplink::parse(&kind.topic(&n1)), Some((n1.clone(), kind)));
        }
        assert_eq!(parse_command(&n1, &command(&n1, "logs", 17)), Some(("logs", 17)));
        assert_eq!(parse_command(&node("n2"), &command(&n1, "logs", 17)), None);
    }
}
