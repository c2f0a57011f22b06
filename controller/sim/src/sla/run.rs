//! One run: a virtual clock that jumps from arrival or end to the next, and the scheduler asked at each.

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{CPU_DEFAULT, Job, Kind, REPUTATION_LABEL, Resources, Sla, Task};
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::scoring::Scoring;
use edgeloom_sched::snapshot::{
    Change, Hosting, Node, Policy as Leave, Processors, Profiles, Running, Snapshot, Waiting,
};
use edgeloom_sched::{check, decide};
use std::collections::BTreeMap;
use std::time::Instant;

use super::arrivals::Container;
use super::{Policy, Started};
use crate::SimError;

const CORES: u32 = 32;
const NODES_A_REPUTATION: usize = 5;
const REPUTATIONS: [&str; 3] = ["high", "average", "low"];
/// Sequential life time.
const LIFE_S: f64 = 300.0;

/// What came of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// In the order of execution.
    pub(super) started: Vec<Started>,
    pub(super) decision_ms: Vec<f64>,
}

/// Goes on until every container has run.
pub(super) fn run(containers: &[Container], policy: Policy, seed: u64) -> Result<Outcome, SimError> {
    let mut outcome = Outcome::default();
    let mut snapshot = cluster(seed);
    let mut arrived = 0;
    let mut now_s = 0.0;
    while let Some(next_s) = next_event(containers.get(arrived), &outcome.started, now_s) {
        now_s = next_s;
        snapshot.now_ms = milliseconds(now_s);
        let ended = |plan: &JobPlan| outcome.started.iter().any(|one| one.is(plan) && one.ends_s <= now_s);
        snapshot.running.retain(|running| !ended(&running.plan));
        while let Some(container) = containers.get(arrived).filter(|container| container.at_s <= now_s) {
            snapshot.waiting.push(waiting(arrived, container));
            arrived += 1;
        }
        let begun = Instant::now();
        let decision = decide(policy.profile(), &snapshot);
        outcome.decision_ms.push(begun.elapsed().as_secs_f64() * 1000.0);
        if let Some(first) = check(&decision, &snapshot).first() {
            let (profile, first) = (policy.name(), first.to_string());
            return Err(SimError::Broken { profile, seed, at_s: now_s, first });
        }
        for plan in decision.plans {
            let at = snapshot.waiting.iter().position(|waiting| waiting.job.name == plan.job);
            let entry = snapshot.waiting.remove(at.expect("checked: a plan's job waits"));
            outcome.started.push(started(&plan, containers, now_s));
            let Waiting { job, profiles, .. } = entry;
            let (change, enough) = (Change::Nothing, BTreeMap::new());
            snapshot.running.push(Running { job, plan, profiles, change, enough });
        }
    }
    Ok(outcome)
}

/// The next arrival or end after now; the first arrival may be now.
fn next_event(arrival: Option<&Container>, started: &[Started], now_s: f64) -> Option<f64> {
    let ends = started.iter().map(|one| one.ends_s).filter(|end| *end > now_s);
    ends.chain(arrival.map(|container| container.at_s)).min_by(f64::total_cmp)
}

fn started(plan: &JobPlan, containers: &[Container], now_s: f64) -> Started {
    let number = (0..containers.len()).find(|number| name(*number) == plan.job.as_str());
    let number = number.expect("only these containers wait");
    let share = plan.shares.values().next().expect("the profile sizes every task");
    let cores = f64::from(share.cpu.0) / 1000.0;
    Started {
        container: number,
        service: containers[number].service,
        submitted_s: containers[number].at_s,
        started_s: now_s,
        ends_s: now_s + LIFE_S / cores,
        cores,
        copies: plan.placement.len(),
    }
}

impl Started {
    fn is(&self, plan: &JobPlan) -> bool {
        name(self.container) == plan.job.as_str()
    }
}

/// Sorts as the number does, and so by arrival.
fn name(number: usize) -> String {
    format!("container-{number:03}")
}

fn waiting(number: usize, container: &Container) -> Waiting {
    let sla = Sla::all(container.service);
    let task: TaskName = "work".parse().expect("letters make a name");
    let mut tasks = BTreeMap::from([(task, work())]);
    sla.apply(&mut tasks);
    let name = name(number).parse().expect("letters, a hyphen and digits make a name");
    Waiting {
        job: Job { kind: Kind::Batch, sla, ..Job::of(name, tasks) },
        since_ms: milliseconds(container.at_s),
        images: BTreeMap::new(),
        profiles: Profiles::new(),
    }
}

fn work() -> Task {
    Task::alone("work", Resources { cpu: CPU_DEFAULT, cpu_sized: true, ..Resources::default() })
}

fn cluster(seed: u64) -> Snapshot {
    let nodes = REPUTATIONS
        .iter()
        .flat_map(|reputation| (1..=NODES_A_REPUTATION).map(move |number| node(reputation, number)));
    Snapshot {
        now_ms: 0,
        seed,
        goodput: 1.0,
        link_share: 1.0,
        processors: Processors::Shared,
        policy: Leave::default(),
        scoring: Scoring::default(),
        nodes: nodes.collect(),
        links: Vec::new(),
        running: Vec::new(),
        waiting: Vec::new(),
    }
}

fn node(reputation: &str, number: usize) -> Node {
    Node {
        id: format!("{reputation}-{number}").parse().expect("letters, a hyphen and a digit make a name"),
        ready: true,
        class: "xeon".to_owned(),
        labels: BTreeMap::from([(REPUTATION_LABEL.to_owned(), reputation.to_owned())]),
        cpu: MilliCores(CORES * 1000),
        core_speed: 1.0,
        memory: Bytes(u64::from(u32::MAX)),
        disk: Bytes(u64::from(u32::MAX)),
        shapes_flows: true,
        hosting: Hosting::default(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a run lasts minutes")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}
