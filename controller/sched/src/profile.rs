//! Profiles by name, and the walk over the waiting jobs.
//!
//! Each waiting job is decided on what the jobs before it left; the longest wait comes first, names break
//! ties. A job that names a profile gets that one.

use edgeloom_common::ids::JobName;
use edgeloom_common::units::{BitRate, Bytes};

use crate::explain::unplaced;
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::plan::{Decision, JobPlan};
use crate::snapshot::{Change, Duplex, Link, Node, Snapshot, Waiting};
use crate::streaming::{Case, Outcome, Strategy, Stuck, decide_one, rebalance};
use crate::world::World;

/// Any rate will do where only the way is asked for.
const ANY_RATE: BitRate = BitRate(1_000_000_000);

const PROFILES: [Profile; 7] = [
    Profile(Strategy::Edgeloom),
    Profile(Strategy::Otfa),
    Profile(Strategy::Otfs),
    Profile(Strategy::OtfsStrict),
    Profile(Strategy::Lr),
    Profile(Strategy::Br),
    Profile(Strategy::Tp),
];
const NAMES: [&str; 7] = ["edgeloom", "otfa", "otfs", "otfs-strict", "lr", "br", "tp"];

/// A way of deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile(Strategy);

impl Profile {
    /// As in configuration and job documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name()
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
    waiting.sort_by(|x, y| (x.since_ms, &x.job.name).cmp(&(y.since_ms, &y.job.name)));
    let mut decision = Decision::default();
    for entry in waiting {
        let profile = entry.job.profile.as_deref().and_then(profile).unwrap_or(default);
        let former = held.remove(&entry.job.name);
        let graph = JobGraph::of(&world, &entry.job, &entry.profiles);
        let ledger = Ledger::of(&world, held.values());
        let case = Case { world: &world, graph: &graph, ledger: &ledger };
        match decide_waiting(&case, profile, &held, entry) {
            Ok(outcome) => commit(&mut decision, &mut held, entry, outcome),
            Err(stuck) => {
                let never = never_fits(snapshot, profile, entry);
                decision.unplaced.push(unplaced(&case, &stuck, never));
                held.extend(former.map(|former| (entry.job.name.clone(), former)));
            }
        }
    }
    if decision.plans.is_empty() {
        decision.plans = rebalance(&world, &held);
    }
    decision
}

fn decide_waiting(
    case: &Case<'_>,
    profile: Profile,
    others: &HeldJobs<'_>,
    entry: &Waiting,
) -> Result<Outcome, Stuck> {
    let table: Vec<Vec<u64>> =
        case.graph.vertices.iter().map(|vertex| missing_row(case, entry, &vertex.name)).collect();
    let missing = move |vertex: usize, node: usize| table[vertex][node];
    decide_one(case, profile.0, others, &missing)
}

fn missing_row(case: &Case<'_>, entry: &Waiting, task: &edgeloom_common::ids::TaskName) -> Vec<u64> {
    let known = entry.missing_bytes.get(task);
    let bytes = |node: &&Node| known.and_then(|row| row.get(&node.id)).unwrap_or(&Bytes(0)).0;
    case.world.nodes.iter().map(bytes).collect()
}

/// Adds the plan and the running jobs it changed; a later plan of a job replaces its earlier one.
fn commit<'a>(decision: &mut Decision, held: &mut HeldJobs<'a>, entry: &'a Waiting, outcome: Outcome) {
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
fn never_fits(snapshot: &Snapshot, profile: Profile, entry: &Waiting) -> bool {
    let mut nodes = snapshot.nodes.clone();
    nodes.iter_mut().for_each(|node| node.ready = true);
    let links = [snapshot.links.clone(), star(&nodes)].concat();
    let empty = Snapshot { nodes, links, running: Vec::new(), waiting: Vec::new(), ..snapshot.clone() };
    let world = World::of(&empty);
    let none = HeldJobs::new();
    let ledger = Ledger::of(&world, none.values());
    let graph = JobGraph::of(&world, &entry.job, &entry.profiles);
    let case = Case { world: &world, graph: &graph, ledger: &ledger };
    decide_waiting(&case, profile, &none, entry).is_err()
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
