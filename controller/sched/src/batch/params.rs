//! The room's constants.

/// Units that one heartbeat of ECSched decides on, those that wait longest: `K` of the paper, which gives no value.
/// With 5000 machines so many take less than a second.
pub(super) const HEARTBEAT_MOST: usize = 3000;

/// How often a heartbeat of ECSched solves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Once, as printed: at most one container a machine.
    One,
    /// Until nothing more is placed.
    All,
}

/// Weight of the imbalance of what a machine has left, beside its size: room in one resource without room in the
/// others serves nobody. Found by trying 0.5 to 4 on random batches.
pub(super) const IMBALANCE: f64 = 2.0;

/// Looks at a pair of units in search of room for one that waits, for each that waits: the bound on the improvement's
/// time.
pub(super) const LOOKS_EACH: usize = 20_000;

/// Looks in all: about five milliseconds.
pub(super) const LOOKS: usize = 1_000_000;

/// Units that wait for which improvement is tried.
pub(super) const IMPROVED: usize = 200;

/// Seven times this many seconds of waiting halve what a container's size counts for, unless the operator says otherwise. With
/// less the order comes nearer to that of arrival, with more to that of sizes: `edgeloom sim batch` shows what either costs.
pub(super) const AGEING_S: f64 = 10.0;

/// Seconds of waiting after which a container may claim a machine, unless the operator says otherwise: nobody waits for ever.
/// Patience of three hours takes an eighth off the longest completions and costs the mean 5%.
pub(super) const PATIENCE_S: f64 = 21_600.0;

/// Part of the machines that may be claimed at a time, one at least.
pub(super) const CLAIMED_PART: f64 = 0.1;
