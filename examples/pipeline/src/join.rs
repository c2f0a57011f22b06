//! Joins upstreams by item number: a stage with several inputs works on an item when every input has it.
//!
//! The number of an item holds who made it and a count. Items of one maker are matched by number; items
//! of different makers, which know nothing of each other, are paired as they come.
//! Item numbers rise on each connection, so of two different numbers at the front the lower one can
//! never be completed and is dropped. Each upstream has a short queue: a full one holds back its
//! reader and so the sender. Losing items on one branch could then block for good (the source waits for
//! the full branch, the join for the empty one), so after a long silence the fullest queue's front is dropped.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Items that wait for each upstream at most.
const QUEUE_MAX: usize = 2;

/// The least silence after which an item is given up.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// Bits of an item's number that count; the ones above say who made it.
const COUNT_BITS: u32 = 52;

/// The number of an item that `maker` made as its `count`-th.
pub(crate) fn number(maker: &str, count: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    maker.hash(&mut hasher);
    (hasher.finish() << COUNT_BITS) | (count & ((1 << COUNT_BITS) - 1))
}

/// The queues of one stage.
#[derive(Debug)]
pub(crate) struct Join {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    upstreams: Vec<Upstream>,
    /// Silence that is borne before an item is given up: several times what joins usually take.
    patience: Duration,
    last_join: Instant,
}

#[derive(Debug, Default)]
struct Upstream {
    queue: VecDeque<u64>,
    /// Counts the connections: an older one's reader is told to end.
    connection: u64,
}

impl Join {
    /// Queues for so many upstreams.
    pub(crate) fn new(upstreams: usize) -> Self {
        let upstreams = (0..upstreams).map(|_| Upstream::default()).collect();
        let state = State { upstreams, patience: SILENCE_MIN, last_join: Instant::now() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// No invariant spans a panic while the lock is held, so a poisoned state is still whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection of an upstream takes over from any older one.
    pub(crate) fn connect(&self, upstream: usize) -> u64 {
        let mut state = self.lock();
        state.upstreams[upstream].connection += 1;
        self.changed.notify_all();
        state.upstreams[upstream].connection
    }

    /// Adds an item; waits while the queue is full. False: a newer connection has taken over.
    pub(crate) fn offer(&self, upstream: usize, connection: u64, number: u64) -> bool {
        let full = |state: &mut State| {
            let upstream = &state.upstreams[upstream];
            upstream.connection == connection && upstream.queue.len() >= QUEUE_MAX
        };
        let mut state = self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if state.upstreams[upstream].connection != connection {
            return false;
        }
        state.upstreams[upstream].queue.push_back(number);
        self.changed.notify_all();
        true
    }

    /// Waits for the next item that every upstream has delivered.
    pub(crate) fn next(&self) -> u64 {
        let mut state = self.lock();
        loop {
            let joined = state.join();
            // Whether joined or only dropped, room was made.
            self.changed.notify_all();
            if let Some(number) = joined {
                return number;
            }
            let patience = state.patience;
            let (woken, timeout) =
                self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() {
                state.give_up_one();
            }
        }
    }
}

impl State {
    /// Takes the lowest number that all fronts share, dropping what can't be completed.
    fn join(&mut self) -> Option<u64> {
        loop {
            let fronts: Option<Vec<u64>> =
                self.upstreams.iter().map(|one| one.queue.front().copied()).collect();
            let fronts = fronts?;
            let highest = fronts.iter().copied().max()?;
            let one_maker = fronts.iter().all(|number| number >> COUNT_BITS == highest >> COUNT_BITS);
            let mut complete = true;
            for upstream in &mut self.upstreams {
                if one_maker && upstream.queue.front() != Some(&highest) {
                    upstream.queue.pop_front();
                    complete = false;
                }
            }
            if complete {
                for upstream in &mut self.upstreams {
                    upstream.queue.pop_front();
                }
                self.patience = SILENCE_MIN.max(self.last_join.elapsed() * 4);
                self.last_join = Instant::now();
                return Some(highest);
            }
        }
    }

    /// After a silence: drops the front of every full queue, if another is empty. The patience doubles,
    /// so that a branch that is only slow catches up in the end.
    fn give_up_one(&mut self) {
        if self.upstreams.iter().all(|one| !one.queue.is_empty()) {
            return;
        }
        for upstream in self.upstreams.iter_mut().filter(|one| one.queue.len() >= QUEUE_MAX) {
            upstream.queue.pop_front();
        }
        self.patience = self.patience.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_upstream_lost_is_dropped_at_the_others() {
        let join = Join::new(2);
        let (left, right) = (join.connect(0), join.connect(1));
        for (upstream, connection, number) in [(0, left, 1), (1, right, 2), (0, left, 2), (1, right, 3)] {
            assert!(join.offer(upstream, connection, number));
        }
        assert_eq!(join.next(), 2);
        assert!(join.offer(0, left, 3));
        assert_eq!(join.next(), 3);
    }

    #[test]
    fn items_of_different_makers_are_paired_as_they_come() {
        let join = Join::new(2);
        let (left, right) = (join.connect(0), join.connect(1));
        let (near, far) = (number("near", 7), number("far", 900));
        assert!(join.offer(0, left, near) && join.offer(1, right, far));
        assert_eq!(join.next(), near.max(far));
        assert!(join.lock().upstreams.iter().all(|one| one.queue.is_empty()));
    }

    #[test]
    fn a_newer_connection_takes_over() {
        let join = Join::new(1);
        let old = join.connect(0);
        assert!(join.offer(0, old, 1));
        let new = join.connect(0);
        assert!(!join.offer(0, old, 2));
        assert!(join.offer(0, new, 5));
        assert_eq!((join.next(), join.next()), (1, 5));
    }

    #[test]
    fn a_branch_that_lost_everything_does_not_block_for_good() {
        let join = Join::new(2);
        let (_, right) = (join.connect(0), join.connect(1));
        assert!(join.offer(1, right, 1) && join.offer(1, right, 2));
        join.lock().give_up_one();
        assert_eq!(join.lock().upstreams[1].queue, [2]);
        assert_eq!(join.lock().patience, SILENCE_MIN * 2);
    }
}
