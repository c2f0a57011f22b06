//! Profiles by name, and the walk over the waiting jobs.
//!
//! Each waiting job is decided on what the jobs before it left: the better class of satisfaction comes first,
//! then the longest wait, and names break ties. A job that names a profile gets that one. What rooms decide on
//! together comes last: see `queues`.

use edgeloom_common::ids::JobName;
use edgeloom_common::job::{Job, Kind, Service};
use edgeloom_common::units::{BitRate, Bytes};
use std::cmp::Reverse;

use crate::batch::{Scheduler, place_jobs};
use crate::copies::with_copies;
use crate::explain::unplaced;
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::plan::{Decision, JobPlan};
use crate::queues::Queues;
use crate::sla::{self, Rules};
use crate::snapshot::{Change, Duplex, Link, Node, Snapshot, Waiting};
use crate::streaming::{Case, Outcome, Strategy, Stuck, decide_one, give_bandwidth, rebalance};
use crate::world::World;

/// Any rate will do where only the way is asked for.
const ANY_RATE: BitRate = BitRate(1_000_000_000);

const PROFILES: [Profile; 10] = [
    Profile(Room::Streaming(Strategy::Edgeloom)),
    Profile(Room::Streaming(Strategy::Otfa)),
    Profile(Room::Streaming(Strategy::Otfs)),
    Profile(Room::Streaming(Strategy::OtfsStrict)),
    Profile(Room::Streaming(Strategy::Lr)),
    Profile(Room::Streaming(Strategy::Br)),
    Profile(Room::Streaming(Strategy::Tp)),
    Profile(Room::Sla(Rules::PAPER)),
    Profile(Room::Batch(Scheduler::EcschedDp)),
    Profile(Room::Batch(Scheduler::EcschedMl)),
];
const NAMES: [&str; PROFILES.len()] = {
    let mut names = [""; PROFILES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PROFILES[at].name();
        at += 1;
    }
    names
};

/// A way of deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile(Room);

/// The room that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Streaming(Strategy),
    Sla(Rules),
    Batch(Scheduler),
}

impl Profile {
    /// As in configuration and job documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Room::Streaming(strategy) => strategy.name(),
            Room::Sla(_) => sla::NAME,
            Room::Batch(scheduler) => scheduler.name(),
        }
    }

    /// The profile `sla` with other rules.
    #[must_use]
    pub const fn sla(rules: Rules) -> Self {
        Self(Room::Sla(rules))
    }

    /// Who decides on such a job: the default has a stage of its own for batches.
    fn room(self, job: &Job) -> Room {
        match self.0 {
            Room::Streaming(Strategy::Edgeloom) if job.kind == Kind::Batch => {
                Room::Batch(Scheduler::Edgeloom)
            }
            room => room,
        }
    }
}

/// The profile of that name.
#[must_use]
pub fn profile(name: &str) -> Option<Profile> {
    PROFILES.into_iter().find(|profile| profile.name() == name)
}

/// All names, the default first.
#[must_use]
pub fn profile_names() -> &'static [&'static str] {
    &NAMES
}

/// Decides on every waiting job of the snapshot. Where none is placed, running jobs get what departed ones
/// left, as far as their profile and [`Change`] allow.
#[must_use]
pub fn decide(default: Profile, snapshot: &Snapshot) -> Decision {
    let world = World::of(snapshot);
    let mut held: HeldJobs<'_> = HeldJobs::new();
    for running in &snapshot.running {
        held.insert(running.job.name.clone(), Held::of(running));
    }
    let mut waiting: Vec<&Waiting> = snapshot.waiting.iter().collect();
    waiting.sort_by_key(|entry| (Reverse(satisfaction(entry)), entry.since_ms, &entry.job.name));
    let mut decision = Decision::default();
    let mut queues = Queues::default();
    for entry in waiting {
        let profile = entry.job.profile.as_deref().and_then(profile).unwrap_or(default);
        let room = profile.room(&entry.job);
        // A job that runs and is planned anew keeps its place if it finds no other: it is decided on alone.
        if !held.contains_key(&entry.job.name) && queues.takes(entry, room) {
            continue;
        }
        let former = held.remove(&entry.job.name);
        let graph = JobGraph::of(&world, &entry.job, &entry.profiles);
        let ledger = Ledger::of(&world, held.values());
        let case = Case { world: &world, graph: &graph, ledger: &ledger };
        match decide_waiting(&case, room, &held, entry) {
            Ok(outcome) => commit(&mut decision, &mut held, entry, outcome),
            Err(stuck) => {
                let never = never_fits(snapshot, room, entry);
                decision.unplaced.push(unplaced(&case, &stuck, never));
                held.extend(former.map(|former| (entry.job.name.clone(), former)));
            }
        }
    }
    queues.serve((snapshot, &world), (&mut decision, &mut held));
    if decision.plans.is_empty() {
        decision.plans = rebalance(&world, &held);
    }
    decision
}

