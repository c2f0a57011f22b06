//! What is known of one neighbour's link, from the probes that were sent and answered.
//!
//! Pure: times come in as arguments. A probe that is unanswered when the next one goes out is lost. A
//! neighbour that was there is asked again quickly when it does not answer, so that a dead link shows within
//! a second: four probes unanswered over [`SILENCE`] take it down. Back it is after several answers in a row,
//! the more the oftener it went: a link that flaps is not used. A neighbour whose kernel says that nobody
//! listens is there: its agent is being restarted, and what it forwards it goes on forwarding.

use edgeloom_common::units::BitRate;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Round trips that least and median are taken over.
const RTT_WINDOW: usize = 60;
/// Probes that the loss is taken over: 1% of loss needs some hundreds.
const LOSS_WINDOW: usize = 300;
/// Trains that the capacity is the median of.
const CAPACITY_WINDOW: usize = 5;
/// Round trips in a row that have to be longer than the least by so much before a queue is said to stand.
const QUEUED_TRIPS: usize = 3;
const QUEUED_US: u32 = 3_000;
/// Lost probes in a row that mean that a neighbour never heard of is not there: its agent may be starting.
const MISSES_MAX: u32 = 3;
/// A neighbour that did not answer for so long is asked again. Queues hold an answer up, but a late one counts.
const QUICK_AFTER: Duration = Duration::from_millis(200);
/// Silence of a neighbour that was there: it is gone, or the link is.
const SILENCE: Duration = Duration::from_millis(800);
/// The same of one whose kernel answers in the agent's place: it does so once a second at the most.
const SILENCE_OF_KERNEL: Duration = Duration::from_secs(3);
/// Probes that have to go unanswered in it: a program that was held up itself has sent fewer.
const UNANSWERED_MIN: usize = 4;
/// Answers in a row that bring a neighbour back; doubled each time that it went again soon.
const RETURNS_MIN: u32 = 3;
const RETURNS_MAX: u32 = 24;
/// A neighbour that answered so often before it went did not go again soon.
const STEADY: u32 = 60;

/// Whether the neighbour answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Neither an answer nor three lost probes yet.
    Unknown,
    Up,
    Down,
}

/// Answers to older probes than these are ignored.
const UNANSWERED_MAX: usize = 16;

/// The record of one link.
#[derive(Debug)]
pub(super) struct Track {
    presence: Presence,
    /// The probe that loss is counted by, until it is answered.
    outstanding: Option<u32>,
    next_sequence: u32,
    misses_in_a_row: u32,
    /// Sent since the last answer, the quick ones among them.
    unanswered: VecDeque<u32>,
    silent_since: Option<Instant>,
    /// The last word was the kernel's, that the agent's port is closed.
    closed: bool,
    last_sent: Option<Instant>,
    /// Answers since it came up, or in a row since it went down.
    answers: u32,
    /// Answers in a row that it takes to come up.
    returns: u32,
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
            unanswered: VecDeque::with_capacity(UNANSWERED_MAX),
            silent_since: None,
            closed: false,
            last_sent: None,
            answers: 0,
            returns: 1,
            rtt_us: VecDeque::with_capacity(RTT_WINDOW),
            lost: VecDeque::with_capacity(LOSS_WINDOW),
            capacities: VecDeque::with_capacity(CAPACITY_WINDOW),
        }
    }
}

impl Track {
    /// Counts an unanswered probe as lost and gives the sequence number of the next one.
    pub(super) fn next_probe(&mut self, now: Instant) -> u32 {
        if self.outstanding.take().is_some() {
            push(&mut self.lost, true, LOSS_WINDOW);
            self.misses_in_a_row = self.misses_in_a_row.saturating_add(1);
            match self.presence {
                Presence::Unknown if self.misses_in_a_row >= MISSES_MAX => self.presence = Presence::Down,
                Presence::Down => self.answers = 0,
                Presence::Unknown | Presence::Up => {}
            }
        }
        let sequence = self.quick_probe(now);
        self.outstanding = Some(sequence);
        sequence
    }

