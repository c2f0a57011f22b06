//! Images of waiting jobs, what nodes hold while a decision goes on, and what a placement's pulls cost.
//!
//! Jobs decided first pull first: what they fetch is there for those after them, and within a job for the
//! tasks after the first.

use edgeloom_common::units::Bytes;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::case::Case;
use crate::job_graph::JobGraph;
use crate::pull::{Fetch, Goodput, Held, Image};
use crate::snapshot::Waiting;
use crate::streaming::{NO_LIMIT_ITEMS_PER_S, whole_bits};
use crate::world::World;

/// Lines whose learnt goodputs differ by less are alike: single pulls scatter by so much.
const ALIKE: RangeInclusive<f64> = 0.75..=1.25;

/// Per node: what it holds.
#[derive(Debug, Clone)]
pub(crate) struct Stores(Vec<Arc<Held>>);

impl Stores {
    /// As the snapshot has it.
    pub(crate) fn of(world: &World<'_>) -> Self {
        Self(world.nodes.iter().map(|node| Arc::clone(&node.hosting.held)).collect())
    }

    /// What one node holds.
    pub(crate) fn held(&self, node: usize) -> &Held {
        &self.0[node]
    }

    /// Counts a vertex's image as pulled to a node.
    pub(crate) fn pull(&mut self, images: &JobImages<'_>, vertex: usize, node: usize) {
        if let Some(image) = images.image(vertex, node).filter(|image| !self.0[node].has(image)) {
            Arc::make_mut(&mut self.0[node]).add(image);
        }
    }
}

/// The images of one job, by vertex and node.
#[derive(Debug, Clone)]
pub(crate) struct JobImages<'a>(Vec<Vec<Option<&'a Image>>>);

impl<'a> JobImages<'a> {
    /// Those of a waiting job, each in the platform of the node.
    pub(crate) fn of(world: &World<'_>, graph: &JobGraph<'_>, entry: &'a Waiting) -> Self {
        let row = |vertex: &crate::job_graph::Vertex<'_>| {
            let platforms = entry.images.get(&vertex.name).filter(|_| vertex.runs);
            let on = |node: &&crate::snapshot::Node| -> Option<&'a Image> {
                platforms?.get(&node.hosting.platform).map(Arc::as_ref)
            };
            world.nodes.iter().map(on).collect()
        };
        Self(graph.vertices.iter().map(row).collect())
    }

    /// The image of a vertex for a node, where known.
    pub(crate) fn image(&self, vertex: usize, node: usize) -> Option<&'a Image> {
        self.0[vertex][node]
    }

    /// What it would fetch there; nothing where it is not known.
    pub(crate) fn fetch(&self, stores: &Stores, vertex: usize, node: usize) -> Fetch {
        self.image(vertex, node).map_or_else(Fetch::default, |image| stores.held(node).fetch(image))
    }
}

/// What a job's pulls cost, wherever its tasks are placed.
#[derive(Debug, Clone, Default)]
pub(crate) struct PullCosts {
    /// By vertex and node; empty where nothing is pulled.
    fetches: Vec<Vec<Fetch>>,
    /// By vertex: those before it with the same image.
    twins: Vec<Vec<usize>>,
    lines: Vec<Option<Goodput>>,
    /// Per node: what a byte over its line counts for, 1 on the mean line.
    weights: Vec<f64>,
}

impl PullCosts {
    /// Of a waiting job, beside the flows of others: its own send nothing yet.
    pub(crate) fn of(case: &Case<'_>, images: &JobImages<'_>, stores: &Stores) -> Self {
        let world = case.world;
        let (vertices, nodes) = (images.0.len(), world.nodes.len());
        let row = |vertex| (0..nodes).map(|node| images.fetch(stores, vertex, node)).collect();
        let fetches: Vec<Vec<Fetch>> = (0..vertices).map(row).collect();
        if fetches.iter().flatten().all(|fetch| fetch.bytes().0 == 0) {
            return Self::default();
        }
        let known: Vec<Option<Goodput>> = world.nodes.iter().map(|node| node.hosting.goodput).collect();
        let name = |vertex: usize| images.0[vertex].iter().flatten().next().map(|image| &image.config);
        let same = |x: usize, y: usize| name(x).is_some() && name(x) == name(y);
        let twins = (0..vertices).map(|vertex| (0..vertex).filter(|other| same(*other, vertex)).collect());
        // A node from which nothing is known is no better than the others.
        let mean = mean(&known);
        let limited = known.iter().enumerate().map(|(node, line)| beside_flows(case, node, line.or(mean)));
        let lines: Vec<Option<Goodput>> = limited.collect();
        Self { fetches, twins: twins.collect(), weights: weights(&lines), lines }
    }

