//! What is known of one neighbour's link, from the probes that were sent and answered.
//!
//! Pure: times come in as arguments. A probe that is unanswered when the next one goes out is lost;
//! three lost in a row take the neighbour down, one answer brings it up.

use edgeloom_common::units::BitRate;
use std::collections::VecDeque;

/// Round trips that least and median are taken over.
const RTT_WINDOW: usize = 60;
/// Probes that the loss is taken over: 1% of loss needs some hundreds.
const LOSS_WINDOW: usize = 300;
/// Trains that the capacity is the median of.
const CAPACITY_WINDOW: usize = 5;
/// Round trips in a row that have to be longer than the least by so much before a queue is said to stand.
const QUEUED_TRIPS: usize = 3;
const QUEUED_US: u32 = 3_000;
/// Lost probes in a row that mean the neighbour is gone.
const MISSES_MAX: u32 = 3;

/// Whether the neighbour answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Neither an answer nor three lost probes yet.
    Unknown,
    Up,
    Down,
}

/// The record of one link.
#[derive(Debug)]
pub(super) struct Track {
    presence: Presence,
    /// The probe under way.
    outstanding: Option<u32>,
    next_sequence: u32,
    misses_in_a_row: u32,
    rtt_us: VecDeque<u32>,
    /// True stands for a lost probe.
    lost: VecDeque<bool>,
    capacities: VecDeque<BitRate>,
}

impl Default for Track {
    fn default() -> Self {
        Self {
            presence: Presence::Unknown,
            outstanding: None,
            next_sequence: 0,
            misses_in_a_row: 0,
            rtt_us: VecDeque::with_capacity(RTT_WINDOW),
            lost: VecDeque::with_capacity(LOSS_WINDOW),
            capacities: VecDeque::with_capacity(CAPACITY_WINDOW),
        }
    }
}

impl Track {
    /// Counts an unanswered probe as lost and gives the sequence number of the next one.
    pub(super) fn next_probe(&mut self) -> u32 {
        if self.outstanding.take().is_some() {
            push(&mut self.lost, true, LOSS_WINDOW);
            self.misses_in_a_row = self.misses_in_a_row.saturating_add(1);
            if self.misses_in_a_row >= MISSES_MAX {
                self.presence = Presence::Down;
            }
        }
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        self.outstanding = Some(sequence);
        sequence
    }

    /// Notes the answer to the probe under way; a late or foreign one is ignored.
    pub(super) fn answered(&mut self, sequence: u32, rtt_us: u32) {
        if self.outstanding != Some(sequence) {
            return;
        }
        self.outstanding = None;
        self.misses_in_a_row = 0;
        self.presence = Presence::Up;
        push(&mut self.lost, false, LOSS_WINDOW);
        push(&mut self.rtt_us, rtt_us, RTT_WINDOW);
    }

    pub(super) fn capacity_measured(&mut self, rate: BitRate) {
        push(&mut self.capacities, rate, CAPACITY_WINDOW);
    }

    pub(super) fn presence(&self) -> Presence {
        self.presence
    }

    pub(super) fn rtt_min_us(&self) -> Option<u32> {
        self.rtt_us.iter().copied().min()
    }

    pub(super) fn rtt_median_us(&self) -> Option<u32> {
        median(&self.rtt_us)
    }

    /// Whether packets wait on the way, and not for a moment only.
    pub(super) fn is_queued(&self) -> bool {
        let long = self.rtt_min_us().map_or(u32::MAX, |least| least.saturating_add(QUEUED_US));
        let recent = self.rtt_us.iter().rev().take(QUEUED_TRIPS);
        self.rtt_us.len() > QUEUED_TRIPS && recent.clone().all(|trip| *trip > long)
    }

    pub(super) fn capacity(&self) -> Option<BitRate> {
        median(&self.capacities)
    }

    /// How many trains the capacity is the median of.
    pub(super) fn trains_read(&self) -> usize {
        self.capacities.len()
    }

    pub(super) fn loss_permille(&self) -> u32 {
        let lost = self.lost.iter().filter(|lost| **lost).count();
        let share = (lost * 1000).checked_div(self.lost.len()).unwrap_or(0);
        u32::try_from(share).unwrap_or(1000)
    }
}

fn push<T>(window: &mut VecDeque<T>, value: T, bound: usize) {
    if window.len() == bound {
        window.pop_front();
    }
    window.push_back(value);
}

fn median<T: Copy + Ord>(window: &VecDeque<T>) -> Option<T> {
    let mut sorted: Vec<T> = window.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(track: &mut Track, probes: usize) {
        for _ in 0..probes {
            track.next_probe();
        }
    }

    #[test]
    fn three_lost_in_a_row_take_it_down_and_one_answer_brings_it_up() {
        let mut track = Track::default();
        miss(&mut track, 3);
        assert_eq!(track.presence(), Presence::Unknown);
        let fourth = track.next_probe();
        assert_eq!(track.presence(), Presence::Down);
        track.answered(fourth, 100);
        assert_eq!(track.presence(), Presence::Up);

        miss(&mut track, 3);
        let sequence = track.next_probe();
        assert_eq!(track.presence(), Presence::Down, "the one under way is not lost yet, three before are");
        track.answered(sequence, 100);
        assert_eq!(track.presence(), Presence::Up);
    }

    #[test]
    fn late_repeated_and_foreign_answers_do_not_count() {
        let mut track = Track::default();
        let late = track.next_probe();
        let current = track.next_probe();
        track.answered(late, 5);
        track.answered(current.wrapping_add(9), 5);
        assert_eq!((track.presence(), track.rtt_min_us()), (Presence::Unknown, None));
        track.answered(current, 40);
        track.answered(current, 5);
        assert_eq!(track.rtt_min_us(), Some(40));
        assert_eq!(track.loss_permille(), 500);
    }

    #[test]
    fn least_median_and_loss_cover_the_last_windows_only() {
        let mut track = Track::default();
        for rtt in 1..=200 {
            let sequence = track.next_probe();
            track.answered(sequence, rtt);
        }
        assert_eq!((track.rtt_min_us(), track.rtt_median_us()), (Some(141), Some(171)));
        miss(&mut track, 100);
        assert_eq!(track.loss_permille(), 99 * 1000 / 299);
        miss(&mut track, 300);
        assert_eq!(track.loss_permille(), 1000);
    }

    #[test]
    fn a_queue_stands_after_three_long_trips_in_a_row() {
        let mut track = Track::default();
        let trips =
            [(100, false), (9_000, false), (9_000, false), (9_000, true), (3_100, false), (9_000, false)];
        for (rtt, queued) in trips {
            let sequence = track.next_probe();
            track.answered(sequence, rtt);
            assert_eq!(track.is_queued(), queued, "{rtt}");
        }
    }

    #[test]
    fn capacity_is_the_median_of_the_last_five_trains() {
        let mut track = Track::default();
        assert_eq!(track.capacity(), None);
        [900, 20, 21, 19, 22, 500].into_iter().for_each(|rate| track.capacity_measured(BitRate(rate)));
        assert_eq!(track.capacity(), Some(BitRate(21)));
    }
}
