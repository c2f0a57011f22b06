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
    let joined = |a: &NodeId, b: &NodeId| {
        let knows = |x: &NodeId, y: &NodeId| topology.get(x).is_some_and(|peers| peers.contains_key(y));
        knows(a, b) && knows(b, a) && !down.contains(&pair(a, b))
    };
    let mut distance = BTreeMap::from([(destination.clone(), 0usize)]);
    let mut queue = VecDeque::from([destination.clone()]);
    while let Some(node) = queue.pop_front() {
        let next = distance[&node] + 1;
        for peer in topology.get(&node).into_iter().flat_map(BTreeMap::keys) {
            if joined(&node, peer) && !distance.contains_key(peer) {
                distance.insert(peer.clone(), next);
                queue.push_back(peer.clone());
            }
        }
    }
    let nearer = |node: &NodeId, far: usize| {
        topology[node]
            .keys()
            .find(|peer| joined(node, peer) && distance.get(*peer).is_some_and(|near| near + 1 == far))
            .cloned()
    };
    distance
        .iter()
        .filter(|(_, far)| **far > 0)
        .filter_map(|(node, far)| Some((node.clone(), nearer(node, *far)?)))
        .collect()
}
