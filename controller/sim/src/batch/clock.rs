//! One run: decisions at heartbeats, containers that leave when they are done.
//!
//! What is free is added up here, and a decision that takes more than there is ends the run.

use edgeloom_sched::batch::{Batch, Machine, Method, Request, place};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::trace::{Arrival, float, total};
use super::{Scenario, Settings};

/// What came of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// Containers that found a machine.
    pub(super) scheduled: usize,
    /// Mean of CPU and memory in use over what there is: after the decision, or over the time until the last
    /// arrival, or until four fifths of the containers are done if all came at the start.
    pub(super) utilisation: f64,
    /// From arrival to end, of those that ended, in the order of arrival; none where it never ran.
    pub(super) completion_s: Vec<Option<f64>>,
    /// Of each decision.
    pub(super) decision_ms: Vec<f64>,
}

/// The decision took more of a machine than there was, at this time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Overbooked {
    pub(super) at_s: f64,
    pub(super) machine: usize,
}

pub(super) struct Clock<'a> {
    settings: &'a Settings,
    arrivals: &'a [Arrival],
    method: Method,
    machines: Vec<Machine>,
    has: [f64; 2],
    /// Arrivals by index, in order.
    waiting: Vec<usize>,
    /// Milliseconds when it ends, arrival, machine.
    running: BinaryHeap<Reverse<(u64, usize, usize)>>,
    used: [f64; 2],
    /// Integral of the used part over seconds, and since when.
    used_s: f64,
    since_s: f64,
    /// The end of the time that utilisation is looked at.
    until_s: f64,
    done: usize,
    /// The last decision placed something, so the next may as well.
    again: bool,
    outcome: Outcome,
}

impl<'a> Clock<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        machines: Vec<Machine>,
        arrivals: &'a [Arrival],
        method: Method,
    ) -> Self {
        let has = total(&machines);
        let used = std::array::from_fn(|at| {
            machines.iter().map(|machine| float(machine.capacity[at] - machine.free[at])).sum()
        });
        let last_s = arrivals.last().map_or(0.0, |last| last.at_s);
        let outcome = Outcome { completion_s: vec![None; arrivals.len()], ..Outcome::default() };
        Self {
            settings,
            arrivals,
            method,
            machines,
            has,
            waiting: Vec::new(),
            running: BinaryHeap::new(),
            used,
            used_s: 0.0,
            since_s: 0.0,
            until_s: if settings.scenario == Scenario::Drain { f64::INFINITY } else { last_s },
            done: 0,
            again: false,
            outcome,
        }
    }

    pub(super) fn run(mut self) -> Result<Outcome, Overbooked> {
        if self.settings.scenario == Scenario::OneShot {
            self.waiting = (0..self.arrivals.len()).collect();
            self.decide(0.0)?;
            self.outcome.utilisation = self.part();
            return Ok(self.outcome);
        }
        let mut arrived = 0;
        let mut now_s = 0.0;
        while arrived < self.arrivals.len() || !self.waiting.is_empty() || !self.running.is_empty() {
            let left = self.leave(now_s);
            let before = arrived;
            while self.arrivals.get(arrived).is_some_and(|arrival| self.comes_s(arrival) <= now_s) {
                self.waiting.push(arrived);
                arrived += 1;
            }
            if (left || arrived > before || self.again) && !self.waiting.is_empty() {
                self.decide(now_s)?;
            }
            // What still waits while nothing runs and nothing comes never fits.
            if self.running.is_empty() && arrived == self.arrivals.len() {
                break;
            }
            now_s = self.next_s(now_s, arrived);
        }
        self.outcome.utilisation = self.used_s / self.until_s.min(self.since_s).max(f64::MIN_POSITIVE);
        Ok(self.outcome)
    }

    fn comes_s(&self, arrival: &Arrival) -> f64 {
        if self.settings.scenario == Scenario::Drain { 0.0 } else { arrival.at_s }
    }

    /// The first heartbeat at or after the next event.
    fn next_s(&self, now_s: f64, arrived: usize) -> f64 {
        let end_s = self.running.peek().map(|Reverse((at_ms, ..))| seconds(*at_ms));
        let next = self.arrivals.get(arrived).map(|arrival| self.comes_s(arrival));
        let event_s = end_s.into_iter().chain(next).fold(f64::INFINITY, f64::min);
        let beat = self.settings.heartbeat_s;
        let next_s = now_s + beat;
        if self.again { next_s } else { ((event_s / beat).ceil() * beat).max(next_s) }
    }

    /// Takes those off that are done; whether any was.
    fn leave(&mut self, now_s: f64) -> bool {
        let mut any = false;
        while let Some(Reverse((at_ms, arrival, machine))) = self.running.peek().copied() {
            if seconds(at_ms) > now_s {
                break;
            }
            self.running.pop();
            self.measure(seconds(at_ms));
            self.change(arrival, machine, 1);
            self.done += 1;
            if self.done * 5 >= self.arrivals.len() * 4 && self.until_s.is_infinite() {
                self.until_s = seconds(at_ms);
            }
            any = true;
        }
        any
    }

    fn decide(&mut self, now_s: f64) -> Result<(), Overbooked> {
        let request = |at: &usize| {
            let arrival = &self.arrivals[*at];
            Request { waited_s: now_s - self.comes_s(arrival), ..arrival.request.clone() }
        };
        let requests = self.waiting.iter().map(request).collect();
        let batch = Batch { machines: std::mem::take(&mut self.machines), requests };
        let started = Instant::now();
        let answer = place(&batch, self.method);
        self.outcome.decision_ms.push(started.elapsed().as_secs_f64() * 1e3);
        self.machines = batch.machines;
        self.measure(now_s);
        let waiting = std::mem::take(&mut self.waiting);
        let before = self.outcome.scheduled;
        for (arrival, place) in waiting.into_iter().zip(answer.places) {
            let Ok(machine) = place else {
                self.waiting.push(arrival);
                continue;
            };
            self.change(arrival, machine, -1);
            if self.machines[machine].free.iter().any(|free| *free < 0) {
                return Err(Overbooked { at_s: now_s, machine });
            }
            let Arrival { duration_s, .. } = self.arrivals[arrival];
            let waited_s = now_s - self.comes_s(&self.arrivals[arrival]);
            self.outcome.completion_s[arrival] = Some(waited_s + duration_s);
            self.outcome.scheduled += 1;
            self.running.push(Reverse((milliseconds(now_s + duration_s), arrival, machine)));
        }
        self.again = self.outcome.scheduled > before && !self.waiting.is_empty();
        Ok(())
    }

    fn change(&mut self, arrival: usize, machine: usize, sign: i64) {
        let demand = self.arrivals[arrival].request.demand;
        for (free, demand) in self.machines[machine].free.iter_mut().zip(demand) {
            *free += sign * demand;
        }
        for (used, demand) in self.used.iter_mut().zip(demand) {
            *used -= float(sign * demand);
        }
    }

    fn part(&self) -> f64 {
        f64::midpoint(self.used[0] / self.has[0].max(1.0), self.used[1] / self.has[1].max(1.0))
    }

    /// Adds up what was in use until now.
    fn measure(&mut self, now_s: f64) {
        let until_s = now_s.min(self.until_s);
        if until_s > self.since_s {
            self.used_s += self.part() * (until_s - self.since_s);
            self.since_s = until_s;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a run lasts far less than 2^52 milliseconds")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are positive")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3).ceil() as u64
}
