//! What nodes say about themselves, as last heard. Nothing here outlives the controller.
//!
//! A node is ready once it is online and has told inventory and links. It is offline after its Last Will,
//! after 15 s of silence, or after 5 s if none of its neighbours reaches it any more; a Will of an older
//! session than the one known changes nothing.

mod presence;

use crate::capacity::Capacities;
use crate::documents::Documents;
use crate::line::Line;
use crate::model::{Topology, platform};
use crate::topology::{DownLinks, pair};
use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::report::{Inventory, LinkReport, Links, Observed, Report, Status};
use edgeloom_common::units::BitRate;
use edgeloom_common::volume::HeldVolume;
use edgeloom_sched::snapshot::{Duplex, Hosting, Link, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Without a word for this long a node counts as offline; reports come at least every 10 s.
pub(crate) const SILENCE_MS: u64 = 15_000;
/// The same where all of its neighbours say that their links to it are down and it does not say so itself.
pub(crate) const DOUBT_MS: u64 = 5_000;
/// Nodes that lost the controller try again at least this often; until then those that are not back yet, when
/// it starts or was cut off itself, may be as well as any.
pub(crate) const GATHER_MS: u64 = 40_000;

/// Links of a node that has only come online are not taken for dead: probes need their time.
const SETTLED_IN_MS: u64 = 5_000;

/// A median round trip longer than the least by this, and twice as long, tells of a queue that stands.
const QUEUED_US: u32 = 10_000;

/// A message of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeMessage {
    Status(Status),
    Report(Report),
    Inventory(Box<Inventory>),
    Links(Links),
    Observed(Observed),
    /// The document that it holds, which it was asked for.
    Held(Box<DesiredState>),
}

/// One node, as last heard.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeRecord {
    pub(crate) online: bool,
    /// Its Last Will was spoken, or it said goodbye: only a new birth brings it back.
    gone: bool,
    pub(crate) session: u64,
    pub(crate) heard_ms: u64,
    /// Since when it is as `online` says: offline since its last word or its Will.
    pub(crate) since_ms: u64,
    /// Since when no neighbour reaches it.
    doubted_ms: Option<u64>,
    /// How far its clock was ahead of ours when it last connected.
    pub(crate) clock_ahead_ms: Option<i64>,
    pub(crate) inventory: Option<Inventory>,
    pub(crate) links: Option<Links>,
    pub(crate) report: Option<Report>,
    pub(crate) observed: Option<Observed>,
    /// Holds this document, newer than any that was ever sent: our state was lost or is an old copy, and
    /// what the node runs must not be taken for left over.
    pub(crate) ahead: Option<Version>,
    /// That document, once it was asked for and has come.
    pub(crate) held: Option<DesiredState>,
    /// When it was asked for.
    pub(crate) asked_ms: Option<u64>,
    /// When it was told.
    pub(crate) observed_ms: u64,
    /// What its pulls teach.
    pub(crate) line: Line,
    /// Did not confirm a document in time; nothing new goes there until it does.
    pub(crate) silent: bool,
}

impl NodeRecord {
    pub(crate) fn ready(&self) -> bool {
        self.online
            && !self.silent
            && self.ahead.is_none()
            && self.inventory.is_some()
            && self.links.is_some()
    }
}

/// All nodes heard of.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) table: BTreeMap<NodeId, NodeRecord>,
    /// Since when there was always somebody online.
    attended_ms: Option<u64>,
    /// What plans may lean on.
    pub(crate) capacities: Capacities,
}

impl Nodes {
    /// Takes a message in. An inventory of another cluster is refused.
    pub(crate) fn observe(&mut self, node: &NodeId, message: NodeMessage, now_ms: u64, cluster: &ClusterId) {
        if let NodeMessage::Inventory(inventory) = &message
            && inventory.cluster != *cluster
        {
            tracing::warn!(%node, theirs = %inventory.cluster, "node belongs to another cluster; correct `cluster` in its configuration");
            return;
        }
        let settles = matches!(message, NodeMessage::Inventory(_) | NodeMessage::Links(_));
        let was = self.online(node);
        self.hear(node, message, now_ms, cluster);
        let record = self.table.entry(node.clone()).or_default();
        if record.online != was {
            record.since_ms = now_ms;
        }
        self.attend(now_ms);
        if settles {
            self.settle(now_ms);
        }
    }

