//! Placements from which the search starts, beside Algorithm 1 and the whole job on one node.

use super::predict::compute_limit;
use super::{Case, Placed};
use crate::filter::Fit;
use crate::images::PullCosts;
use crate::ledger::Ledger;
use crate::route::hop_tree;

/// First fit, the tasks that ask for most memory first: finds room where the topological order does not.
pub(crate) fn packed(case: &Case<'_>) -> Option<Placed> {
    let vertices = &case.graph.vertices;
    let mut order: Vec<usize> = (0..vertices.len()).collect();
    let key = |v: usize| (case.graph.fixed(v).is_none(), -vertices[v].need.memory, -vertices[v].need.cpu, v);
    order.sort_by_key(|vertex| key(*vertex));
    let mut ledger = case.ledger.clone();
    let mut nodes = vec![0; vertices.len()];
    for vertex in order {
        let node = case.refusals(vertex, &ledger, Fit::AtLeast).iter().position(Option::is_none)?;
        ledger.hold(case.graph, vertex, node);
        nodes[vertex] = node;
    }
    let reasons = vec!["start: tasks packed by memory request, largest first".to_owned()];
    Some(Placed { nodes, reasons })
}

/// Tasks in topological order, each as near to its inputs as the processors' floor of items a second
/// leaves it: fewest image bytes, then least traffic, then the node's name.
pub(crate) fn near(case: &Case<'_>, floor: f64, pulls: &PullCosts) -> Option<Placed> {
    let mut ledger: Ledger = case.ledger.clone();
    let mut nodes: Vec<usize> = Vec::new();
    for vertex in 0..case.graph.vertices.len() {
        let traffic = added_traffic(case, vertex, &nodes);
        let refusals = case.refusals(vertex, &ledger, Fit::AtLeast);
        let mut open: Vec<usize> = (0..refusals.len())
            .filter(|node| refusals[*node].is_none() && traffic[*node].is_finite())
            .collect();
        open.sort_by(|x, y| {
            let bytes = pulls.bytes(vertex, *x).cmp(&pulls.bytes(vertex, *y));
            bytes.then(traffic[*x].total_cmp(&traffic[*y])).then(x.cmp(y))
        });
        nodes.push(0);
        let holds = |node: &usize| {
            nodes[vertex] = *node;
            compute_limit(case, &nodes).items_per_s >= floor
        };
        let node = open.into_iter().find(holds)?;
        nodes[vertex] = node;
        ledger.hold(case.graph, vertex, node);
    }
    let reasons = vec!["start: each task as near to its inputs as processors allow".to_owned()];
    Some(Placed { nodes, reasons })
}

/// Per node: bits times hops an item from the inputs placed so far; infinite where no path leads.
fn added_traffic(case: &Case<'_>, vertex: usize, nodes: &[usize]) -> Vec<f64> {
    let mut traffic = vec![0.0; case.world.nodes.len()];
    for edge in case.graph.inputs(vertex).filter(|edge| edge.from < nodes.len()) {
        let tree = hop_tree(&case.world.graph, nodes[edge.from]);
        let bits = case.wire_bits(edge);
        traffic.iter_mut().enumerate().for_each(|(node, sum)| *sum += bits * tree.distance(node));
    }
    traffic
}
