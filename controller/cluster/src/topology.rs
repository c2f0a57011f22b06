//! Main routes: the shortest way by hops over links that are up, ties to the lowest name.

use crate::model::Topology;
use edgeloom_common::ids::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Pairs, lower name first, whose link is down.
pub(crate) type DownLinks = BTreeSet<(NodeId, NodeId)>;

/// A pair in the order [`DownLinks`] keeps.
pub(crate) fn pair(a: &NodeId, b: &NodeId) -> (NodeId, NodeId) {
    if a < b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) }
}

/// Each node's next hop towards `destination`. Walking the hops comes one nearer each time, so these routes
/// never loop.
pub(crate) fn next_hops(
    topology: &Topology,
    down: &DownLinks,
    destination: &NodeId,
) -> BTreeMap<NodeId, NodeId> {
    let distance = distances(topology, down, destination);
    let nearer = |node: &NodeId, far: usize| {
        topology[node]
            .keys()
            .find(|peer| {
                joined(topology, down, (node, peer))
                    && distance.get(*peer).is_some_and(|near| near + 1 == far)
            })
            .cloned()
    };
    distance
        .iter()
        .filter(|(_, far)| **far > 0)
        .filter_map(|(node, far)| Some((node.clone(), nearer(node, *far)?)))
        .collect()
}

/// Another neighbour of each node towards `destination`, should its next hop die: one that is no farther than
/// the node itself, so its own way never comes back here (RFC 5286, inequality 1, all links counting one).
pub(crate) fn alternates(
    topology: &Topology,
    down: &DownLinks,
    destination: &NodeId,
) -> BTreeMap<NodeId, NodeId> {
    let distance = distances(topology, down, destination);
    let hops = next_hops(topology, down, destination);
    let other = |node: &NodeId, hop: &NodeId| {
        let peers = topology[node].keys().filter(|peer| *peer != hop && joined(topology, down, (node, peer)));
        let near = peers.filter_map(|peer| Some((distance.get(peer)?, peer)));
        near.min().filter(|(far, _)| *far <= &distance[node]).map(|(_, peer)| peer.clone())
    };
    hops.iter().filter_map(|(node, hop)| Some((node.clone(), other(node, hop)?))).collect()
}

/// Both know each other and neither says that the link is down.
fn joined(topology: &Topology, down: &DownLinks, (a, b): (&NodeId, &NodeId)) -> bool {
    let knows = |x: &NodeId, y: &NodeId| topology.get(x).is_some_and(|peers| peers.contains_key(y));
    knows(a, b) && knows(b, a) && !down.contains(&pair(a, b))
}

/// Hops from each node that reaches `destination`.
fn distances(topology: &Topology, down: &DownLinks, destination: &NodeId) -> BTreeMap<NodeId, usize> {
    let mut distance = BTreeMap::from([(destination.clone(), 0usize)]);
    let mut queue = VecDeque::from([destination.clone()]);
    while let Some(node) = queue.pop_front() {
        let next = distance[&node] + 1;
        for peer in topology.get(&node).into_iter().flat_map(BTreeMap::keys) {
            if joined(topology, down, (&node, peer)) && !distance.contains_key(peer) {
                distance.insert(peer.clone(), next);
                queue.push_back(peer.clone());
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn topology(links: &[(&str, &str)]) -> Topology {
        let mut topology = Topology::new();
        for (a, b) in links.iter().flat_map(|(a, b)| [(a, b), (b, a)]) {
            let peers = topology.entry(a.parse().unwrap()).or_default();
            peers.insert(b.parse().unwrap(), Ipv4Addr::LOCALHOST);
        }
        topology
    }

    /// Walks from the alternate by the next hops of all others.
    fn reaches(topology: &Topology, destination: &NodeId, (from, alternate): (&NodeId, &NodeId)) -> bool {
        let hops = next_hops(topology, &DownLinks::new(), destination);
        let mut at = alternate;
        while at != destination {
            if at == from {
                return false;
            }
            at = &hops[at];
        }
        true
    }

    #[test]
    fn an_alternate_never_leads_back() {
        let square = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")];
        let links = [square.as_slice(), &[("b", "d"), ("d", "e"), ("e", "f"), ("f", "c")]].concat();
        for count in 3..=links.len() {
            let topology = topology(&links[..count]);
            for destination in topology.keys() {
                let hops = next_hops(&topology, &DownLinks::new(), destination);
                for (node, alternate) in alternates(&topology, &DownLinks::new(), destination) {
                    assert_ne!(hops[&node], alternate);
                    assert!(reaches(&topology, destination, (&node, &alternate)), "{node} over {alternate}");
                }
            }
        }
    }

    #[test]
    fn in_a_triangle_each_has_one_and_in_a_row_nobody_has() {
        let to = |topology: &Topology| alternates(topology, &DownLinks::new(), &"c".parse().unwrap()).len();
        assert_eq!(to(&topology(&[("a", "b"), ("b", "c"), ("a", "c")])), 2);
        assert_eq!(to(&topology(&[("a", "b"), ("b", "c")])), 0);
    }
}