    /// The sequence number of a probe that asks whether the neighbour is there at all: no loss is counted by it.
    pub(super) fn quick_probe(&mut self, now: Instant) -> u32 {
        let silent = now.saturating_duration_since(*self.silent_since.get_or_insert(now));
        let most = if self.closed { SILENCE_OF_KERNEL } else { SILENCE };
        if self.presence == Presence::Up && most <= silent && UNANSWERED_MIN <= self.unanswered.len() {
            self.down();
        }
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        self.last_sent = Some(now);
        push(&mut self.unanswered, sequence, UNANSWERED_MAX);
        sequence
    }

    /// When a neighbour that should be there is asked again.
    pub(super) fn quick_at(&self) -> Option<Instant> {
        let asked = self.presence == Presence::Up && !self.unanswered.is_empty();
        self.last_sent.filter(|_| asked).map(|sent| sent + QUICK_AFTER)
    }

    /// The neighbour's kernel says that its agent does not run: nothing is known of the link's quality, but it
    /// carries. A neighbour that is not used is not used for that.
    pub(super) fn closed(&mut self) {
        if self.presence == Presence::Up {
            self.closed = true;
            self.outstanding = None;
            self.unanswered.clear();
            self.silent_since = None;
        }
    }

    /// The interface has no carrier: nothing has to be waited for.
    pub(super) fn carrier_lost(&mut self) {
        match self.presence {
            Presence::Up => self.down(),
            Presence::Unknown => self.presence = Presence::Down,
            Presence::Down => self.answers = 0,
        }
    }

    fn down(&mut self) {
        let soon = self.answers < STEADY && 1 < self.returns;
        self.returns = if soon { (self.returns * 2).min(RETURNS_MAX) } else { RETURNS_MIN };
        self.presence = Presence::Down;
        self.answers = 0;
    }

