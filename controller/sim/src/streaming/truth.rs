//! Items a second of all running jobs, from placement, paths and rates: nothing of the scheduler's own
//! arithmetic is used.
//!
//! A flow carries its rate, or its part of it where a link was given away more than once. A node's speed is
//! shared evenly by the jobs that want it, and what one cannot use goes to the others. Rounds repeat until
//! nothing changes, since a job slowed on one node asks less of another.

use edgeloom_common::ids::NodeId;
use edgeloom_common::job::Job;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::{Duplex, Link, Node};
use std::collections::BTreeMap;

/// Rounds after which shares have settled.
const ROUNDS: usize = 32;

/// Items a second of each job.
pub(super) fn throughputs(nodes: &[Node], links: &[Link], running: &[(&Job, &JobPlan)]) -> Vec<f64> {
    let overload = overload(links, running);
    let mut items: Vec<f64> = running.iter().map(|(job, plan)| network_bound(job, plan, &overload)).collect();
    let work: Vec<BTreeMap<&NodeId, f64>> =
        running.iter().map(|(job, plan)| work_by_node(job, plan)).collect();
    for _ in 0..ROUNDS {
        for node in nodes {
            let speed = f64::from(node.cpu.0) / 1000.0 * node.core_speed;
            let mut wants: Vec<(f64, usize)> = Vec::new();
            for (index, work) in work.iter().enumerate() {
                if let Some(seconds) = work.get(&node.id).filter(|seconds| **seconds > 0.0) {
                    wants.push((items[index] * seconds, index));
                }
            }
            wants.sort_by(|x, y| x.0.total_cmp(&y.0));
            let (mut left, mut sharers) = (speed, wants.len());
            for (want, index) in wants {
                #[expect(clippy::cast_precision_loss, reason = "few jobs share a node")]
                let share = left / sharers as f64;
                let given = want.min(share);
                items[index] = items[index].min(given / work[index][&node.id]);
                (left, sharers) = (left - given, sharers - 1);
            }
        }
    }
    items
}

/// The key of a link's capacity: one for both directions on a half-duplex link.
fn medium<'a>(
    links: &'a [Link],
    from: &'a NodeId,
    to: &'a NodeId,
) -> Option<((&'a NodeId, &'a NodeId), f64)> {
    let (a, b) = if from < to { (from, to) } else { (to, from) };
    let link = links.iter().find(|link| link.a == *a && link.b == *b)?;
    match (link.duplex, from == a) {
        (Duplex::Half, _) => Some(((a, b), link.a_to_b.as_f64())),
        (Duplex::Full, true) => Some(((from, to), link.a_to_b.as_f64())),
        (Duplex::Full, false) => Some(((from, to), link.b_to_a.as_f64())),
    }
}

/// Per medium: by how much more was given away than there is; 1 where all is well, infinite without a link.
fn overload<'a>(
    links: &'a [Link],
    running: &[(&'a Job, &'a JobPlan)],
) -> BTreeMap<(&'a NodeId, &'a NodeId), f64> {
    let mut given: BTreeMap<(&NodeId, &NodeId), (f64, f64)> = BTreeMap::new();
    for flow in running.iter().flat_map(|(_, plan)| &plan.flows) {
        for hop in flow.path.windows(2) {
            let (key, capacity) = medium(links, &hop[0], &hop[1]).unwrap_or(((&hop[0], &hop[1]), 0.0));
            let entry = given.entry(key).or_insert((0.0, capacity));
            entry.0 += flow.rate.as_f64();
            entry.1 = capacity;
        }
    }
    let mut overload = BTreeMap::new();
    for ((a, b), (sum, capacity)) in given {
        overload.insert((a, b), (sum / capacity).max(1.0));
    }
    overload
}

/// The slowest edge: one whose ends are apart needs a flow, and gets nothing without.
fn network_bound(job: &Job, plan: &JobPlan, overload: &BTreeMap<(&NodeId, &NodeId), f64>) -> f64 {
    let mut items = job.source.as_ref().and_then(|source| source.rate_per_s).unwrap_or(f64::INFINITY);
    for (from, to, volume) in job.edges() {
        if plan.placement.get(&from) == plan.placement.get(&to) {
            continue;
        }
        let flow = plan.flows.iter().find(|flow| flow.id.from == from && flow.id.to == to);
        let carried = flow.map_or(0.0, |flow| {
            let factor = |hop: &[NodeId]| {
                let both = [(&hop[0], &hop[1]), (&hop[1], &hop[0])];
                both.iter().find_map(|key| overload.get(key)).copied().unwrap_or(f64::INFINITY)
            };
            flow.rate.as_f64() / flow.path.windows(2).map(factor).fold(1.0, f64::max)
        });
        #[expect(clippy::cast_precision_loss, reason = "volumes stay far below 2^52")]
        let bits = volume.0 as f64 * 8.0;
        items = items.min(carried / bits);
    }
    items
}

fn work_by_node<'a>(job: &Job, plan: &'a JobPlan) -> BTreeMap<&'a NodeId, f64> {
    let mut work: BTreeMap<&NodeId, f64> = BTreeMap::new();
    for (name, task) in &job.tasks {
        if let Some(node) = plan.placement.get(name) {
            *work.entry(node).or_default() +=
                task.work.map_or(0.0, edgeloom_common::units::Work::as_secs_f64);
        }
    }
    work
}
