//! The snapshot as dense numbers: nodes by index in name order, links as arcs and pools.
//!
//! An arc exists only where a flow may use it: both ends ready, and the end that sends able to shape and
//! route flows. Every node of a path but the last sends, so this is the whole rule for paths.

use edgeloom_common::ids::NodeId;
use std::collections::{BTreeMap, BTreeSet};

use crate::route::{Arc, Graph};
use crate::scoring::Scoring;
use crate::snapshot::{Duplex, Link, Node, Policy, Processors, Snapshot};

/// What stays the same while jobs come and go.
#[derive(Debug)]
pub(crate) struct World<'a> {
    /// In name order; the first of each name counts.
    pub(crate) nodes: Vec<&'a Node>,
    index: BTreeMap<&'a NodeId, usize>,
    pub(crate) graph: Graph,
    /// Wire bits a second that flows may reserve of each pool.
    pub(crate) capacity: Vec<f64>,
    /// Part of each pool's link that this is.
    link_share: f64,
    /// Pairs that a link joins, usable or not.
    links: BTreeSet<(usize, usize)>,
    /// The usable arc from one node to another.
    arcs: BTreeMap<(usize, usize), usize>,
    pub(crate) goodput: f64,
    pub(crate) processors: Processors,
    pub(crate) policy: Policy,
    pub(crate) scoring: &'a Scoring,
    pub(crate) seed: u64,
    /// Some node takes only so many containers.
    pub(crate) limits_containers: bool,
    /// Some node has taints.
    pub(crate) tainted: bool,
}

impl<'a> World<'a> {
    /// Sorts and indexes the snapshot.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let by_name: BTreeMap<&NodeId, &Node> =
            snapshot.nodes.iter().rev().map(|node| (&node.id, node)).collect();
        let nodes: Vec<&Node> = by_name.into_values().collect();
        let index = nodes.iter().enumerate().map(|(i, node)| (&node.id, i)).collect();
        let limits_containers = nodes.iter().any(|node| node.hosting.containers_max < u32::MAX);
        let tainted = nodes.iter().any(|node| !node.hosting.taints.is_empty());
        let mut world = Self {
            limits_containers,
            tainted,
            graph: Graph::new(nodes.len()),
            nodes,
            index,
            capacity: Vec::new(),
            link_share: snapshot.link_share,
            links: BTreeSet::new(),
            arcs: BTreeMap::new(),
            goodput: snapshot.goodput,
            processors: snapshot.processors,
            policy: snapshot.policy,
            scoring: &snapshot.scoring,
            seed: snapshot.seed,
        };
        let mut links: Vec<&Link> = snapshot.links.iter().collect();
        links.sort_by(|x, y| (&x.a, &x.b).cmp(&(&y.a, &y.b)));
        for link in links {
            world.add_link(link, snapshot.link_share);
        }
        world
    }

    fn add_link(&mut self, link: &Link, share: f64) {
        let (Some(a), Some(b)) = (self.index(&link.a), self.index(&link.b)) else {
            return;
        };
        let there = self.capacity.len();
        self.capacity.push(link.a_to_b.as_f64() * share);
        let back = match link.duplex {
            Duplex::Half => there,
            Duplex::Full => {
                self.capacity.push(link.b_to_a.as_f64() * share);
                there + 1
            }
        };
        for (from, to, pool) in [(a, b, there), (b, a, back)] {
            self.links.insert((from, to));
            let sender = self.nodes[from];
            let usable = sender.ready && sender.shapes_flows && self.nodes[to].ready && from != to;
            if usable && !self.arcs.contains_key(&(from, to)) {
                self.arcs.insert((from, to), self.graph.arcs.len());
                self.graph.add(Arc { from, to, pool });
            }
        }
    }

    /// The index of a node.
    pub(crate) fn index(&self, node: &NodeId) -> Option<usize> {
        self.index.get(node).copied()
    }

    /// The usable arc from one node to another.
    pub(crate) fn arc(&self, from: usize, to: usize) -> Option<usize> {
        self.arcs.get(&(from, to)).copied()
    }

    /// Whether a link joins two nodes, usable or not.
    pub(crate) fn joined(&self, a: &NodeId, b: &NodeId) -> bool {
        self.index(a).zip(self.index(b)).is_some_and(|pair| self.links.contains(&pair))
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: usize) -> &'a NodeId {
        &self.nodes[node].id
    }

    /// Pools of links that bring a node's pulls too, and the wire rate of the widest of these links: they share an
    /// interface.
    pub(crate) fn pull_line(&self, node: usize) -> (BTreeSet<usize>, f64) {
        let neighbours = self.nodes[node].hosting.pulls_over.iter();
        let arcs = neighbours.filter_map(|neighbour| self.arc(self.index(neighbour)?, node));
        let pools: BTreeSet<usize> = arcs.map(|arc| self.graph.arcs[arc].pool).collect();
        let widest = pools.iter().map(|pool| self.capacity[*pool]).fold(0.0, f64::max);
        (pools, widest / self.link_share)
    }

    /// The pools that a path of names draws on, as far as its links exist.
    pub(crate) fn pools_of(&self, path: &[NodeId]) -> Vec<usize> {
        let hops = path.windows(2).filter_map(|hop| {
            let arc = self.arc(self.index(&hop[0])?, self.index(&hop[1])?)?;
            Some(self.graph.arcs[arc].pool)
        });
        hops.collect()
    }

    /// A path of arcs as names, first node to last.
    pub(crate) fn names_of(&self, path: &[usize]) -> Vec<NodeId> {
        let first = path.first().map(|arc| self.graph.arcs[*arc].from);
        let rest = path.iter().map(|arc| self.graph.arcs[*arc].to);
        first.into_iter().chain(rest).map(|node| self.name(node).clone()).collect()
    }
}
