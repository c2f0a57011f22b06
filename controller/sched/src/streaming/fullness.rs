//! How full a placement makes its nodes, in bytes of layers: what it may save elsewhere for a node with room.
//!
//! A node that is full cannot serve those who ask later for the images it has, and one that has CPU but no
//! memory left, or the other way round, can serve nobody.

use super::Case;
use crate::filter::Amount;
use crate::score::load::Shares;

/// The sum over containers, each with its node as all of them leave it.
#[expect(clippy::cast_precision_loss, reason = "bytes of layers stay far below 2^52")]
pub(super) fn fullness(case: &Case<'_>, nodes: &[usize]) -> f64 {
    let mut used: Vec<(usize, Amount, f64)> = Vec::new();
    for (vertex, node) in case.graph.vertices.iter().zip(nodes).filter(|(vertex, _)| vertex.runs) {
        match used.iter_mut().find(|(other, ..)| other == node) {
            Some((_, need, containers)) => {
                *need += vertex.need;
                *containers += 1.0;
            }
            None => used.push((*node, vertex.need, 1.0)),
        }
    }
    let worth = &case.world.scoring.room;
    let one = |(node, need, containers): (usize, Amount, f64)| {
        let shares = Shares::with(case.world.nodes[node], case.ledger.free[node], need);
        containers * (shares.fill() * worth.fill.0 as f64 + shares.imbalance() * worth.imbalance.0 as f64)
    };
    used.into_iter().map(one).sum()
}