    /// Bytes that one vertex would fetch on a node.
    pub(crate) fn bytes(&self, vertex: usize, node: usize) -> u64 {
        self.fetches.get(vertex).map_or(0, |row| row[node].bytes().0)
    }

    /// Bytes that a placement would fetch, each image once a node; those over slow lines count for more.
    #[expect(clippy::cast_precision_loss, reason = "images stay far below 2^52 bytes")]
    pub(crate) fn total(&self, nodes: &[usize]) -> f64 {
        self.each(nodes).map(|(node, fetch)| fetch.bytes().0 as f64 * self.weights[node]).sum()
    }

    /// Items a second over the policy's horizon, in which the job waits for its pulls first: nodes pull side by
    /// side, each of them one image after the other. A job that nothing limits has no items to lose.
    pub(crate) fn over_horizon(&self, items_per_s: f64, (world, nodes): (&World<'_>, &[usize])) -> f64 {
        if items_per_s >= NO_LIMIT_ITEMS_PER_S || self.fetches.is_empty() {
            return items_per_s;
        }
        items_per_s * self.part_left(nodes, world.policy.horizon_s)
    }

    /// Part of the horizon that is left beside the pulls; 1 where no line is known.
    fn part_left(&self, nodes: &[usize], horizon_s: f64) -> f64 {
        let mut seconds: Vec<(usize, f64)> = Vec::new();
        for (node, fetch) in self.each(nodes) {
            let Some(line) = self.lines[node] else { continue };
            let pull_s = fetch.seconds(line, Bytes(0));
            match seconds.iter_mut().find(|(other, _)| *other == node) {
                Some((_, sum)) => *sum += pull_s,
                None => seconds.push((node, pull_s)),
            }
        }
        let longest = seconds.into_iter().map(|(_, seconds)| seconds).fold(0.0, f64::max);
        if longest > 0.0 { horizon_s / (horizon_s + longest) } else { 1.0 }
    }

    fn each<'s>(&'s self, nodes: &'s [usize]) -> impl Iterator<Item = (usize, Fetch)> + 's {
        let vertices = nodes.iter().copied().enumerate().take(self.fetches.len());
        let first =
            vertices.filter(|(vertex, node)| self.twins[*vertex].iter().all(|it| nodes[*it] != *node));
        first.map(|(vertex, node)| (node, self.fetches[vertex][node]))
    }
}

/// A node's line as far as flows leave it; as it is where they need nothing of it. What they have and do not need
/// pulls get.
fn beside_flows(case: &Case<'_>, node: usize, line: Option<Goodput>) -> Option<Goodput> {
    let (pools, wire) = case.world.pull_line(node);
    let needed: f64 = pools.iter().map(|pool| case.ledger.needed[*pool]).sum();
    if needed <= 0.0 {
        return line;
    }
    let left = Goodput::beside_flows(whole_bits(wire), whole_bits(needed));
    Some(line.map_or(left, |line| line.at_most(left)))
}

/// The mean of the lines that are known; none where no pull has told of any.
fn mean(lines: &[Option<Goodput>]) -> Option<Goodput> {
    let known: Vec<Goodput> = lines.iter().flatten().copied().collect();
    Goodput::mean(&known)
}

/// Seconds a byte over those of the mean line; 1 where a line is not known, or as good as the mean.
fn weights(lines: &[Option<Goodput>]) -> Vec<f64> {
    let second_s = |line: Goodput| line.seconds(Bytes(1));
    let Some(mean_s) = mean(lines).map(second_s) else { return vec![1.0; lines.len()] };
    let weight = |line: &Option<Goodput>| line.map_or(1.0, |line| second_s(line) / mean_s);
    lines.iter().map(weight).map(|weight| if ALIKE.contains(&weight) { 1.0 } else { weight }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::BitRate;

    fn line(mbit_s: u64) -> Option<Goodput> {
        Some(Goodput::declared(BitRate(mbit_s * 1_000_000)))
    }

    #[test]
    fn a_node_without_pulls_is_no_better_than_the_others_and_scatter_does_not_count() {
        assert_eq!(weights(&[None, None]), [1.0, 1.0]);
        assert_eq!(weights(&[line(19), line(21), None]), [1.0, 1.0, 1.0]);
        let far = weights(&[line(20), line(20), line(5), None]);
        assert!(far[2] > 1.5 && far[0] < 0.75 && (far[3] - 1.0).abs() < 1e-9, "{far:?}");
    }
}
