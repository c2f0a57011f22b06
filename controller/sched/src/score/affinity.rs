//! InterPodAffinity: near the tasks that a task wants near, away from those it wants away, and the other
//! way round.

use edgeloom_common::job::{Attribute, Term};
use std::collections::BTreeMap;

use crate::filter::{Resident, looks_at, place};
use crate::one_by_one::Turn;
use crate::snapshot::Node;

/// What another task's required affinity counts for, where the task at hand would meet it.
const HARD_WEIGHT: i64 = 1;

/// Weights by place.
type Weights<'t> = BTreeMap<(&'t Attribute, &'t str), i64>;

/// The raw score of each open node.
pub(super) fn inter_pod_affinity(turn: &Turn<'_>) -> Vec<i64> {
    let (world, graph) = (turn.case.world, turn.case.graph);
    let own = graph.vertices[turn.vertex].placement;
    if own.is_anywhere() && !turn.ledger.ruled {
        return vec![0; turn.open.len()];
    }
    let newcomer = Resident::of(graph, turn.vertex);
    let mut weights = Weights::new();
    for (at, node) in world.nodes.iter().enumerate() {
        for resident in &turn.ledger.residents[at] {
            add(&mut weights, node, (&newcomer, own_terms(own), resident));
            add(&mut weights, node, (resident, own_terms(&resident.placement), &newcomer));
            let required = resident.placement.affinity.required.iter().map(|term| (term, HARD_WEIGHT));
            add(&mut weights, node, (resident, required, &newcomer));
        }
    }
    let sum = |node: &usize| -> i64 {
        let node = world.nodes[*node];
        let here = weights.iter().filter(|((by, at), _)| place(by, node) == Some(*at));
        here.map(|(_, weight)| weight).sum()
    };
    turn.open.iter().map(sum).collect()
}

/// Preferred terms, those of anti-affinity below 0.
fn own_terms(placement: &edgeloom_common::job::Placement) -> impl Iterator<Item = (&Term, i64)> {
    let near = placement.affinity.preferred.iter().map(|(term, weight)| (term, i64::from(*weight)));
    let away = placement.anti_affinity.preferred.iter().map(|(term, weight)| (term, -i64::from(*weight)));
    near.chain(away)
}

/// Adds the terms of one task that look at another, in the place of the node.
fn add<'t>(
    weights: &mut Weights<'t>,
    node: &'t Node,
    (whose, terms, other): (&Resident, impl Iterator<Item = (&'t Term, i64)>, &Resident),
) {
    for (term, weight) in terms.filter(|(term, _)| looks_at(&term.with, &whose.job, other)) {
        if let Some(place) = place(&term.by, node) {
            *weights.entry((&term.by, place)).or_default() += weight;
        }
    }
}
