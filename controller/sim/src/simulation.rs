//! One run: a profile, a workload, a virtual clock that jumps from event to event.
//!
//! Events are arrivals, departures and ends of pauses. At the first two the scheduler is asked; between
//! events every running job makes items at its true throughput. A job whose tasks move makes none for the
//! policy's `migration_s`, while its time goes on; new rates and routes cost nothing, as in the paper.

mod decision;
#[cfg(test)]
mod tests;

use edgeloom_common::ids::JobName;
use edgeloom_common::job::Job;
use edgeloom_sched::Profile;
use edgeloom_sched::plan::Unplaced;
use edgeloom_sched::scoring::Scoring;
use edgeloom_sched::snapshot::{Link, Node, Policy, Processors, Profiles, Running, Snapshot, Waiting};
use std::collections::BTreeMap;

use crate::SimError;
use crate::truth::{Ground, Load};

/// A job with the time it arrives and how long it stays once placed.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) at_s: f64,
    /// Infinite: for ever.
    pub(crate) duration_s: f64,
    pub(crate) job: Job,
}

/// What the jobs come to.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// As in [`Snapshot`].
    pub(crate) goodput: f64,
    pub(crate) link_share: f64,
    pub(crate) processors: Processors,
    pub(crate) policy: Policy,
    pub(crate) seed: u64,
}

/// What came of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Per job: items finished / (departure - arrival).
    pub(crate) items_per_s: Vec<f64>,
    pub(crate) wait_s: Vec<f64>,
    /// Jobs never placed.
    pub(crate) waiting_jobs: usize,
    /// Plans that moved tasks of a running job.
    pub(crate) migrations: usize,
    /// Plans that moved flows of a running job, but no task.
    pub(crate) reroutes: usize,
    /// Of each decision.
    pub(crate) decision_ms: Vec<f64>,
}

/// What is kept of a running job beside its entry in the snapshot.
#[derive(Debug)]
struct Placed {
    number: usize,
    ends_s: f64,
    paused_until_s: f64,
    load: Load,
}

/// The state between two events.
#[derive(Debug)]
pub(crate) struct Simulation<'a> {
    profile: Profile,
    ground: Ground,
    arrivals: &'a [Arrival],
    numbers: BTreeMap<&'a JobName, usize>,
    arrived: usize,
    now_s: f64,
    snapshot: Snapshot,
    /// One for each of `snapshot.running`, in the same order.
    placed: Vec<Placed>,
    items: Vec<f64>,
    unplaced: Vec<Unplaced>,
    outcome: Outcome,
}

impl<'a> Simulation<'a> {
    /// An empty cluster; the arrivals are in the order of their times, under different names.
    pub(crate) fn new(setting: Setting, arrivals: &'a [Arrival], profile: Profile) -> Self {
        let jobs = arrivals.len();
        let ground = Ground::new(&setting.nodes, &setting.links, setting.goodput, setting.processors);
        let snapshot = Snapshot {
            now_ms: 0,
            seed: setting.seed,
            goodput: setting.goodput,
            link_share: setting.link_share,
            processors: setting.processors,
            policy: setting.policy,
            scoring: Scoring::default(),
            nodes: setting.nodes,
            links: setting.links,
            running: Vec::new(),
            waiting: Vec::new(),
        };
        let numbers = arrivals.iter().enumerate().map(|(number, one)| (&one.job.name, number)).collect();
        let outcome = Outcome { items_per_s: vec![0.0; jobs], wait_s: vec![0.0; jobs], ..Outcome::default() };
        Self {
            profile,
            ground,
            arrivals,
            numbers,
            arrived: 0,
            now_s: 0.0,
            snapshot,
            placed: Vec::new(),
            items: vec![0.0; jobs],
            unplaced: Vec::new(),
            outcome,
        }
    }

    /// Goes on until nothing comes and nothing departs any more.
    ///
    /// # Errors
    /// A decision that breaks a hard rule.
    pub(crate) fn run(&mut self) -> Result<(), SimError> {
        while let Some(next_s) = self.next_event() {
            self.advance(next_s);
            let departed = self.depart();
            let arrived = self.arrive();
            if departed || arrived {
                self.place()?;
            }
        }
        Ok(())
    }

    /// What came of it; jobs that still wait have waited until now.
    pub(crate) fn into_outcome(mut self) -> Outcome {
        for waiting in &self.snapshot.waiting {
            let number = self.numbers[&waiting.job.name];
            self.outcome.wait_s[number] = self.now_s - self.arrivals[number].at_s;
            self.outcome.waiting_jobs += 1;
        }
        self.outcome
    }

    /// Jobs that run now with what they were given and their true items a second, pauses left aside.
    pub(crate) fn running(&self) -> Vec<(&Running, f64)> {
        let loads: Vec<&Load> = self.placed.iter().map(|placed| &placed.load).collect();
        self.snapshot.running.iter().zip(self.ground.throughputs(&loads)).collect()
    }

    /// Jobs that wait now, with the last decision's reasons.
    pub(crate) fn unplaced(&self) -> &[Unplaced] {
        &self.unplaced
    }

    fn next_event(&self) -> Option<f64> {
        let departures = self.placed.iter().map(|placed| placed.ends_s);
        let pauses = self.placed.iter().map(|placed| placed.paused_until_s).filter(|end| *end > self.now_s);
        let arrival = self.arrivals.get(self.arrived).map(|arrival| arrival.at_s);
        departures.chain(pauses).chain(arrival).filter(|at| at.is_finite()).min_by(f64::total_cmp)
    }

    /// Lets the time pass: every running job that is not paused makes items.
    fn advance(&mut self, to_s: f64) {
        let active: Vec<&Placed> =
            self.placed.iter().filter(|placed| placed.paused_until_s <= self.now_s).collect();
        let loads: Vec<&Load> = active.iter().map(|placed| &placed.load).collect();
        for (placed, rate) in active.iter().zip(self.ground.throughputs(&loads)) {
            self.items[placed.number] += rate * (to_s - self.now_s);
        }
        self.now_s = to_s;
        self.snapshot.now_ms = milliseconds(to_s);
    }

    fn depart(&mut self) -> bool {
        let before = self.placed.len();
        for at in (0..before).rev().filter(|at| self.placed[*at].ends_s <= self.now_s).collect::<Vec<_>>() {
            let Placed { number, .. } = self.placed.remove(at);
            self.snapshot.running.remove(at);
            let stay_s = self.now_s - self.arrivals[number].at_s;
            self.outcome.items_per_s[number] = self.items[number] / stay_s.max(f64::MIN_POSITIVE);
        }
        self.placed.len() < before
    }

    fn arrive(&mut self) -> bool {
        let due = self.arrivals[self.arrived..].iter().take_while(|arrival| arrival.at_s <= self.now_s);
        let waiting = due.map(|arrival| Waiting {
            job: arrival.job.clone(),
            since_ms: milliseconds(arrival.at_s),
            images: BTreeMap::new(),
            profiles: Profiles::new(),
        });
        let before = self.snapshot.waiting.len();
        self.snapshot.waiting.extend(waiting);
        let arrived = self.snapshot.waiting.len() - before;
        self.arrived += arrived;
        arrived > 0
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a run lasts minutes")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}
