//! The Kubernetes scheduler's total: weight times score, over all plugins.

use edgeloom_common::job::{Attribute, Effect, Spread};
use std::collections::BTreeSet;

use super::affinity::inter_pod_affinity;
use super::locality::{Present, image_locality};
use super::normal::{by_largest, by_largest_reversed, by_range};
use super::resources::{Use, balanced_allocation, least_allocated, unasked};
use super::spread::{Crowd, crowding, normalise};
use super::volume::{Class, TIGHT, volume_binding};
use crate::filter::{Amount, place, selects};
use crate::one_by_one::Turn;
use crate::scoring::Plugins;

/// The system's own constraints for tasks of a service: here tasks that have labels and no `spread`.
const SYSTEM_SKEWS: [(&str, u32); 2] = [("", 3), ("zone", 5)];

/// A plugin: its name for people, its weight, and its scores of the open nodes.
type Plugin = (&'static str, fn(&Plugins) -> i64, fn(&Turn<'_>) -> Vec<i64>);

const PLUGINS: [Plugin; 8] = [
    ("fit", |weights| weights.node_resources_fit, resources_fit),
    ("balance", |weights| weights.balanced_allocation, balance),
    ("image", |weights| weights.image_locality, locality),
    ("taints", |weights| weights.taint_toleration, taints),
    ("node affinity", |weights| weights.node_affinity, node_affinity),
    ("task affinity", |weights| weights.inter_pod_affinity, |turn| by_range(&inter_pod_affinity(turn))),
    ("spread", |weights| weights.pod_topology_spread, spread),
    ("volumes", |weights| weights.volume_binding, volumes),
];

/// Totals of the open nodes.
pub(crate) fn totals(turn: &Turn<'_>) -> Vec<i64> {
    let mut totals = vec![0; turn.open.len()];
    for (_, weight, plugin) in PLUGINS {
        let weight = weight(&turn.case.world.scoring.plugins);
        if weight != 0 {
            totals.iter_mut().zip(plugin(turn)).for_each(|(total, score)| *total += weight * score);
        }
    }
    totals
}

/// `fit 65, balance 96, image 28`: the scores of one open node that are counted.
pub(crate) fn words(turn: &Turn<'_>, node: usize) -> String {
    let Some(at) = turn.open.iter().position(|open| *open == node) else { return String::new() };
    let counted = |plugin: &&Plugin| plugin.1(&turn.case.world.scoring.plugins) != 0;
    let parts =
        PLUGINS.iter().filter(counted).map(|(name, _, plugin)| format!("{name} {}", plugin(turn)[at]));
    parts.collect::<Vec<_>>().join(", ")
}

/// CPU and memory of a node with the task on it.
fn uses(turn: &Turn<'_>, node: usize, more: &Amount) -> [Use; 2] {
    let has = Amount::from(turn.case.world.nodes[node]);
    let (free, need) = (turn.ledger.free[node], turn.case.graph.vertices[turn.vertex].need);
    let one =
        |has: i64, free: i64, need: i64| Use { requested: has - free + need, allocatable: has, weight: 1 };
    [
        one(has.cpu, free.cpu, need.cpu.saturating_add(more.cpu)),
        one(has.memory, free.memory, need.memory.saturating_add(more.memory)),
    ]
}

fn resources_fit(turn: &Turn<'_>) -> Vec<i64> {
    let own = unasked(&turn.case.graph.vertices[turn.vertex].need);
    let score = |node: &usize| {
        let mut more = turn.ledger.unasked[*node];
        more += own;
        least_allocated(&uses(turn, *node, &more))
    };
    turn.open.iter().map(score).collect()
}

fn balance(turn: &Turn<'_>) -> Vec<i64> {
    turn.open.iter().map(|node| balanced_allocation(&uses(turn, *node, &Amount::default()))).collect()
}

fn locality(turn: &Turn<'_>) -> Vec<i64> {
    let world = turn.case.world;
    let image = |node: usize| turn.images.image(turn.vertex, node);
    let has = |node: usize| image(node).is_some_and(|image| turn.stores.held(node).has(image));
    let (mut nodes, mut total) = (0, 0);
    for node in 0..world.nodes.len() {
        nodes += u64::from(has(node));
        total += 1;
    }
    let score = |node: &usize| {
        let present = image(*node).filter(|_| has(*node));
        // Registries know compressed sizes; Kubernetes counts what nodes report, which is unpacked.
        let present = present.map(|image| Present { bytes: image.layer_bytes().0, nodes });
        image_locality(present.as_slice(), total, 1, world.scoring.locality)
    };
    turn.open.iter().map(score).collect()
}

