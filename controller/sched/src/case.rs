//! One job before the world as others leave it, and what a placement of it is.

use crate::filter::{Fit, Rules, refusal};
use crate::job_graph::{Edge, JobGraph};
use crate::ledger::Ledger;
use crate::route::hop_tree;
use crate::world::World;

/// One job before the world as others leave it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) graph: &'a JobGraph<'a>,
    pub(crate) ledger: &'a Ledger,
}

/// A task that found no node: per node, why not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stuck {
    pub(crate) vertex: usize,
    pub(crate) refusals: Vec<String>,
}

/// A node for each vertex, and how it was come by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub(crate) nodes: Vec<usize>,
    pub(crate) reasons: Vec<String>,
}

/// Bits on the wire an item; a flow without bytes counts as one byte, so that it gets a rate.
pub(crate) fn wire_bits(world: &World<'_>, edge: &Edge) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes an item stay far below 2^52")]
    let bytes = edge.volume.0.max(1) as f64;
    bytes * 8.0 / world.goodput
}

impl Case<'_> {
    /// Bits on the wire an item; a flow without bytes counts as one byte, so that it gets a rate.
    pub(crate) fn wire_bits(&self, edge: &Edge) -> f64 {
        wire_bits(self.world, edge)
    }

    /// Edges whose ends are on different nodes.
    pub(crate) fn flows(&self, nodes: &[usize]) -> Vec<Edge> {
        let apart = |edge: &&Edge| nodes[edge.from] != nodes[edge.to];
        self.graph.edges.iter().filter(apart).copied().collect()
    }

    /// Why each node is refused for a vertex; none where it is not. The ledger holds what was placed before.
    pub(crate) fn refusals(&self, vertex: usize, ledger: &Ledger, fit: Fit) -> Vec<Option<String>> {
        let rules = Rules::of(self.world, self.graph, ledger, vertex);
        let mut refusals = self.refusals_apart(vertex, ledger, fit);
        for (node, refusal) in refusals.iter_mut().enumerate().filter(|(_, refusal)| refusal.is_none()) {
            *refusal = rules.refusal(self.world.nodes[node], &ledger.residents[node]);
        }
        refusals
    }

    /// As `refusals`, but for rules that look at other tasks.
    pub(crate) fn refusals_apart(&self, vertex: usize, ledger: &Ledger, fit: Fit) -> Vec<Option<String>> {
        let wanted = &self.graph.vertices[vertex];
        let one = |node: usize| {
            if let Some(fixed) = self.graph.fixed(vertex)
                && fixed != self.world.name(node)
            {
                let known = self.world.index(fixed).is_some();
                let rest = if known { "" } else { ", which is no node of the cluster" };
                return Some(format!("the job's source is on {fixed}{rest}"));
            }
            let found = self.world.nodes[node];
            refusal((node, found), &ledger.free[node], wanted, fit)
                .or_else(|| ledger.full(found, node, wanted))
        };
        (0..self.world.nodes.len()).map(one).collect()
    }

    /// Nodes to which no way leads from a vertex's inputs, with what to say of each.
    pub(crate) fn unreached(&self, vertex: usize, placed: &[usize]) -> Vec<(usize, String)> {
        let mut nodes = Vec::new();
        for edge in self.graph.inputs(vertex).filter(|edge| edge.from < vertex) {
            let from = placed[edge.from];
            let tree = hop_tree(&self.world.graph, from);
            let others = (0..self.world.nodes.len()).filter(|node| *node != from);
            let cut_off = others.filter(|node| !tree.distance(*node).is_finite());
            nodes.extend(cut_off.map(|node| (node, format!("no path from {}", self.world.name(from)))));
        }
        nodes
    }

    /// The first vertex of a whole placement of which a rule about other tasks is broken, and which.
    pub(crate) fn broken_rule(&self, nodes: &[usize]) -> Option<(usize, String)> {
        if !self.graph.has_rules && !self.ledger.ruled && !self.world.limits_containers {
            return None;
        }
        let mut ledger = self.ledger.clone();
        ledger.fresh.insert(self.graph.job.name.clone());
        nodes.iter().enumerate().for_each(|(vertex, node)| ledger.hold(self.graph, vertex, *node));
        nodes.iter().enumerate().find_map(|(vertex, at)| {
            let node = self.world.nodes[*at];
            let rules = Rules::of(self.world, self.graph, &ledger, vertex);
            let over = ledger.slots[*at] > node.hosting.containers_max;
            let full = || over.then(|| format!("{} containers are allowed", node.hosting.containers_max));
            let text = rules.refusal(node, &ledger.residents[*at]).or_else(full)?;
            Some((vertex, text))
        })
    }
}
