//! How full a node is with the task on it, in hundredths: what Docker Swarm weighs nodes by.

use super::BEST;
use crate::filter::Amount;
use crate::one_by_one::Turn;
use crate::snapshot::Node;

/// Requested shares of CPU and memory with the task on the node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shares {
    pub(crate) cpu: f64,
    pub(crate) memory: f64,
    pub(crate) storage: f64,
}

impl Shares {
    /// With everything that is placed, running or not.
    pub(crate) fn of(turn: &Turn<'_>, node: usize) -> Self {
        let need = turn.case.graph.vertices[turn.vertex].need;
        Self::with(turn.case.world.nodes[node], turn.ledger.free[node], need)
    }

    /// Of a node of which so much is free, with so much more on it.
    pub(crate) fn with(node: &Node, free: Amount, need: Amount) -> Self {
        let has = Amount::from(node);
        Self {
            cpu: share(has.cpu, free.cpu, need.cpu),
            memory: share(has.memory, free.memory, need.memory),
            storage: share(has.storage, free.storage, need.storage),
        }
    }

    /// Half the difference of CPU and memory, which is the standard deviation of the two.
    pub(crate) fn imbalance(self) -> f64 {
        (self.cpu - self.memory).abs() / 2.0
    }

    /// That of the two which runs out first.
    pub(crate) fn fill(self) -> f64 {
        self.cpu.max(self.memory)
    }

    /// The mean of CPU and memory, 0 to 100.
    pub(crate) fn load(self) -> f64 {
        f64::midpoint(self.cpu.min(1.0), self.memory.min(1.0)) * 100.0
    }

    /// As `load`, but emptier is better.
    pub(crate) fn room(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a hundred")]
        let best = BEST as f64;
        best - self.load()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
fn share(has: i64, free: i64, need: i64) -> f64 {
    if has <= 0 { 0.0 } else { (has - free + need) as f64 / has as f64 }
}
