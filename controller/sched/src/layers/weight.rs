//! How much the layer score counts at a node (Eq. 11 to 13, and section IV-B's ways to extend them).

use crate::one_by_one::Turn;
use crate::score::load::Shares;
use crate::scoring::{Condition, LayerScoring};

/// The step of the layer score where all conditions hold, and the other weight elsewhere.
pub(super) fn weight(turn: &Turn<'_>, node: usize, layer_score: f64) -> f64 {
    let scoring = &turn.case.world.scoring.layers;
    let shares = Shares::of(turn, node);
    if !scoring.conditions.iter().all(|condition| holds(condition, turn, (node, shares))) {
        return scoring.otherwise;
    }
    stepped(scoring, layer_score)
}

fn stepped(scoring: &LayerScoring, layer_score: f64) -> f64 {
    let reached = scoring.steps.iter().filter(|step| step.score <= layer_score);
    reached.max_by(|x, y| x.score.total_cmp(&y.score)).map_or(scoring.otherwise, |step| step.weight)
}

/// A share that is the bound but for rounding is not below it.
fn below(share: f64, bound: f64) -> bool {
    share < bound - 1e-9
}

fn holds(condition: &Condition, turn: &Turn<'_>, (node, shares): (usize, Shares)) -> bool {
    match condition {
        Condition::LocalAbove(bytes) => {
            let image = turn.images.image(turn.vertex, node);
            image.is_some_and(|image| turn.stores.held(node).local(image) > *bytes)
        }
        Condition::CpuBelow(share) => below(shares.cpu, *share),
        Condition::MemoryBelow(share) => below(shares.memory, *share),
        Condition::StorageBelow(share) => below(shares.storage, *share),
        Condition::ImbalanceBelow(share) => below(shares.imbalance(), *share),
        Condition::Label { key, value } => turn.case.world.nodes[node].labels.get(key) == Some(value),
    }
}