/// The job's class of satisfaction, the better the higher.
pub(crate) fn satisfaction(entry: &Waiting) -> u32 {
    entry.job.sla.satisfaction.map_or(1, Service::level)
}

fn decide_waiting(
    case: &Case<'_>,
    room: Room,
    others: &HeldJobs<'_>,
    entry: &Waiting,
) -> Result<Outcome, Stuck> {
    match room {
        Room::Streaming(strategy) => with_copies(case, others, &entry.profiles, |case| {
            let vertices = case.graph.vertices.iter();
            let table: Vec<Vec<u64>> =
                vertices.map(|vertex| missing_row(case, entry, &vertex.name)).collect();
            let missing = move |vertex: usize, node: usize| table[vertex][node];
            decide_one(case, strategy, others, &missing)
        }),
        Room::Sla(rules) => {
            let queue = std::slice::from_ref(case.graph);
            let served = sla::serve(case.world, case.ledger, queue, &rules).into_iter().next();
            let (_, seated) = served.expect("a queue of one is served one answer");
            let seated = seated?;
            give_bandwidth(&Case { graph: &seated.graph, ..*case }, sla::NAME, seated.placed)
        }
        Room::Batch(scheduler) => {
            let answers = place_jobs((case.world, case.ledger), scheduler, &[(case.graph, 0.0)]);
            let answer = answers.into_iter().next().expect("a batch of one is given one answer");
            give_bandwidth(case, scheduler.name(), answer.map_err(|(stuck, _)| stuck)?)
        }
    }
}

fn missing_row(case: &Case<'_>, entry: &Waiting, task: &edgeloom_common::ids::TaskName) -> Vec<u64> {
    let known = entry.missing_bytes.get(task);
    let bytes = |node: &&Node| known.and_then(|row| row.get(&node.id)).unwrap_or(&Bytes(0)).0;
    case.world.nodes.iter().map(bytes).collect()
}

/// Adds the plan and the running jobs it changed; a later plan of a job replaces its earlier one.
pub(crate) fn commit<'a>(
    decision: &mut Decision,
    held: &mut HeldJobs<'a>,
    entry: &'a Waiting,
    outcome: Outcome,
) {
    for plan in outcome.changed {
        if let Some(entry) = held.get_mut(&plan.job) {
            entry.plan = plan.clone();
        }
        replace(&mut decision.plans, plan);
    }
    let plan = outcome.plan.clone();
    let own = Held { job: &entry.job, plan, profiles: &entry.profiles, change: Change::Placement };
    held.insert(entry.job.name.clone(), own);
    replace(&mut decision.plans, outcome.plan);
}

fn replace(plans: &mut Vec<JobPlan>, plan: JobPlan) {
    let name: &JobName = &plan.job;
    match plans.iter().position(|old| old.job == *name) {
        Some(at) => plans[at] = plan,
        None => plans.push(plan),
    }
}

/// Whether the job finds no place even with every node ready and reached, and nothing else running.
fn never_fits(snapshot: &Snapshot, room: Room, entry: &Waiting) -> bool {
    let empty = emptied(snapshot);
    fits_nowhere(&World::of(&empty), room, entry)
}

/// The cluster with every node ready and reached, and nothing running.
pub(crate) fn emptied(snapshot: &Snapshot) -> Snapshot {
    let mut nodes = snapshot.nodes.clone();
    nodes.iter_mut().for_each(|node| node.ready = true);
    // The hub of the links to come has to pass on, and not to depend on the order of the list.
    nodes.sort_by(|x, y| (!x.shapes_flows, &x.id).cmp(&(!y.shapes_flows, &y.id)));
    let links = [snapshot.links.clone(), star(&nodes)].concat();
    Snapshot { nodes, links, running: Vec::new(), waiting: Vec::new(), ..*snapshot }
}

pub(crate) fn fits_nowhere(world: &World<'_>, room: Room, entry: &Waiting) -> bool {
    let none = HeldJobs::new();
    let ledger = Ledger::of(world, none.values());
    let graph = JobGraph::of(world, &entry.job, &entry.profiles);
    let case = Case { world, graph: &graph, ledger: &ledger };
    decide_waiting(&case, room, &none, entry).is_err()
}

/// A link from the first node to each other one: what is down, or not measured yet, may come.
fn star(nodes: &[Node]) -> Vec<Link> {
    let Some((hub, others)) = nodes.split_first() else { return Vec::new() };
    let link = |other: &Node| Link {
        a: hub.id.clone(),
        b: other.id.clone(),
        a_to_b: ANY_RATE,
        b_to_a: ANY_RATE,
        duplex: Duplex::Full,
    };
    others.iter().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_profile() {
        assert!(profile_names().iter().all(|name| profile(name).is_some_and(|found| found.name() == *name)));
        assert_eq!(profile("none"), None);
    }
}
