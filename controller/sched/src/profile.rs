//! Profiles by name, and the walk over the waiting jobs.
//!
//! Each waiting job is decided on what the jobs before it left: the better class of satisfaction comes first,
//! then the longest wait, and names break ties. A job that names a profile gets that one. What rooms decide on
//! together comes last: see `queues`.

use edgeloom_common::ids::JobName;
use edgeloom_common::job::{Job, Kind, Service};
use std::borrow::Cow;
use std::cmp::Reverse;

use crate::alone::{decide_alone, never_fits};
use crate::batch::Scheduler;
use crate::case::Case;
use crate::explain::unplaced;
use crate::images::{JobImages, Stores};
use crate::job_graph::JobGraph;
use crate::kube::Baseline;
use crate::layers::Layers;
use crate::ledger::{Held, HeldJobs, Ledger, UNKNOWN};
use crate::plan::{Decision, JobPlan};
use crate::queues::Queues;
use crate::resize::{give_way, refill};
use crate::sla::{self, Rules};
use crate::snapshot::{Change, Snapshot, Waiting};
use crate::streaming::{Outcome, Strategy, rebalance};
use crate::world::World;

const PROFILES: [Profile; 16] = [
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
    Profile(Room::Kube(Baseline::Kube)),
    Profile(Room::Layers(Layers::Fixed)),
    Profile(Room::Layers(Layers::Adaptive)),
    Profile(Room::Kube(Baseline::Swarm)),
    Profile(Room::Kube(Baseline::SwarmSpread)),
    Profile(Room::Kube(Baseline::SwarmRandom)),
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
    Kube(Baseline),
    Layers(Layers),
}

impl Profile {
    /// As in configuration and job documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Room::Streaming(strategy) => strategy.name(),
            Room::Sla(_) => sla::NAME,
            Room::Batch(scheduler) => scheduler.name(),
            Room::Kube(baseline) => baseline.name(),
            Room::Layers(layers) => layers.name(),
        }
    }

    /// The profile `sla` with other rules.
    #[must_use]
    pub const fn sla(rules: Rules) -> Self {
        Self(Room::Sla(rules))
    }

    /// Whether requests are gathered until the next heartbeat, as ECSched has it.
    #[must_use]
    pub const fn has_heartbeat(self) -> bool {
        matches!(self.0, Room::Batch(_))
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
    give_way(default, snapshot, decide_once(default, snapshot))
}

/// The same with shares of containers as they are.
pub(crate) fn decide_once(default: Profile, snapshot: &Snapshot) -> Decision {
    let world = World::of(snapshot);
    let mut held: HeldJobs<'_> = HeldJobs::new();
    for running in &snapshot.running {
        held.insert(running.job.name.clone(), Held::of(running));
    }
    let mut waiting: Vec<&Waiting> = snapshot.waiting.iter().collect();
    waiting.sort_by_key(|entry| (Reverse(satisfaction(entry)), entry.since_ms, &entry.job.name));
    let mut decision = Decision::default();
    let mut queues = Queues::default();
    let mut stores = Stores::of(&world);
    for entry in waiting {
        let profile = entry.job.profile.as_deref().and_then(profile).unwrap_or(default);
        let room = profile.room(&entry.job);
        // A job that runs and is planned anew keeps its place if it finds no other: it is decided on alone.
        if !held.contains_key(&entry.job.name) && queues.takes(&world, entry, room) {
            continue;
        }
        let former = held.remove(&entry.job.name);
        let graph = JobGraph::of(&world, &entry.job, &entry.profiles);
        let ledger = Ledger::of(&world, held.values());
        let case = Case { world: &world, graph: &graph, ledger: &ledger };
        match decide_alone(&case, room, &held, (entry, &stores)) {
            Ok(outcome) => {
                pull(&case, &outcome.plan, (entry, &mut stores));
                commit(&mut decision, &mut held, entry, outcome);
            }
            Err(stuck) => {
                let never = never_fits(snapshot, room, entry);
                decision.unplaced.push(unplaced(&case, &stuck, never));
                held.extend(former.map(|former| (entry.job.name.clone(), former)));
            }
        }
    }
    queues.serve((snapshot, &world), (&mut decision, &mut held));
    if decision.plans.is_empty() {
        for plan in rebalance(&world, &held) {
            follow(&mut held, &plan);
            decision.plans.push(plan);
        }
        refill(&world, &held).into_iter().for_each(|plan| replace(&mut decision.plans, plan));
    }
    decision
}

/// The job's class of satisfaction, the better the higher.
pub(crate) fn satisfaction(entry: &Waiting) -> u32 {
    entry.job.sla.satisfaction.map_or(1, Service::level)
}

/// What a plan pulls is there for the jobs after it.
fn pull(case: &Case<'_>, plan: &JobPlan, (entry, stores): (&Waiting, &mut Stores)) {
    let images = JobImages::of(case.world, case.graph, entry);
    for (index, vertex) in case.graph.vertices.iter().enumerate() {
        if let Some(node) = plan.placement.get(&vertex.name).and_then(|node| case.world.index(node)) {
            stores.pull(&images, index, node);
        }
    }
}

/// Adds the plan and the running jobs it changed; a later plan of a job replaces its earlier one.
pub(crate) fn commit<'a>(
    decision: &mut Decision,
    held: &mut HeldJobs<'a>,
    entry: &'a Waiting,
    outcome: Outcome,
) {
    for plan in outcome.changed {
        follow(held, &plan);
        replace(&mut decision.plans, plan);
    }
    let plan = Cow::Owned(outcome.plan.clone());
    let (job, profiles, change) = (&entry.job, &entry.profiles, Change::Placement);
    let own = Held { job, plan, profiles, change, enough: &UNKNOWN };
    held.insert(entry.job.name.clone(), own);
    replace(&mut decision.plans, outcome.plan);
}

fn follow(held: &mut HeldJobs<'_>, plan: &JobPlan) {
    if let Some(entry) = held.get_mut(&plan.job) {
        entry.plan = Cow::Owned(plan.clone());
    }
}

fn replace(plans: &mut Vec<JobPlan>, plan: JobPlan) {
    let name: &JobName = &plan.job;
    match plans.iter().position(|old| old.job == *name) {
        Some(at) => plans[at] = plan,
        None => plans.push(plan),
    }
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
