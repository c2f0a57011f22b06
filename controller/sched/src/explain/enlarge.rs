//! The same cluster with a tenth more of something, and what a unit of it is worth.

use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::units::{BitRate, MilliCores};
use edgeloom_common::view::LimitKind;

use super::subject::Subject;
use super::words;
use crate::profile::{decide, profile};
use crate::snapshot::{Change, Duplex, Running, Snapshot, TaskProfile};
use crate::streaming::{Strategy, whole_bits};

/// A measured time an item is the limit's doing if it is at most so many times the processor time under it.
const THROTTLED: f64 = 1.1;

/// Something of which there could be more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Limit {
    Link { from: NodeId, to: NodeId },
    Node(NodeId),
    Task(TaskName),
    Source,
}

/// The snapshot with a tenth more of each limit, and rates as the profile would give them then.
pub(super) fn enlarged(snapshot: &Snapshot, job: &JobName, limits: &[Limit]) -> Snapshot {
    let mut after = Snapshot { waiting: Vec::new(), ..snapshot.clone() };
    // Paths and places stay, so that the price is that of the limit alone; a job that stops gets nothing.
    after.running.iter_mut().for_each(|running| running.change = running.change.min(Change::Rates));
    limits.iter().for_each(|limit| enlarge(&mut after, job, limit));
    let Some(running) = after.running.iter().find(|running| running.job.name == *job) else { return after };
    let profile_name = running.plan.profile.clone();
    let Some(profile) = profile(&profile_name) else { return after };
    let decision = decide(profile, &after);
    if profile_name != Strategy::Edgeloom.name() && decision.plans.iter().all(|plan| plan.job != *job) {
        widen(&mut after, job, limits);
    }
    for plan in decision.plans {
        if let Some(running) = after.running.iter_mut().find(|running| running.job.name == plan.job) {
            running.plan = plan;
        }
    }
    after
}

fn enlarge(after: &mut Snapshot, job: &JobName, limit: &Limit) {
    let own = after.running.iter_mut().find(|running| running.job.name == *job);
    match limit {
        Limit::Link { from, to } => {
            for link in &mut after.links {
                let forward = (&link.a, &link.b) == (from, to);
                if forward || (&link.b, &link.a) == (from, to) {
                    let shared = link.duplex == Duplex::Half;
                    let rate = if forward || shared { &mut link.a_to_b } else { &mut link.b_to_a };
                    *rate = BitRate(tenth_more(rate.0));
                }
            }
        }
        Limit::Node(name) => {
            let node = after.nodes.iter_mut().filter(|node| node.id == *name);
            node.for_each(|node| node.cpu = more_cpu(node.cpu));
        }
        Limit::Task(task) => own.into_iter().for_each(|running| raise(running, task)),
        Limit::Source => {
            let rate = own.and_then(|running| running.job.source.as_mut()?.rate_per_s.as_mut());
            rate.into_iter().for_each(|rate| *rate *= 1.1);
        }
    }
}

/// A tenth more for a task's CPU limit, wherever it is written. What was measured counts as faster where the
/// limit made it slow: there the processor time fills the time an item takes.
fn raise(running: &mut Running, task: &TaskName) {
    let cores = f64::from(cpu_limit(running, task).0) / 1000.0;
    if let Some(task) = running.job.tasks.get_mut(task) {
        task.program.resources.cpu = more_cpu(task.program.resources.cpu);
    }
    if let Some(share) = running.plan.shares.get_mut(task) {
        share.cpu = more_cpu(share.cpu);
    }
    let throttled = |profile: &&mut TaskProfile| {
        profile.wall_s * profile.core_speed * cores <= profile.work_s * THROTTLED
    };
    let profiles = running.profiles.get_mut(task).into_iter().flat_map(|by_class| by_class.values_mut());
    profiles.filter(throttled).for_each(|profile| profile.wall_s /= 1.1);
}

fn tenth_more(value: u64) -> u64 {
    value.saturating_add(value.div_ceil(10))
}

fn more_cpu(cpu: MilliCores) -> MilliCores {
    MilliCores(cpu.0.saturating_add(cpu.0.div_ceil(10)))
}