    /// Notes an answer to any probe since the last one answered. Each shows that the neighbour is there, but
    /// only the probe under way tells of the link's quality.
    pub(super) fn answered(&mut self, sequence: u32, rtt_us: u32) {
        if !self.unanswered.contains(&sequence) {
            return;
        }
        self.unanswered.clear();
        self.silent_since = None;
        self.closed = false;
        self.misses_in_a_row = 0;
        if self.outstanding == Some(sequence) {
            self.outstanding = None;
            self.answers = self.answers.saturating_add(1);
            push(&mut self.lost, false, LOSS_WINDOW);
            push(&mut self.rtt_us, rtt_us, RTT_WINDOW);
        }
        if self.presence != Presence::Up && self.returns <= self.answers {
            self.presence = Presence::Up;
            self.answers = 0;
        }
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

    /// A clock that goes on by hand.
    struct Clock(Instant);

    impl Clock {
        fn new() -> Self {
            Self(Instant::now())
        }

        fn after(&mut self, millis: u64) -> Instant {
            self.0 += Duration::from_millis(millis);
            self.0
        }
    }

    fn miss(track: &mut Track, probes: usize) {
        let now = Instant::now();
        for _ in 0..probes {
            track.next_probe(now);
        }
    }

    fn answer(track: &mut Track, clock: &mut Clock, probes: usize) {
        for _ in 0..probes {
            let sequence = track.next_probe(clock.after(1000));
            track.answered(sequence, 100);
        }
    }

    /// Goes silent until the neighbour is given up; the time since the first probe that was not answered.
    fn silence(track: &mut Track, clock: &mut Clock) -> Duration {
        track.next_probe(clock.after(1000));
        let begun = clock.0;
        while track.presence() == Presence::Up {
            assert_eq!(track.quick_at(), Some(clock.0 + QUICK_AFTER));
            track.quick_probe(clock.after(200));
        }
        assert_eq!(track.quick_at(), None, "what is gone is asked each second only");
        clock.0 - begun
    }

    #[test]
    fn a_neighbour_that_was_never_there_has_three_probes_time_and_comes_with_one_answer() {
        let mut track = Track::default();
        miss(&mut track, 3);
        assert_eq!((track.presence(), track.quick_at()), (Presence::Unknown, None));
        let fourth = track.next_probe(Instant::now());
        assert_eq!(track.presence(), Presence::Down);
        track.answered(fourth, 100);
        assert_eq!(track.presence(), Presence::Up);
    }

    #[test]
    fn silence_of_less_than_a_second_takes_it_down() {
        let (mut track, mut clock) = (Track::default(), Clock::new());
        answer(&mut track, &mut clock, 100);
        assert_eq!(silence(&mut track, &mut clock), SILENCE);
    }

    #[test]
    fn a_program_that_was_held_up_itself_gives_nobody_up() {
        let (mut track, mut clock) = (Track::default(), Clock::new());
        answer(&mut track, &mut clock, 1);
        for _ in 0..3 {
            track.next_probe(clock.after(5000));
            assert_eq!(track.presence(), Presence::Up);
        }
    }

    #[test]
    fn an_answer_that_waited_in_a_queue_shows_that_it_is_there() {
        let (mut track, mut clock) = (Track::default(), Clock::new());
        answer(&mut track, &mut clock, 1);
        let first = track.next_probe(clock.after(1000));
        let mut waiting = VecDeque::from([first]);
        for _ in 0..50 {
            waiting.push_back(track.quick_probe(clock.after(200)));
            if waiting.len() > 3 {
                track.answered(waiting.pop_front().unwrap(), 600_000);
            }
            assert_eq!(track.presence(), Presence::Up);
        }
    }

    #[test]
    fn it_comes_back_after_several_answers_and_the_more_the_oftener_it_went() {
        let (mut track, mut clock) = (Track::default(), Clock::new());
        answer(&mut track, &mut clock, 1);
        for needed in [3, 6, 12, 24, 24] {
            silence(&mut track, &mut clock);
            answer(&mut track, &mut clock, 2);
            track.next_probe(clock.after(1000));
            answer(&mut track, &mut clock, needed - 1);
            assert_eq!(track.presence(), Presence::Down, "a lost probe begins the row anew");
            answer(&mut track, &mut clock, 1);
            assert_eq!(track.presence(), Presence::Up, "{needed} in a row");
        }
        answer(&mut track, &mut clock, 60);
        silence(&mut track, &mut clock);
        answer(&mut track, &mut clock, 3);
        assert_eq!(track.presence(), Presence::Up, "a minute without a fault forgives");
    }

    #[test]
    fn a_neighbour_whose_agent_is_away_is_there_while_its_kernel_says_so() {
        let (mut track, mut clock) = (Track::default(), Clock::new());
        track.closed();
        assert_eq!(track.presence(), Presence::Unknown);
        answer(&mut track, &mut clock, 1);
        for _ in 0..100 {
            track.next_probe(clock.after(1000));
            track.quick_probe(clock.after(200));
            track.closed();
        }
        assert_eq!((track.presence(), track.loss_permille(), track.quick_at()), (Presence::Up, 0, None));
        assert_eq!(silence(&mut track, &mut clock), SILENCE_OF_KERNEL);
        track.closed();
        assert_eq!(track.presence(), Presence::Down);
        answer(&mut track, &mut clock, 3);
        assert_eq!(silence(&mut track, &mut clock), SILENCE);
    }

    #[test]
    fn without_carrier_it_is_gone_at_once_and_comes_back_like_any_other() {
        let (mut track, mut clock) = (Track::default(), Clock::new());
        answer(&mut track, &mut clock, 100);
        track.carrier_lost();
        answer(&mut track, &mut clock, 2);
        assert_eq!(track.presence(), Presence::Down);
        answer(&mut track, &mut clock, 1);
        assert_eq!(track.presence(), Presence::Up);
    }

    #[test]
    fn late_repeated_and_foreign_answers_do_not_count() {
        let (mut track, now) = (Track::default(), Instant::now());
        let late = track.next_probe(now);
        let current = track.next_probe(now);
        track.answered(current.wrapping_add(9), 5);
        assert_eq!((track.presence(), track.rtt_min_us()), (Presence::Unknown, None));
        track.answered(current, 40);
        track.answered(current, 5);
        track.answered(late, 5);
        assert_eq!((track.presence(), track.rtt_min_us()), (Presence::Up, Some(40)));
        assert_eq!(track.loss_permille(), 500);
    }

    #[test]
    fn least_median_and_loss_cover_the_last_windows_only() {
        let mut track = Track::default();
        for rtt in 1..=200 {
            let sequence = track.next_probe(Instant::now());
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
            let sequence = track.next_probe(Instant::now());
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
