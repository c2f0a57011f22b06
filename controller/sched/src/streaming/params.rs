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

/// A job's throughput counts in the worth of all as its power of this: between the sum (1), which forgets
/// slow jobs, and the geometric mean (towards 0). Found by trying 0.3 to 1 in the simulator.
pub(crate) const WORTH_EXPONENT: f64 = 0.4;

/// A newcomer counts on `1 / (1 + NEWCOMER_PART * jobs)` of a link that is full: more would lead it to
/// links where others lose what it gains.
pub(crate) const NEWCOMER_PART: f64 = 2.0;

/// Rounds over all members in search of better seats.
pub(crate) const IMPROVEMENTS: usize = 2;

/// Members a round for which others' tasks are tried elsewhere.
pub(crate) const EVICTIONS: usize = 6;

/// Members a round for which the place is tried that they would take if nobody were in their way; a newcomer
/// comes on top.
pub(crate) const CLAIMS: usize = 6;

/// A move has to gain this many times what it costs: what it gains ends with the next arrival that asks
/// for another.
pub(crate) const MOVE_MARGIN: f64 = 3.0;

/// Seconds of items that another path of running flows counts as: packets overtake each other.
pub(crate) const REROUTE_S: f64 = 0.5;

/// The floor that holds whatever the operator allows: a flow at nothing is a dead connection.
pub(crate) const LEAST_FLOOR: f64 = 0.01;

/// Thousandths of a core that a task with work keeps of its node, whatever its document asks for: at nothing its job would
/// make no items, and no rate of it could be told.
pub(crate) const LEAST_CPU: i64 = 1;

/// A job gets less than its fair part only where others make at least this part more of what it gives up.
pub(crate) const FAIR_PREFERENCE: f64 = 0.1;