fn taints(turn: &Turn<'_>) -> Vec<i64> {
    let tolerations = &turn.case.graph.vertices[turn.vertex].placement.tolerations;
    let count = |node: &usize| {
        let taints = &turn.case.world.nodes[*node].hosting.taints;
        let preferred = taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule);
        let intolerable = preferred.filter(|taint| !tolerations.iter().any(|it| it.covers(taint)));
        i64::try_from(intolerable.count()).unwrap_or(i64::MAX / super::BEST)
    };
    by_largest_reversed(&turn.open.iter().map(count).collect::<Vec<_>>())
}

fn node_affinity(turn: &Turn<'_>) -> Vec<i64> {
    let preferences = &turn.case.graph.vertices[turn.vertex].placement.preferences;
    let sum = |node: &usize| -> i64 {
        let node = turn.case.world.nodes[*node];
        let holding = preferences.iter().filter(|it| it.constraint.holds(&node.id, &node.labels));
        holding.map(|preference| i64::from(preference.weight)).sum()
    };
    by_largest(&turn.open.iter().map(sum).collect::<Vec<_>>())
}

/// Own wishes, or the system's for tasks with labels. Those that are required are filters and no score.
fn spread(turn: &Turn<'_>) -> Vec<i64> {
    let placement = turn.case.graph.vertices[turn.vertex].placement;
    let own: Vec<Spread> = placement.spread.iter().filter(|spread| !spread.required).cloned().collect();
    let system = placement.spread.is_empty() && !placement.labels.is_empty();
    let constraints = if system { system_constraints(&placement.labels) } else { own };
    let world = turn.case.world;
    let ignored = |node: usize| {
        !system && constraints.iter().any(|spread| place(&spread.by, world.nodes[node]).is_none())
    };
    let counted: Vec<usize> = turn.open.iter().copied().filter(|node| !ignored(*node)).collect();
    let crowds: Vec<Crowds<'_>> =
        constraints.iter().map(|spread| Crowds::of(turn, spread, &counted)).collect();
    let raw = |node: &usize| {
        let here = crowds.iter().filter_map(|crowds| crowds.at(turn, *node));
        (!ignored(*node)).then(|| crowding(&here.collect::<Vec<_>>()))
    };
    normalise(&turn.open.iter().map(raw).collect::<Vec<_>>())
}

fn system_constraints(labels: &std::collections::BTreeMap<String, String>) -> Vec<Spread> {
    let one = |(key, max_skew): (&str, u32)| {
        let by = if key.is_empty() { Attribute::Name } else { Attribute::Label(key.to_owned()) };
        Spread { labels: labels.clone(), by, max_skew, required: false }
    };
    SYSTEM_SKEWS.into_iter().map(one).collect()
}

/// One constraint over the whole cluster.
struct Crowds<'c> {
    spread: &'c Spread,
    places: usize,
    counts: std::collections::BTreeMap<&'c str, u32>,
}

impl<'c> Crowds<'c> {
    fn of(turn: &Turn<'c>, spread: &'c Spread, open: &[usize]) -> Self {
        let world = turn.case.world;
        let places: BTreeSet<&str> =
            open.iter().filter_map(|node| place(&spread.by, world.nodes[*node])).collect();
        let mut counts = std::collections::BTreeMap::new();
        for (at, node) in world.nodes.iter().enumerate() {
            let matching =
                turn.ledger.residents[at].iter().filter(|it| selects(&spread.labels, &it.placement.labels));
            let count = u32::try_from(matching.count()).unwrap_or(u32::MAX);
            if let Some(place) = place(&spread.by, node) {
                *counts.entry(place).or_default() += count;
            }
        }
        Self { spread, places: places.len(), counts }
    }

    fn at(&self, turn: &Turn<'_>, node: usize) -> Option<Crowd> {
        let place = place(&self.spread.by, turn.case.world.nodes[node])?;
        let count = self.counts.get(place).copied().unwrap_or(0);
        Some(Crowd { count, places: self.places, max_skew: self.spread.max_skew })
    }
}

fn volumes(turn: &Turn<'_>) -> Vec<i64> {
    let wanted = &turn.case.graph.vertices[turn.vertex].placement.volumes;
    let score = |node: &usize| {
        let has = &turn.case.world.nodes[*node].hosting.volumes;
        let classes = wanted.iter().map(|volume| Class {
            requested: volume.size.0,
            capacity: has.get(&volume.class).map_or(0, |capacity| capacity.0),
        });
        volume_binding(&classes.collect::<Vec<_>>(), &TIGHT)
    };
    turn.open.iter().map(score).collect()
}
