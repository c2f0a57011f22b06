//! Minutes of virtual time: noise, a halved link, a link that flaps, heat, heavier work, a lazy source.

use super::steady::Steady;
use super::*;
use edgeloom_common::ids::FlowId;

/// One job over one link, what it has to work with, and a planner that gives it what the link carries.
struct Virtual {
    replanner: Replanner,
    now_s: u64,
    /// Wire rates in bits a second: what the link carries, what is known of it, what is reserved.
    carries: f64,
    known: Steady,
    reserved: f64,
    speed: f64,
    known_speed: Steady,
    /// Reference-core seconds an item, real and as planned.
    work_s: f64,
    planned_s: f64,
    /// Items a second that the source makes.
    source: f64,
    predicted: f64,
    replanned_at_s: Vec<u64>,
    told: Vec<Finding>,
    noise: u64,
}

const CAPACITY: f64 = 10e6;
/// Bits an item on the wire.
const ITEM: f64 = 1e6;
const USABLE: f64 = 0.95;

fn job() -> JobName {
    "j".parse().unwrap()
}

fn node(text: &str) -> NodeId {
    text.parse().unwrap()
}

impl Virtual {
    fn new() -> Self {
        let mut world = Self {
            replanner: Replanner::default(),
            now_s: 1_000,
            carries: CAPACITY,
            known: Steady::new(CAPACITY),
            reserved: CAPACITY * USABLE,
            speed: 1.0,
            known_speed: Steady::new(1.0),
            work_s: 0.05,
            planned_s: 0.05,
            source: 1e9,
            predicted: CAPACITY * USABLE / ITEM,
            replanned_at_s: Vec::new(),
            told: Vec::new(),
            noise: 1,
        };
        let seen = world.seen(None);
        world.replanner.begin(&job(), &seen);
        world
    }

    fn predict(&self) -> f64 {
        (self.reserved / ITEM).min(self.known_speed.told() / self.planned_s)
    }

    fn achieved(&self) -> f64 {
        (self.carries.min(self.reserved) / ITEM).min(self.speed / self.work_s).min(self.source)
    }

    fn seen(&self, measured: Option<f64>) -> Seen {
        let measured_bps = measured.unwrap_or(0.0) * ITEM;
        let flow = FlowSeen {
            id: FlowId { job: job(), from: "source".parse().unwrap(), to: "a".parse().unwrap() },
            path: vec![node("n1"), node("n2")],
            given_bps: self.reserved,
            measured_bps,
            backlogged: 0.0,
        };
        let cores_used = measured.map(|items| (items * self.work_s / self.speed).min(1.0));
        let task = TaskSeen {
            name: "a".parse().unwrap(),
            node: node("n2"),
            cores_used,
            cores_limit: 1.0,
            work_s: self.planned_s,
        };
        let bound = if self.reserved / ITEM < self.known_speed.told() / self.planned_s {
            Bound::Network
        } else {
            Bound::Compute
        };
        let usable_bps = self.known.told() * USABLE;
        let link = LinkSeen { usable_bps, reserved_bps: self.reserved, queued: false };
        Seen {
            now_ms: self.now_s * 1000,
            jobs: vec![JobSeen {
                name: job(),
                predicted: self.predicted,
                bound,
                measured,
                flows: vec![flow],
                tasks: vec![task],
            }],
            links: BTreeMap::from([((node("n1"), node("n2")), link)]),
            speeds: BTreeMap::from([(node("n2"), self.known_speed.told())]),
        }
    }

    /// A share between -1 and 1, the same ones in every run (xorshift64).
    fn random(&mut self) -> f64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        #[expect(clippy::cast_precision_loss, reason = "a random share")]
        let share = (self.noise >> 11) as f64 / (1_u64 << 53) as f64;
        share.mul_add(2.0, -1.0)
    }

    /// A second passes; `factor` is what the job achieves of what it could.
    fn second(&mut self, factor: f64) {
        self.now_s += 1;
        let now_ms = self.now_s * 1000;
        self.known.look(self.carries, now_ms);
        self.known_speed.look(self.speed, now_ms);
        let seen = self.seen(Some(self.achieved() * factor));
        for finding in self.replanner.look(&seen) {
            let Finding::Replan { cause, jobs } = finding else {
                self.told.push(finding);
                continue;
            };
            self.replanned_at_s.push(self.now_s);
            if let Cause::Task { measured_s, .. } = &cause {
                self.planned_s = *measured_s;
            }
            self.reserved = self.known.told() * USABLE;
            self.predicted = self.predict();
            let after = self.seen(None);
            self.replanner.acted(&cause, &jobs, &jobs, &after);
        }
    }

    fn pass(&mut self, seconds: u64) {
        (0..seconds).for_each(|_| self.second(1.0));
    }
}

#[test]
fn ten_minutes_of_noise_lead_to_no_replan() {
    let mut world = Virtual::new();
    for _ in 0..600 {
        let factor = 0.2_f64.mul_add(world.random(), 1.0);
        world.second(factor);
    }
    assert!(world.replanned_at_s.is_empty() && world.told.is_empty(), "{:?}", world.told);
}

