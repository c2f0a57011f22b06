//! One run: a profile, a seed, a virtual clock that jumps from event to event.
//!
//! Events are arrivals and departures. At each, the scheduler is asked; between events every
//! running job makes items at its true throughput.

use edgeloom_common::ids::JobName;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::{Change, Link, Node, Policy, Profiles, Running, Snapshot, Waiting};
use edgeloom_sched::{Profile, check, decide};
use std::collections::BTreeMap;
use std::time::Instant;

use super::truth::throughputs;
use super::workload::{Arrival, arrivals};
use super::{Settings, cluster};
use crate::random::Draw;

/// What came of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// Per job: items finished / (departure - arrival).
    pub(super) items_per_s: Vec<f64>,
    pub(super) wait_s: Vec<f64>,
    /// Jobs never placed.
    pub(super) waiting_jobs: usize,
    /// Of each decision.
    pub(super) decision_ms: Vec<f64>,
}

/// A placed job.
struct Placed {
    started_s: f64,
    plan: JobPlan,
}

/// The state between two events.
struct World {
    nodes: Vec<Node>,
    links: Vec<Link>,
    seed: u64,
    now_s: f64,
    all: Vec<Arrival>,
    /// How many have arrived.
    arrived: usize,
    running: BTreeMap<usize, Placed>,
    waiting: Vec<usize>,
    items: Vec<f64>,
    outcome: Outcome,
}

/// Runs to the end: until nothing runs and nothing comes.
pub(super) fn run(settings: &Settings, profile: Profile, seed: u64) -> Outcome {
    let mut draw = Draw::new(seed);
    let (nodes, links) = cluster::cluster(settings, &mut draw);
    let all = arrivals(settings, &mut draw);
    let jobs = all.len();
    let outcome = Outcome { items_per_s: vec![0.0; jobs], wait_s: vec![0.0; jobs], ..Outcome::default() };
    let (running, waiting, items) = (BTreeMap::new(), Vec::new(), vec![0.0; jobs]);
    let mut world =
        World { nodes, links, seed, now_s: 0.0, all, arrived: 0, running, waiting, items, outcome };
    while let Some(next_s) = world.next_event() {
        world.advance(next_s);
        world.depart();
        world.arrive();
        world.place(profile);
    }
    for index in std::mem::take(&mut world.waiting) {
        world.outcome.wait_s[index] = world.now_s - world.all[index].at_s;
        world.outcome.waiting_jobs += 1;
    }
    world.outcome
}

impl World {
    fn ends_s(&self, index: usize, placed: &Placed) -> f64 {
        placed.started_s + self.all[index].duration_s
    }

    fn next_event(&self) -> Option<f64> {
        let departures = self.running.iter().map(|(index, placed)| self.ends_s(*index, placed));
        let arrival = self.all.get(self.arrived).map(|arrival| arrival.at_s);
        departures.chain(arrival).min_by(f64::total_cmp)
    }

    /// Lets the time pass: every running job makes items.
    fn advance(&mut self, to_s: f64) {
        let jobs: Vec<_> =
            self.running.iter().map(|(index, placed)| (&self.all[*index].job, &placed.plan)).collect();
        let rates = throughputs(&self.nodes, &self.links, &jobs);
        for (index, rate) in self.running.keys().zip(rates) {
            self.items[*index] += rate * (to_s - self.now_s);
        }
        self.now_s = to_s;
    }

    fn depart(&mut self) {
        let over: Vec<usize> = self
            .running
            .iter()
            .filter(|(index, placed)| self.ends_s(**index, placed) <= self.now_s)
            .map(|(index, _)| *index)
            .collect();
        for index in over {
            self.running.remove(&index);
            let stay_s = self.now_s - self.all[index].at_s;
            self.outcome.items_per_s[index] = self.items[index] / stay_s.max(f64::MIN_POSITIVE);
        }
    }

    fn arrive(&mut self) {
        while self.all.get(self.arrived).is_some_and(|arrival| arrival.at_s <= self.now_s) {
            self.waiting.push(self.arrived);
            self.arrived += 1;
        }
    }

    /// Asks the scheduler and takes what it says, once the checker has found nothing.
    fn place(&mut self, profile: Profile) {
        let snapshot = self.snapshot();
        let started = Instant::now();
        let decision = decide(profile, &snapshot);
        self.outcome.decision_ms.push(started.elapsed().as_secs_f64() * 1000.0);
        let violations = check(&decision, &snapshot);
        assert!(violations.is_empty(), "profile {} broke a rule: {violations:?}", profile.name());
        let by_name: BTreeMap<JobName, usize> =
            self.all.iter().enumerate().map(|(index, arrival)| (arrival.job.name.clone(), index)).collect();
        for plan in decision.plans {
            let index = by_name[&plan.job];
            if let Some(placed) = self.running.get_mut(&index) {
                placed.plan = plan;
                continue;
            }
            self.waiting.retain(|waiting| *waiting != index);
            self.outcome.wait_s[index] = self.now_s - self.all[index].at_s;
            self.running.insert(index, Placed { started_s: self.now_s, plan });
        }
    }

    fn snapshot(&self) -> Snapshot {
        let running = |(index, placed): (&usize, &Placed)| Running {
            job: self.all[*index].job.clone(),
            plan: placed.plan.clone(),
            profiles: Profiles::new(),
            change: Change::Placement,
        };
        let waiting = |index: &usize| Waiting {
            job: self.all[*index].job.clone(),
            since_ms: milliseconds(self.all[*index].at_s),
            missing_bytes: BTreeMap::new(),
            profiles: Profiles::new(),
        };
        Snapshot {
            now_ms: milliseconds(self.now_s),
            seed: self.seed,
            goodput: 1.0,
            link_share: 1.0,
            policy: Policy::default(),
            nodes: self.nodes.clone(),
            links: self.links.clone(),
            running: self.running.iter().map(running).collect(),
            waiting: self.waiting.iter().map(waiting).collect(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a run lasts minutes")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}
