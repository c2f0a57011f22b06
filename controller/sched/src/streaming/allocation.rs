//! Algorithm 1: tasks in topological order, each to the node where it would be done first.
//!
//! `t_exec = C_i / PS_j + max over predecessors (D / bw(u, j))`, with `bw` the mean capacity over the links
//! of the path with the fewest hops, and nothing to wait for on the same node. The source counts as a
//! predecessor. Ties go to fewer missing image bytes, then to the node's name.

use std::collections::BTreeMap;

use super::params::{Allocation, Colocated};
use super::{Case, Placed, Stuck};
use crate::images::PullCosts;
use crate::ledger::Ledger;
use crate::route::{Tree, hop_tree};

/// A node's answer for one task.
struct Offer {
    node: usize,
    exec_s: f64,
    missing: u64,
}

/// State of the walk through the tasks.
struct Walk<'a> {
    case: Case<'a>,
    params: Allocation,
    ledger: Ledger,
    nodes: Vec<usize>,
    /// Work already put on each node by this job.
    work_s: Vec<f64>,
    trees: BTreeMap<usize, Tree>,
}

/// Places the whole job, or says which task found no node.
pub(crate) fn allocate(case: &Case<'_>, params: Allocation, pulls: &PullCosts) -> Result<Placed, Stuck> {
    let mut walk = Walk {
        case: *case,
        params,
        ledger: case.ledger.clone(),
        nodes: Vec::new(),
        work_s: vec![0.0; case.world.nodes.len()],
        trees: BTreeMap::new(),
    };
    let mut reasons = Vec::new();
    for vertex in 0..case.graph.vertices.len() {
        let (offers, refusals) = walk.offers(vertex, pulls);
        let Some(best) = offers.first() else {
            let refusals = refusals.into_iter().map(Option::unwrap_or_default).collect();
            return Err(Stuck { vertex, refusals });
        };
        reasons.push(walk.reason(vertex, &offers, &refusals));
        walk.take(vertex, best.node);
    }
    Ok(Placed { nodes: walk.nodes, reasons })
}

impl Walk<'_> {
    /// Nodes that can take the task, best first, and why the others cannot.
    fn offers(&mut self, vertex: usize, pulls: &PullCosts) -> (Vec<Offer>, Vec<Option<String>>) {
        let mut refusals = self.case.refusals(vertex, &self.ledger, self.params.fit);
        let mut offers = Vec::new();
        for (node, refusal) in refusals.iter_mut().enumerate().filter(|(_, refusal)| refusal.is_none()) {
            match self.exec_s(vertex, node) {
                Ok(exec_s) => offers.push(Offer { node, exec_s, missing: pulls.bytes(vertex, node) }),
                Err(from) => *refusal = Some(format!("no path from {}", self.case.world.name(from))),
            }
        }
        offers.sort_by(|x, y| {
            x.exec_s.total_cmp(&y.exec_s).then(x.missing.cmp(&y.missing)).then(x.node.cmp(&y.node))
        });
        (offers, refusals)
    }

    /// `t_exec` of a task on a node, or the predecessor's node from which no path leads there.
    fn exec_s(&mut self, vertex: usize, node: usize) -> Result<f64, usize> {
        let case = self.case;
        let mut work_s = case.graph.vertices[vertex].work_s[node];
        if self.params.colocated == Colocated::Summed {
            work_s += self.work_s[node];
        }
        let mut transfer_s: f64 = 0.0;
        for edge in case.graph.inputs(vertex).filter(|edge| edge.from < vertex) {
            let from = self.nodes[edge.from];
            if from != node {
                let bandwidth = self.bandwidth(from, node).ok_or(from)?;
                transfer_s = transfer_s.max(case.wire_bits(edge) / bandwidth);
            }
        }
        let compute_s = if work_s > 0.0 { work_s / case.world.nodes[node].speed() } else { 0.0 };
        Ok(compute_s + transfer_s)
    }

    /// Mean capacity over the links of the path with the fewest hops.
    fn bandwidth(&mut self, from: usize, to: usize) -> Option<f64> {
        let world = self.case.world;
        let tree = self.trees.entry(from).or_insert_with(|| hop_tree(&world.graph, from));
        let path = tree.path(&world.graph, to)?;
        let sum: f64 = world.graph.pools(&path).map(|pool| world.capacity[pool]).sum();
        #[expect(clippy::cast_precision_loss, reason = "a path has few hops")]
        let hops = path.len() as f64;
        Some(sum / hops)
    }

    fn take(&mut self, vertex: usize, node: usize) {
        self.ledger.hold(self.case.graph, vertex, node);
        self.work_s[node] += self.case.graph.vertices[vertex].work_s[node];
        self.nodes.push(node);
    }

    fn reason(&self, vertex: usize, offers: &[Offer], refusals: &[Option<String>]) -> String {
        let world = self.case.world;
        let name = &self.case.graph.vertices[vertex].name;
        let best = &offers[0];
        let mut line = format!("{name} -> {}", world.name(best.node));
        if self.case.graph.fixed(vertex).is_some() {
            line.push_str(": the source's own node");
            return line;
        }
        line.push_str(&format!(": {} an item to receive and compute", shown(best.exec_s)));
        if let Some(next) = offers.get(1) {
            line.push_str(&format!("; next {} with {}", world.name(next.node), shown(next.exec_s)));
        }
        for (node, refusal) in refusals.iter().enumerate() {
            if let Some(text) = refusal {
                line.push_str(&format!("; {} refused: {text}", world.name(node)));
            }
        }
        line
    }
}

fn shown(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1000.0)
}
