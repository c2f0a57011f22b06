//! The room's constants.

use crate::filter::Fit;

/// How Algorithm 1 counts the work of tasks of one job on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colocated {
    /// `C_i / PS_j`, as Algorithm 1 is printed.
    Apart,
    /// `sum C_i / PS_j` over the job's tasks on the node, as in the paper's example.
    Summed,
}

/// Algorithm 1's choices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) fit: Fit,
    pub(crate) colocated: Colocated,
}

/// Algorithm 1 as the paper's profiles use it.
pub(crate) const PAPER: Allocation = Allocation { fit: Fit::AtLeast, colocated: Colocated::Apart };

/// Algorithm 1 with the printed test `R_avail > R_req`.
pub(crate) const PRINTED: Allocation = Allocation { fit: Fit::Strict, colocated: Colocated::Apart };

/// Algorithm 1 as a start of the search.
pub(crate) const SUMMED: Allocation = Allocation { fit: Fit::AtLeast, colocated: Colocated::Summed };

/// Pools with less than this left are closed: a flow at less would time out rather than work.
pub(crate) const LEAST_RATE_BPS: f64 = 1000.0;

/// What a job without work, flows and source rate is predicted to do: a number, since infinity is none in
/// JSON.
pub(crate) const NO_LIMIT_ITEMS_PER_S: f64 = 1e9;

/// Placements whose predicted throughput differs by at most this part count as equal: fewer image bytes and
/// less traffic decide between them.
pub(crate) const EQUAL: f64 = 0.005;

/// Part of a link's share that a job's needs may fill before a longer path is looked for: what is left
/// keeps queues short and absorbs bursts.
pub(crate) const HEADROOM: f64 = 0.9;

/// Moves of the placement search that count as a gain.
pub(crate) const LEAST_GAIN: f64 = 1e-6;

/// Rounds of the placement search, each over all tasks and nodes.
pub(crate) const ROUNDS: usize = 12;

/// A running job's rates are raised only for at least this part more throughput: each raise is a change on
/// the nodes.
pub(crate) const LEAST_RAISE: f64 = 0.01;