/// A tenth more for the job's flows over enlarged links, where the rest of the path has it.
fn widen(after: &mut Snapshot, job: &JobName, limits: &[Limit]) {
    let Some(subject) = Subject::of(after, job) else { return };
    let world = &subject.world;
    let enlarged = limits.iter().filter_map(|limit| match limit {
        Limit::Link { from, to } => {
            Some(world.graph.arcs[world.arc(world.index(from)?, world.index(to)?)?].pool)
        }
        _ => None,
    });
    let enlarged: Vec<usize> = enlarged.collect();
    let mut left = subject.with.residual(world);
    let mut rates = Vec::new();
    for flow in &subject.flows {
        let pools: Vec<usize> = world.graph.pools(&flow.path).collect();
        let crosses = pools.iter().any(|pool| enlarged.contains(pool));
        let wanted = if crosses { flow.rate / 10.0 } else { 0.0 };
        let more = pools.iter().map(|pool| left[*pool]).fold(wanted, f64::min);
        pools.iter().for_each(|pool| left[*pool] -= more);
        rates.push(whole_bits(flow.rate + more));
    }
    let own = after.running.iter_mut().find(|running| running.job.name == *job);
    let flows = own.into_iter().flat_map(|running| &mut running.plan.flows);
    flows.zip(rates).for_each(|(flow, rate)| flow.rate = rate);
}

pub(super) fn kind(limit: &Limit) -> LimitKind {
    match limit {
        Limit::Link { .. } => LimitKind::Link,
        Limit::Node(_) => LimitKind::Node,
        Limit::Task(_) => LimitKind::Task,
        Limit::Source => LimitKind::Source,
    }
}

pub(super) fn name(subject: &Subject<'_>, limit: &Limit) -> String {
    match limit {
        Limit::Link { from, to } => format!("{from}->{to}"),
        Limit::Node(node) => node.to_string(),
        Limit::Task(task) => {
            let node = subject.plan.placement.get(task).map(NodeId::as_str).unwrap_or_default();
            format!("{task} on {node}")
        }
        Limit::Source => "source".to_owned(),
    }
}

/// What one more unit gives; several limits have no common unit but their tenth.
pub(super) fn gain(snapshot: &Snapshot, job: &JobName, limits: &[Limit], gained: f64) -> String {
    if gained <= 0.0 {
        return "nothing: something else limits the job as much, or other jobs would get it".to_owned();
    }
    let [limit] = limits else {
        return format!("{} items/s for a tenth more of all of them together", words::items(gained));
    };
    let tenth = |whole: f64| gained / (whole / 10.0);
    let running = snapshot.running.iter().find(|running| running.job.name == *job);
    let (price, unit) = match limit {
        Limit::Link { from, to } => (tenth(capacity(snapshot, from, to) / 1e6), "Mbit/s"),
        Limit::Node(name) => {
            let node = snapshot.nodes.iter().find(|node| node.id == *name);
            (tenth(node.map_or(0.0, |node| f64::from(node.cpu.0) / 100.0)), "100m of CPU")
        }
        Limit::Task(task) => {
            let cpu = running.map_or(0, |running| cpu_limit(running, task).0);
            (tenth(f64::from(cpu) / 100.0), "100m of CPU limit")
        }
        Limit::Source => {
            let rate = running.and_then(|running| running.job.source.as_ref()?.rate_per_s);
            (tenth(rate.unwrap_or(0.0)), "item/s of the source")
        }
    };
    format!("{} items/s for each {unit}", words::items(price))
}

fn capacity(snapshot: &Snapshot, from: &NodeId, to: &NodeId) -> f64 {
    let rate = snapshot.links.iter().find_map(|link| {
        let forward = (&link.a, &link.b) == (from, to);
        let back = (&link.b, &link.a) == (from, to);
        match (forward, back, link.duplex) {
            (true, ..) | (_, true, Duplex::Half) => Some(link.a_to_b),
            (_, true, Duplex::Full) => Some(link.b_to_a),
            _ => None,
        }
    });
    rate.map_or(0.0, BitRate::as_f64)
}

fn cpu_limit(running: &Running, task: &TaskName) -> MilliCores {
    let share = running.plan.shares.get(task).map(|share| share.cpu);
    let requested = running.job.tasks.get(task).map(|task| task.program.resources.cpu);
    share.or(requested).unwrap_or_default()
}