    fn hear(&mut self, node: &NodeId, message: NodeMessage, now_ms: u64, cluster: &ClusterId) {
        let record = self.table.entry(node.clone()).or_default();
        match message {
            NodeMessage::Status(status) => {
                // A birth counts always: after a power cut a node without a clock of its own begins lower.
                if !status.online && status.session < record.session {
                    return;
                }
                if status.online {
                    // Times of wall clocks, far below 2^63.
                    record.clock_ahead_ms =
                        Some(status.session.cast_signed().wrapping_sub(now_ms.cast_signed()));
                }
                record.session = status.session;
                record.online = status.online;
                record.gone = !status.online;
                record.heard_ms = now_ms;
                return;
            }
            NodeMessage::Report(report) => record.report = Some(report),
            NodeMessage::Inventory(inventory) => record.inventory = Some(*inventory),
            NodeMessage::Links(links) => record.links = Some(links),
            NodeMessage::Observed(observed) => {
                (record.observed, record.observed_ms) = (Some(observed), now_ms);
            }
            NodeMessage::Held(document) => {
                // Only what was asked for, and what is its own.
                if record.asked_ms.is_some() && document.node == *node && document.cluster == *cluster {
                    record.held = Some(*document);
                }
            }
        }
        record.heard_ms = now_ms;
        // After mere silence the session lives on and brings no new birth. What arrives after a Will is late.
        record.online |= record.session > 0 && !record.gone;
    }

    /// Looks at capacities and speeds as last told; values that last become those that plans lean on.
    pub(crate) fn settle(&mut self, now_ms: u64) {
        let mut capacities = std::mem::take(&mut self.capacities);
        for (node, record) in &self.table {
            if let Some(inventory) = &record.inventory {
                capacities.look_at_speed(node, inventory.core_speed, now_ms);
            }
            for there in record.links.iter().flat_map(|links| &links.links) {
                let Some(back) = self.reported(&there.neighbour, node) else { continue };
                let Some(known) = capacity(there) else { continue };
                let direction = (node.clone(), there.neighbour.clone());
                if there.up && back.up {
                    capacities.look_at_link(direction, known, now_ms);
                } else if self.settled_in(node, now_ms) && self.settled_in(&direction.1, now_ms) {
                    capacities.look_at_link(direction, BitRate(0), now_ms);
                } else {
                    capacities.excuse_link(&direction);
                }
            }
        }
        self.capacities = capacities;
    }

    /// Whether a document may go there: a node that was never sent one has to say first what it holds.
    pub(crate) fn may_follow(&self, node: &NodeId, published: &Documents) -> bool {
        match self.table.get(node) {
            Some(known) if known.ahead.is_some() => false,
            Some(known) if known.observed.is_some() => true,
            _ => published.contains_key(node),
        }
    }

    /// The document version of `published` that this node has in its kernel.
    pub(crate) fn confirmed(&self, node: &NodeId, published: &Documents) -> bool {
        let observed = self.table.get(node).and_then(|record| record.observed.as_ref());
        match (observed, published.get(node)) {
            (Some(observed), Some(document)) => {
                observed.network_applied && observed.version == document.version()
            }
            _ => false,
        }
    }

    /// A node's neighbours as it reports them, for the model's topology.
    pub(crate) fn neighbours(&self, node: &NodeId) -> Option<BTreeMap<NodeId, Ipv4Addr>> {
        let links = self.table.get(node)?.links.as_ref()?;
        let others = links.links.iter().filter(|link| link.neighbour != *node);
        Some(others.map(|link| (link.neighbour.clone(), link.address)).collect())
    }

    fn reported(&self, from: &NodeId, to: &NodeId) -> Option<&LinkReport> {
        let links = &self.table.get(from)?.links.as_ref()?.links;
        links.iter().find(|link| link.neighbour == *to)
    }

    /// Round trips over a link are long for it: packets wait on it, in one direction or the other.
    pub(crate) fn queued(&self, from: &NodeId, to: &NodeId) -> bool {
        let link = self.reported(from, to);
        let times = link.and_then(|link| Some((link.rtt_min_us?, link.rtt_median_us?)));
        times.is_some_and(|(least, median)| {
            median > least.saturating_mul(2).max(least.saturating_add(QUEUED_US))
        })
    }

    /// Links of the topology that one end reports as down. An end not heard of keeps what was.
    pub(crate) fn down(&self, topology: &Topology) -> DownLinks {
        let mut down = BTreeSet::new();
        for (node, peers) in topology {
            let links = self.table.get(node).and_then(|record| record.links.as_ref());
            let told = links.iter().flat_map(|links| &links.links).filter(|link| !link.up);
            let known = told.filter(|link| peers.contains_key(&link.neighbour));
            down.extend(known.map(|link| pair(node, &link.neighbour)));
        }
        down
    }

    /// Neighbours over whose links images come to a node from registries, as far as it told.
    pub(crate) fn pulls_over(&self, node: &NodeId) -> BTreeSet<NodeId> {
        let links = self.table.get(node).and_then(|record| record.links.as_ref());
        let told = links.iter().flat_map(|links| &links.links).filter(|link| link.pulls);
        told.map(|link| link.neighbour.clone()).collect()
    }