#[test]
fn a_halved_link_leads_to_exactly_one_replan_soon() {
    let mut world = Virtual::new();
    world.pass(60);
    let halved_s = world.now_s;
    world.carries = CAPACITY / 2.0;
    world.pass(700);
    assert_eq!(world.replanned_at_s.len(), 1, "{:?}", world.replanned_at_s);
    assert!(world.replanned_at_s[0] - halved_s <= 30);
    assert!((world.predicted - 4.75).abs() < 1e-9);
}

#[test]
fn what_a_halved_link_carries_may_be_found_bit_by_bit() {
    let mut world = Virtual::new();
    world.carries = CAPACITY * 0.6;
    world.pass(90);
    world.carries = CAPACITY * 0.5;
    world.pass(600);
    assert_eq!(world.replanned_at_s.len(), 1, "{:?}", world.replanned_at_s);
    world.carries = CAPACITY * 0.25;
    world.pass(60);
    assert_eq!(world.replanned_at_s.len(), 2, "half as much again is another matter");
}

#[test]
fn a_link_that_flaps_leads_to_at_most_two_replans() {
    for low in [0.0, CAPACITY / 2.0] {
        let mut world = Virtual::new();
        for second in 0..600 {
            world.carries = if second / 20 % 2 == 0 { low } else { CAPACITY };
            world.second(1.0);
        }
        assert!((1..=2).contains(&world.replanned_at_s.len()), "{:?}", world.replanned_at_s);
    }
}

#[test]
fn a_link_that_comes_back_for_good_is_used_again() {
    let mut world = Virtual::new();
    world.carries = CAPACITY / 2.0;
    world.pass(120);
    world.carries = CAPACITY;
    world.pass(600);
    assert_eq!(world.replanned_at_s.len(), 2, "{:?}", world.replanned_at_s);
    assert!((world.predicted - 9.5).abs() < 1e-9);
}

#[test]
fn heat_leads_to_a_replan_once_predictions_change_by_more_than_the_share() {
    let mut world = Virtual::new();
    world.speed = 0.9;
    world.pass(300);
    assert!(world.replanned_at_s.is_empty(), "9.5 items a second need no more than 0.475");
    world.speed = 0.3;
    world.pass(300);
    assert_eq!(world.replanned_at_s.len(), 1);
    assert!((world.predicted - 6.0).abs() < 1e-9);
}

#[test]
fn heavier_work_is_found_and_planned_with() {
    let mut world = Virtual::new();
    world.work_s = 0.2;
    world.pass(300);
    assert_eq!(world.replanned_at_s.len(), 1);
    assert!((world.planned_s - 0.2).abs() < 1e-9 && (world.predicted - 5.0).abs() < 1e-9);
    assert!(matches!(&world.told[0], Finding::Shortfall { short: Short::Task(_), .. }));
    assert!(matches!(&world.told[1], Finding::Recovered { .. }));
}

#[test]
fn a_source_that_sends_less_is_told_of_once_and_not_replanned() {
    let mut world = Virtual::new();
    world.source = 2.0;
    world.pass(300);
    assert!(world.replanned_at_s.is_empty());
    assert!(matches!(world.told.as_slice(), [Finding::Shortfall { short: Short::Source, .. }]));
    world.source = 100.0;
    world.pass(60);
    assert!(matches!(&world.told[1..], [Finding::Recovered { .. }]));
}

#[test]
fn a_starved_flow_shows_what_the_line_carries_where_packets_wait() {
    let direction = (node("n1"), node("n2"));
    let world = Virtual::new();
    for (backlogged, queued) in [(0.8, false), (0.0, true)] {
        let mut replanner = Replanner::default();
        replanner.begin(&job(), &world.seen(None));
        let mut findings = Vec::new();
        for second in 0..20 {
            let mut seen = world.seen(Some(4.0));
            seen.now_ms += second * 1000;
            seen.jobs[0].flows[0].backlogged = backlogged;
            seen.links.get_mut(&direction).unwrap().queued = queued;
            findings.extend(replanner.look(&seen));
        }
        assert_eq!(findings[0], Finding::Saturated { direction: direction.clone(), rate_bps: 4e6 });
        assert!(matches!(&findings[1], Finding::Shortfall { short: Short::Flow { .. }, .. }), "{findings:?}");
    }
}

#[test]
fn an_attempt_that_changes_nothing_waits_longer_each_time() {
    let mut world = Virtual::new();
    world.work_s = 0.2;
    let mut attempts = Vec::new();
    for _ in 0..3_600 {
        world.now_s += 1;
        let seen = world.seen(Some(world.achieved()));
        for finding in world.replanner.look(&seen) {
            if let Finding::Replan { cause, jobs } = finding {
                attempts.push(world.now_s);
                world.replanner.acted(&cause, &jobs, &[], &seen);
            }
        }
    }
    assert!((2..=4).contains(&attempts.len()), "{attempts:?}");
    assert_eq!(world.replanner.replans(&job()), 0);
}
