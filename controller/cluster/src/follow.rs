//! How many nodes take tasks, by how much is requested of them: without clock, state or planner.
//!
//! In: what each node has and what is requested of it, once a look. Out: that one more node should be emptied, or that
//! one should take tasks again. A node is emptied once so little was requested for so long that the others would
//! stay well below the mark at which nodes are taken back, so that the two never chase each other.

use edgeloom_common::ids::NodeId;
use std::time::Duration;

/// What the operator allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FollowLoad {
    /// Nodes are emptied while the others would be requested by less than this part of what they have.
    pub empty_below: f64,
    /// Nodes are taken back when those that take tasks are requested by more.
    pub take_back_above: f64,
    /// How long it has to be so before a node is emptied.
    pub steady: Duration,
    /// So many nodes go on taking tasks in any case.
    pub least_nodes: usize,
}

impl Default for FollowLoad {
    fn default() -> Self {
        Self { empty_below: 0.5, take_back_above: 0.8, steady: Duration::from_secs(300), least_nodes: 1 }
    }
}

/// One node that is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeLoad {
    pub(crate) node: NodeId,
    /// Thousandths of a core, and bytes.
    pub(crate) has: (u64, u64),
    pub(crate) requested: (u64, u64),
    /// It takes tasks.
    pub(crate) active: bool,
}

/// What should be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// One more node can be spared.
    Empty,
    TakeBack(NodeId),
}

/// Since when the load has been low.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    low_since_ms: Option<u64>,
}

impl Follow {
    /// Looks at the nodes, those that may be taken back with `active` false.
    pub(crate) fn look(&mut self, bounds: &FollowLoad, nodes: &[NodeLoad], now_ms: u64) -> Step {
        if fullness(nodes, None) > bounds.take_back_above {
            self.low_since_ms = None;
            return to_take_back(nodes).map_or(Step::Nothing, Step::TakeBack);
        }
        let active = nodes.iter().filter(|it| it.active);
        let least = active.clone().min_by_key(|it| (it.requested, &it.node));
        let spare = least.filter(|_| active.count() > bounds.least_nodes.max(1));
        let low = spare.is_some_and(|it| can_go(bounds, nodes, &it.node));
        self.low_since_ms = low.then(|| self.low_since_ms.unwrap_or(now_ms));
        let steady_ms = u64::try_from(bounds.steady.as_millis()).unwrap_or(u64::MAX);
        match self.low_since_ms {
            Some(since_ms) if now_ms.saturating_sub(since_ms) >= steady_ms => Step::Empty,
            _ => Step::Nothing,
        }
    }

    /// It was acted on, or could not be: the time begins anew.
    pub(crate) fn again(&mut self) {
        self.low_since_ms = None;
    }
}

/// Whether the others would be requested by little enough without a node.
pub(crate) fn can_go(bounds: &FollowLoad, nodes: &[NodeLoad], node: &NodeId) -> bool {
    fullness(nodes, Some(node)) < bounds.empty_below
}

/// The node that gives most, if any may be taken back.
pub(crate) fn to_take_back(nodes: &[NodeLoad]) -> Option<NodeId> {
    let largest =
        nodes.iter().filter(|it| !it.active).max_by(|x, y| x.has.cmp(&y.has).then(y.node.cmp(&x.node)));
    largest.map(|it| it.node.clone())
}

/// Part of the CPU or of the memory of the nodes that take tasks, but for one, that all tasks request: the larger.
#[expect(clippy::cast_precision_loss, reason = "bytes of memory stay far below 2^52")]
fn fullness(nodes: &[NodeLoad], without: Option<&NodeId>) -> f64 {
    let part = |of: fn(&(u64, u64)) -> u64| {
        let left = nodes.iter().filter(|it| it.active && Some(&it.node) != without);
        let has: u64 = left.map(|it| of(&it.has)).sum();
        let requested: u64 = nodes.iter().map(|it| of(&it.requested)).sum();
        if requested == 0 { 0.0 } else { requested as f64 / has as f64 }
    };
    part(|it| it.0).max(part(|it| it.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, requested: u64, active: bool) -> NodeLoad {
        NodeLoad { node: name.parse().unwrap(), has: (1000, 1 << 30), requested: (requested, 0), active }
    }

    fn bounds() -> FollowLoad {
        FollowLoad { steady: Duration::from_secs(60), ..FollowLoad::default() }
    }

    #[test]
    fn a_node_is_spared_only_after_so_long_and_never_the_last() {
        let mut follow = Follow::default();
        let nodes = [node("a", 200, true), node("b", 100, true)];
        let steps: Vec<Step> = (0..=60).map(|second| follow.look(&bounds(), &nodes, second * 1000)).collect();
        assert!(steps[..60].iter().all(|step| *step == Step::Nothing) && steps[60] == Step::Empty);
        follow.again();
        assert_eq!(follow.look(&bounds(), &nodes, 61_000), Step::Nothing);
        let last = [node("a", 0, true), node("b", 0, false)];
        assert_eq!(follow.look(&bounds(), &last, 900_000), Step::Nothing);
        assert_eq!(follow.look(&bounds(), &last, 990_000), Step::Nothing);
        let two = FollowLoad { least_nodes: 2, ..bounds() };
        assert_eq!(follow.look(&two, &nodes, 990_000), Step::Nothing);
        assert_eq!(follow.look(&two, &nodes, 1_990_000), Step::Nothing);
    }

    #[test]
    fn a_short_low_spares_nothing() {
        let mut follow = Follow::default();
        for second in 0..600_u64 {
            let requested = if second % 50 == 0 { 600 } else { 100 };
            let nodes = [node("a", requested, true), node("b", 100, true)];
            assert_eq!(follow.look(&bounds(), &nodes, second * 1000), Step::Nothing);
        }
    }

    #[test]
    fn the_largest_is_taken_back_at_once_and_is_not_spared_again_by_the_same_load() {
        let mut follow = Follow::default();
        let large = NodeLoad { has: (4000, 1 << 30), ..node("c", 0, false) };
        let mut nodes = [node("a", 850, true), node("b", 0, false), large];
        assert_eq!(follow.look(&bounds(), &nodes, 0), Step::TakeBack("c".parse().unwrap()));
        nodes[2].active = true;
        for second in 1..1000 {
            assert_eq!(
                follow.look(&bounds(), &nodes[..1], second * 1000),
                Step::Nothing,
                "nothing to take back"
            );
        }
        nodes[2].has = (1000, 1 << 30);
        assert!(!can_go(&bounds(), &nodes, &nodes[2].node));
    }
}