    /// What nodes keep for tasks.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = (&NodeId, &HeldVolume)> {
        let known = self.table.iter().filter_map(|(id, record)| Some((id, record.inventory.as_ref()?)));
        known.flat_map(|(id, inventory)| inventory.volumes.iter().map(move |volume| (id, volume)))
    }

    /// The nodes as the scheduler sees them.
    pub(crate) fn schedulable(&self) -> Vec<Node> {
        let known =
            self.table.iter().filter_map(|(id, record)| Some((id, record, record.inventory.as_ref()?)));
        known
            .map(|(id, record, inventory)| Node {
                id: id.clone(),
                ready: record.ready(),
                class: inventory.class.clone(),
                labels: inventory.labels.clone(),
                cpu: inventory.cpu,
                core_speed: self.capacities.speed(id).unwrap_or(inventory.core_speed),
                memory: inventory.memory,
                disk: inventory.disk,
                shapes_flows: inventory.capabilities.htb
                    && inventory.capabilities.nft_maps
                    && inventory.capabilities.ip_forward,
                hosting: Hosting {
                    platform: platform(&inventory.architecture).to_owned(),
                    taints: inventory.taints.clone(),
                    goodput: record.line.goodput(),
                    pulls_over: self.pulls_over(id),
                    folders: inventory.capabilities.host_folders.clone(),
                    ..Hosting::default()
                },
            })
            .collect()
    }

    /// Links that both ends report as up, with both directions' steady capacity.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (a, record) in &self.table {
            for there in record.links.iter().flat_map(|links| &links.links).filter(|link| *a < link.neighbour)
            {
                let b = &there.neighbour;
                let Some(back) = self.reported(b, a) else { continue };
                let (there_bps, back_bps) = (self.capacities.link(a, b), self.capacities.link(b, a));
                if let (true, true, Some(a_to_b), Some(b_to_a)) = (there.up, back.up, there_bps, back_bps) {
                    links.push(Link { a: a.clone(), b: b.clone(), a_to_b, b_to_a, duplex: Duplex::Full });
                }
            }
        }
        links.sort_by(|x, y| (&x.a, &x.b).cmp(&(&y.a, &y.b)));
        links.dedup_by(|x, y| (&x.a, &x.b) == (&y.a, &y.b));
        links
    }
}

/// What may be planned with: the smaller of declared and measured, whichever there is.
fn capacity(link: &LinkReport) -> Option<BitRate> {
    let known = [link.capacity_declared, link.capacity_measured];
    known.into_iter().flatten().filter(|rate| rate.0 > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_will_does_not_overrule_a_newer_birth() {
        let (mut nodes, n1, cluster) = (Nodes::default(), "n1".parse().unwrap(), "home".parse().unwrap());
        nodes.observe(&n1, NodeMessage::Status(Status::new(true, 20)), 0, &cluster);
        nodes.observe(&n1, NodeMessage::Status(Status::new(false, 10)), 1, &cluster);
        assert!(nodes.online(&n1));
        nodes.observe(&n1, NodeMessage::Status(Status::new(false, 20)), 2, &cluster);
        assert!(!nodes.online(&n1));
    }

    #[test]
    fn silence_takes_a_node_offline_and_its_next_word_brings_it_back() {
        let (mut nodes, n1, cluster) = (Nodes::default(), "n1".parse().unwrap(), "home".parse().unwrap());
        nodes.observe(&n1, NodeMessage::Status(Status::new(true, 20)), 1_000, &cluster);
        assert!(!nodes.expire(1_000 + SILENCE_MS));
        assert!(nodes.expire(1_001 + SILENCE_MS));
        assert!(!nodes.online(&n1));
        nodes.observe(&n1, links(), 2_000 + SILENCE_MS, &cluster);
        assert!(nodes.online(&n1));
    }

    #[test]
    fn what_arrives_after_a_will_is_late() {
        let (mut nodes, n1, cluster) = (Nodes::default(), "n1".parse().unwrap(), "home".parse().unwrap());
        nodes.observe(&n1, NodeMessage::Status(Status::new(true, 20)), 0, &cluster);
        nodes.observe(&n1, NodeMessage::Status(Status::new(false, 20)), 1, &cluster);
        nodes.observe(&n1, links(), 2, &cluster);
        assert!(!nodes.online(&n1));
        nodes.observe(&n1, NodeMessage::Status(Status::new(true, 21)), 3, &cluster);
        assert!(nodes.online(&n1));
    }

    fn links() -> NodeMessage {
        NodeMessage::Links(Links { schema: 1, links: Vec::new() })
    }
}
