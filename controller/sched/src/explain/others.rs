//! For each task, what the job would do if this one task were on another node.
//!
//! A simple, honest estimate, not a second search: the other tasks stay, flows that do not touch the task keep
//! their paths, and those that do take the path with the fewest hops, or the widest if that carries more. The
//! job shares what it had and what others leave, at one throughput for all its flows.

use edgeloom_common::view::{OtherNode, TaskExplanation, Verdict};
use std::collections::BTreeMap;

use super::subject::Subject;
use super::words;
use crate::filter::Fit;
use crate::job_graph::Edge;
use crate::route::{Tree, tree};
use crate::streaming::predict::compute_limit;
use crate::streaming::{EQUAL, LEAST_RATE_BPS, Strategy};

/// Which path a flow takes that the move touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Shortest,
    Widest,
}

/// What a placement would do.
#[derive(Debug, Clone)]
struct Estimate {
    items_per_s: f64,
    /// Wire bits an item, each counted once a hop.
    bit_hops: f64,
    limited_by: String,
}

/// The estimates of one job; shortest paths are kept by their first node.
struct Estimates<'a> {
    subject: &'a Subject<'a>,
    now: f64,
    available: Vec<f64>,
    trees: BTreeMap<(Way, usize), Tree>,
}

/// Why each task is where it is; the source first, then in the order of the data.
pub(super) fn tasks(subject: &Subject<'_>) -> Vec<TaskExplanation> {
    let (now, _) = subject.limit();
    let mut estimates = Estimates { subject, now, available: subject.available(), trees: BTreeMap::new() };
    (0..subject.graph.vertices.len()).map(|vertex| estimates.task(vertex)).collect()
}

