//! Placement of a job's tasks one by one: filter nodes, rate those left, take the best.
//!
//! Tasks come in topological order. What one takes, pulls and forbids counts for those after it. How nodes
//! are rated is the profile's own; the walk is the same for all.

use crate::case::{Case, Placed, Stuck};
use crate::filter::Fit;
use crate::images::{JobImages, Stores};
use crate::ledger::Ledger;

/// A node's rating for one task: the largest score wins, then the least tie, then the first name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rating {
    pub(crate) node: usize,
    pub(crate) score: f64,
    pub(crate) tie: u64,
}

/// One task before the nodes that can take it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) case: &'a Case<'a>,
    /// Others' holdings and those of the job's tasks placed so far.
    pub(crate) ledger: &'a Ledger,
    pub(crate) stores: &'a Stores,
    pub(crate) images: &'a JobImages<'a>,
    pub(crate) vertex: usize,
    /// Nodes that are not refused, by index.
    pub(crate) open: &'a [usize],
}

/// How a profile rates.
pub(crate) trait Judge {
    /// Why a node that could take the task is refused all the same.
    fn refusal(&self, _turn: &Turn<'_>, _node: usize) -> Option<String> {
        None
    }

    /// A rating for each open node.
    fn rate(&self, turn: &Turn<'_>) -> Vec<Rating>;

    /// What made the rating, for people.
    fn words(&self, turn: &Turn<'_>, rating: &Rating) -> String;
}

/// Places the whole job, or says which task found no node.
pub(crate) fn one_by_one(
    case: &Case<'_>,
    images: &JobImages<'_>,
    stores: &Stores,
    judge: &dyn Judge,
) -> Result<Placed, Stuck> {
    let (mut ledger, mut stores) = (case.ledger.clone(), stores.clone());
    let mut placed = Placed { nodes: Vec::new(), reasons: Vec::new() };
    for vertex in 0..case.graph.vertices.len() {
        let mut refusals = case.refusals(vertex, &ledger, Fit::AtLeast);
        for (node, text) in case.unreached(vertex, &placed.nodes) {
            refusals[node].get_or_insert(text);
        }
        let turn = Turn { case, ledger: &ledger, stores: &stores, images, vertex, open: &[] };
        for (node, refusal) in refusals.iter_mut().enumerate().filter(|(_, refusal)| refusal.is_none()) {
            *refusal = judge.refusal(&turn, node);
        }
        let open: Vec<usize> = (0..refusals.len()).filter(|node| refusals[*node].is_none()).collect();
        let turn = Turn { open: &open, ..turn };
        let mut ratings = judge.rate(&turn);
        ratings.sort_by(|x, y| y.score.total_cmp(&x.score).then(x.tie.cmp(&y.tie)).then(x.node.cmp(&y.node)));
        let Some(best) = ratings.first() else {
            let refusals = refusals.into_iter().map(Option::unwrap_or_default).collect();
            return Err(Stuck { vertex, refusals });
        };
        placed.reasons.push(reason(&turn, &ratings, (&refusals, judge)));
        let node = best.node;
        ledger.hold(case.graph, vertex, node);
        stores.pull(images, vertex, node);
        placed.nodes.push(node);
    }
    Ok(placed)
}

/// Why the best node, what the next has, and why others are refused.
fn reason(turn: &Turn<'_>, ratings: &[Rating], (refusals, judge): (&[Option<String>], &dyn Judge)) -> String {
    let world = turn.case.world;
    let vertex = &turn.case.graph.vertices[turn.vertex];
    let best = &ratings[0];
    let mut line = format!("{} -> {}", vertex.name, world.name(best.node));
    if turn.case.graph.fixed(turn.vertex).is_some() {
        line.push_str(": the source's own node");
        return line;
    }
    line.push_str(&format!(": {}", judge.words(turn, best)));
    if let Some(next) = ratings.get(1) {
        line.push_str(&format!("; next {}: {}", world.name(next.node), judge.words(turn, next)));
    }
    for (node, refusal) in refusals.iter().enumerate() {
        if let Some(text) = refusal {
            line.push_str(&format!("; {} refused: {text}", world.name(node)));
        }
    }
    line
}
