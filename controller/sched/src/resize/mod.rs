//! Dynamic cores: the limits of containers that run, found anew whenever others come and go, and by what they use.
//!
//! "SLA classes" sizes a container once, as it is placed; its last section leaves the loop for later. Here every
//! task whose document leaves its CPU to the planner takes part, of jobs with a class of resources under any
//! profile and of all jobs of `sla`, but for what the default profile sizes by a job's throughput. In: a snapshot.
//! Out: plans with other shares, nothing else changed. Each node is looked at by itself, since nothing moves:
//! what requests and other shares leave of it is divided by [`fill`]. [`give_way`] keeps a large share from being
//! the reason that a job waits.
//!
//! Invariant: shares lie within the interval of the job's class as far as the node has it, and a node on which no
//! share would change by a tenth is left alone.

mod fill;
mod give_way;
mod plans;

pub(crate) use give_way::give_way;

use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::job::{Job, Kind, Service};
use std::collections::BTreeSet;

use crate::check::stands;
use crate::classes::Interval;
use crate::job_graph::JobGraph;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::plan::{Decision, JobPlan};
use crate::snapshot::{Change, Snapshot};
use crate::streaming::Strategy;
use crate::world::World;
use fill::{Claim, fill};

/// A change counts from one part in so many on.
const TELLING: i64 = 10;

/// A container that is sized by its class.
#[derive(Debug, Clone)]
struct Seat {
    job: JobName,
    task: TaskName,
    node: usize,
    claim: Claim,
    /// Its limit now, in thousandths of a core.
    held: i64,
    /// What the ledger counts for it.
    taken: i64,
}

/// New shares for the containers of jobs that run.
#[must_use]
pub fn resize(snapshot: &Snapshot) -> Decision {
    let world = World::of(snapshot);
    let held = snapshot.running.iter().map(|running| (running.job.name.clone(), Held::of(running))).collect();
    Decision { plans: refill(&world, &held), unplaced: Vec::new() }
}

/// One node's cores among its seats.
struct Division<'s> {
    seats: Vec<&'s Seat>,
    given: Vec<i64>,
    /// For all of them.
    room: i64,
}

/// Some share changes by enough, or the node has less than it gives.
fn tells(division: &Division<'_>) -> bool {
    let total: i64 = division.seats.iter().map(|seat| seat.held).sum();
    let changes = |(seat, given): (&&Seat, &i64)| {
        let difference = (given - seat.held).abs();
        difference > 0 && difference * TELLING >= seat.held
    };
    total > division.room || division.seats.iter().zip(&division.given).any(changes)
}

/// Plans of jobs whose shares change on a node where some share changes enough.
pub(crate) fn refill(world: &World<'_>, held: &HeldJobs<'_>) -> Vec<JobPlan> {
    divide(world, held, &tells)
}

/// Divides every node's cores for whose division `asked` says so.
fn divide(world: &World<'_>, held: &HeldJobs<'_>, asked: &dyn Fn(&Division<'_>) -> bool) -> Vec<JobPlan> {
    let all = seats(world, held);
    let nodes: BTreeSet<usize> = all.iter().map(|seat| seat.node).collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let ledger = Ledger::of(world, held.values());
    let mut changes = Vec::new();
    for node in nodes {
        let seats: Vec<&Seat> = all.iter().filter(|seat| seat.node == node).collect();
        let room = ledger.free[node].cpu + seats.iter().map(|seat| seat.taken).sum::<i64>();
        let claims: Vec<Claim> = seats.iter().map(|seat| seat.claim).collect();
        let division = Division { given: fill(&claims, room), seats, room };
        if asked(&division) {
            let pairs = division.seats.into_iter().zip(division.given);
            let changed = pairs.filter(|(seat, given)| seat.held != *given);
            changes.extend(changed.map(|(seat, cpu)| plans::Sized { seat, cpu, room }));
        }
    }
    plans::plans(world, held, &changes)
}

/// Every container that is sized by its class, by job and task; of jobs that have lost a node or link none, since their
/// plans are for others to change.
fn seats(world: &World<'_>, held: &HeldJobs<'_>) -> Vec<Seat> {
    let jobs = held.values().filter(|held| follows_class(held) && stands(world, held));
    jobs.flat_map(|held| of_job(world, held)).collect()
}

/// Whether tasks of the job that leave their CPU to the planner have it by class.
fn follows_class(held: &Held<'_>) -> bool {
    has_class(held.job, &held.plan) && held.change >= Change::Rates
}

fn has_class(job: &Job, plan: &JobPlan) -> bool {
    job.sla.resources.is_some() || plan.profile == crate::sla::NAME
}

/// The default profile sizes tasks that compute by the items a second that the job reaches, unless it has copies.
fn by_throughput(held: &Held<'_>) -> bool {
    let copies = held.job.tasks.values().any(|task| task.copy_of.is_some());
    held.plan.profile == Strategy::Edgeloom.name() && held.job.kind != Kind::Batch && !copies
}

fn of_job(world: &World<'_>, held: &Held<'_>) -> Vec<Seat> {
    let fresh = JobGraph::of(world, held.job, held.profiles);
    let graph = fresh.clone().running_with(&held.plan.shares);
    let interval = Interval::of(&world.nodes, &held.job.sla);
    let priority = i64::from(held.job.sla.resources.unwrap_or(Service::BestEffort).level());
    let by_throughput = by_throughput(held);
    let seat = |(vertex, fresh): (&crate::job_graph::Vertex<'_>, &crate::job_graph::Vertex<'_>)| {
        let node = world.index(held.plan.placement.get(&vertex.name)?)?;
        if !vertex.sized || (by_throughput && vertex.work_s[node] > 0.0) {
            return None;
        }
        let asked =
            held.job.tasks.get(&vertex.name).map_or(0, |task| i64::from(task.program.resources.cpu.0));
        let share = held.plan.shares.get(&vertex.name).map(|share| i64::from(share.cpu.0));
        let has = share.unwrap_or(asked);
        let least = vertex.need.cpu.max(interval.least.min(has));
        let enough = held.enough.get(&vertex.name).map(|cpu| i64::from(cpu.0));
        let wanted = enough.map_or(i64::MAX, |cpu| cpu.saturating_add(interval.unit - 1));
        let most = interval.clip(wanted.min(interval.most)).max(least);
        Some(Seat {
            job: held.job.name.clone(),
            task: vertex.name.clone(),
            node,
            claim: Claim { least, most, unit: interval.unit, priority },
            held: has,
            taken: share.unwrap_or(fresh.need.cpu),
        })
    };
    graph.vertices.iter().zip(&fresh.vertices).filter_map(seat).collect()
}