impl Estimates<'_> {
    fn task(&mut self, vertex: usize) -> TaskExplanation {
        let (subject, node) = (self.subject, self.subject.nodes[vertex]);
        let refusals = subject.case().refusals(vertex, &subject.with, Fit::AtLeast);
        let mut reached: Vec<(usize, Estimate)> = Vec::new();
        let mut refused: Vec<OtherNode> = Vec::new();
        for (other, refusal) in refusals.into_iter().enumerate().filter(|(other, _)| *other != node) {
            let answer = match refusal {
                Some(text) => Err(text),
                None => self
                    .moved(vertex, other)
                    .map_err(|at| format!("no way to or from {}", subject.world.name(at))),
            };
            match answer {
                Ok(estimate) => reached.push((other, estimate)),
                Err(text) => refused.push(OtherNode {
                    node: subject.world.name(other).clone(),
                    verdict: Verdict::Refused(text.clone()),
                    text,
                }),
            }
        }
        reached.sort_by(|x, y| y.1.items_per_s.total_cmp(&x.1.items_per_s).then(x.0.cmp(&y.0)));
        let others = reached.iter().map(|(other, estimate)| OtherNode {
            node: subject.world.name(*other).clone(),
            verdict: Verdict::ItemsPerS(estimate.items_per_s),
            text: self.verdict(estimate),
        });
        TaskExplanation {
            task: subject.graph.vertices[vertex].name.clone(),
            node: subject.world.name(node).clone(),
            why: self.why(vertex, &reached),
            others: others.chain(refused).collect(),
        }
    }

    /// The job with one task elsewhere, or the node to which no way leads.
    fn moved(&mut self, vertex: usize, node: usize) -> Result<Estimate, usize> {
        let mut nodes = self.subject.nodes.clone();
        nodes[vertex] = node;
        let short = self.over(vertex, &nodes, Way::Shortest)?;
        let wide = self.over(vertex, &nodes, Way::Widest)?;
        Ok(if wide.items_per_s > short.items_per_s { wide } else { short })
    }

    fn over(&mut self, vertex: usize, nodes: &[usize], way: Way) -> Result<Estimate, usize> {
        let subject = self.subject;
        let case = subject.case();
        let mut paths: Vec<(Edge, Vec<usize>)> = Vec::new();
        for edge in case.flows(nodes) {
            let kept = subject.flows.iter().find(|flow| flow.edge == edge);
            let path = match kept.filter(|_| edge.from != vertex && edge.to != vertex) {
                Some(flow) => flow.path.clone(),
                None => self
                    .path(way, nodes[edge.from], nodes[edge.to])
                    .ok_or_else(|| nodes[if edge.from == vertex { edge.to } else { edge.from }])?,
            };
            paths.push((edge, path));
        }
        Ok(self.estimate(nodes, &paths))
    }

    /// The throughput over these paths, and what would set it.
    fn estimate(&self, nodes: &[usize], paths: &[(Edge, Vec<usize>)]) -> Estimate {
        let subject = self.subject;
        let case = subject.case();
        let mut loads = vec![0.0; self.available.len()];
        let mut bit_hops = 0.0;
        for (edge, path) in paths {
            let bits = case.wire_bits(edge);
            for pool in subject.world.graph.pools(path) {
                loads[pool] += bits;
                bit_hops += bits;
            }
        }
        let compute = compute_limit(&case, nodes);
        let used = (0..loads.len()).filter(|pool| loads[*pool] > 0.0);
        let fullest = used
            .map(|pool| (self.available[pool] / loads[pool], pool))
            .min_by(|x, y| x.0.total_cmp(&y.0))
            .filter(|(items, _)| *items < compute.items_per_s);
        let (items_per_s, limited_by) = match fullest {
            Some((items, pool)) => (items, self.largest(pool, paths)),
            None => (compute.items_per_s, words::compute(&case, compute.by)),
        };
        Estimate { items_per_s, bit_hops, limited_by }
    }

    /// The flow with the most bytes over a pool, in words.
    fn largest(&self, pool: usize, paths: &[(Edge, Vec<usize>)]) -> String {
        let (world, graph) = (&self.subject.world, &self.subject.graph);
        let crossing = paths.iter().filter_map(|(edge, path)| {
            Some((edge, *path.iter().find(|arc| world.graph.arcs[**arc].pool == pool)?))
        });
        crossing.max_by_key(|(edge, _)| edge.volume).map_or_else(String::new, |(edge, arc)| {
            format!("flow {} over {}", words::edge(graph, edge), words::arc(world, arc))
        })
    }

    fn path(&mut self, way: Way, from: usize, to: usize) -> Option<Vec<usize>> {
        let (graph, available) = (&self.subject.world.graph, &self.available);
        let tree = self.trees.entry((way, from)).or_insert_with(|| {
            tree(graph, from, |arc| match available[arc.pool] {
                closed if closed < LEAST_RATE_BPS => f64::INFINITY,
                width if way == Way::Widest => 1.0 / width,
                _ => 1.0,
            })
        });
        tree.path(graph, to)
    }

    fn verdict(&self, estimate: &Estimate) -> String {
        let limit = match estimate.limited_by.as_str() {
            "" => String::new(),
            by => format!(" ({by} would be the limit)"),
        };
        let reached = words::items(estimate.items_per_s);
        if self.equal(estimate) {
            return format!("{reached} items/s as well{limit}");
        }
        format!("{reached} items/s instead of {}{limit}", words::items(self.now))
    }

    fn equal(&self, estimate: &Estimate) -> bool {
        (estimate.items_per_s - self.now).abs() <= EQUAL * self.now
    }

    fn why(&self, vertex: usize, reached: &[(usize, Estimate)]) -> String {
        let (world, profile) = (&self.subject.world, &self.subject.plan.profile);
        if self.subject.graph.fixed(vertex).is_some() {
            return "the job's source is there".to_owned();
        }
        let Some((best, estimate)) = reached.first() else {
            return "no other node can take it".to_owned();
        };
        let now = words::items(self.now);
        let (best, would) = (world.name(*best), words::items(estimate.items_per_s));
        if !self.equal(estimate) && estimate.items_per_s < self.now {
            return format!("{now} items/s here; the next best, {best}, would give {would}");
        }
        if !self.equal(estimate) {
            let stays = if *profile == Strategy::Edgeloom.name() { " when it was decided" } else { "" };
            return format!(
                "profile {profile} chose it{stays}; {best} would give {would} items/s instead of {now}"
            );
        }
        let equals: Vec<&(usize, Estimate)> = reached.iter().filter(|(_, other)| self.equal(other)).collect();
        let names: Vec<&str> = equals.iter().take(3).map(|(node, _)| world.name(*node).as_str()).collect();
        let more = if equals.len() > names.len() { " and others" } else { "" };
        let least = equals.iter().map(|(_, other)| other.bit_hops).fold(f64::INFINITY, f64::min);
        let own = self.traffic();
        let saved = if own < least {
            let kilobits = (own / 1000.0, least / 1000.0);
            format!(
                ", with less traffic: {:.1} kbit an item over all hops instead of {:.1}",
                kilobits.0, kilobits.1
            )
        } else {
            String::new()
        };
        format!("{now} items/s, as on {}{more}{saved}", names.join(", "))
    }

    /// Wire bits an item of the plan as it stands, over all hops.
    fn traffic(&self) -> f64 {
        let case = self.subject.case();
        let hops =
            self.subject.flows.iter().flat_map(|flow| flow.path.iter().map(|_| case.wire_bits(&flow.edge)));
        hops.fold(0.0, |sum, bits| sum + bits)
    }
}
