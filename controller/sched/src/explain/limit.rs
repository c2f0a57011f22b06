//! What limits a job, and what 10% more of it would give: the dual price, found by trying.
//!
//! The snapshot is copied, the limit made larger by a tenth, and the job's own profile asked anew with nothing
//! waiting and every running job free to change its rates: so the answer is true whatever the profile does. The
//! paper's profiles never change running jobs; there the rates over the link grow with it (Eq. 15 is linear in
//! `B_l`), as far as the rest of their paths allows. Where more of one thing alone gives nothing, because
//! another limits equally, that one grows too, until the throughput rises; what turns out not to be needed is
//! left out again.

use edgeloom_common::ids::JobName;
use edgeloom_common::view::LimitView;

use super::enlarge::{Limit, enlarged, gain, kind, name};
use super::subject::Subject;
use crate::snapshot::Snapshot;
use crate::streaming::predict::Limiter;

/// Most things that are made larger together.
const TOGETHER_MAX: usize = 8;

/// A rise of the throughput that counts, as a part of it: above what rounding to whole bits makes.
const LEAST_RISE: f64 = 1e-4;

/// Links of a path whose unused part differs by less than this count as equally full.
const EQUALLY_FULL: f64 = 1e-3;

/// What limits the job; none where nothing known does.
pub(super) fn limit(snapshot: &Snapshot, job: &JobName) -> Option<LimitView> {
    let now = Subject::of(snapshot, job)?.limit().0;
    let (mut limits, mut reached) = rising(snapshot, job, now)?;
    for index in (0..limits.len()).rev() {
        if limits.len() > 1 && reached > now {
            let mut fewer = limits.clone();
            fewer.remove(index);
            let items = throughput(&enlarged(snapshot, job, &fewer), job);
            if items.is_some_and(|items| items >= reached * (1.0 - LEAST_RISE)) {
                limits = fewer;
            }
        }
    }
    reached = reached.max(now);
    let subject = Subject::of(snapshot, job)?;
    let names: Vec<String> = limits.iter().map(|limit| name(&subject, limit)).collect();
    Some(LimitView {
        kind: kind(&limits[0]),
        name: names.join(" and "),
        items_per_s_now: now,
        items_per_s_with_more: reached,
        gain_per_unit: gain(snapshot, job, &limits, reached - now),
    })
}

/// Enlarges one limit after the other until the throughput rises; the throughput with all of them.
fn rising(snapshot: &Snapshot, job: &JobName, now: f64) -> Option<(Vec<Limit>, f64)> {
    let mut limits = Vec::new();
    let mut tried = snapshot.clone();
    let mut reached = now;
    while limits.len() < TOGETHER_MAX && reached <= now * (1.0 + LEAST_RISE) {
        let next = Subject::of(&tried, job).and_then(|subject| next(&subject, &limits));
        let Some(limit) = next else { break };
        limits.push(limit);
        tried = enlarged(snapshot, job, &limits);
        reached = throughput(&tried, job)?;
    }
    if reached <= now * (1.0 + LEAST_RISE) {
        // More of everything that looked like a limit gives nothing: the first is what is met first.
        limits.truncate(1);
        reached = now;
    }
    (!limits.is_empty()).then_some((limits, reached))
}

fn throughput(snapshot: &Snapshot, job: &JobName) -> Option<f64> {
    Some(Subject::of(snapshot, job)?.limit().0)
}

/// What limits the job besides what was enlarged already.
fn next(subject: &Subject<'_>, known: &[Limit]) -> Option<Limit> {
    let found = match subject.limit().1 {
        Limiter::Nothing => return None,
        Limiter::Source => vec![Limit::Source],
        Limiter::Node(node) => vec![Limit::Node(subject.world.name(node).clone())],
        Limiter::Task(vertex) => processors(subject, vertex),
        Limiter::Flow(flow) => fullest(subject, flow),
    };
    found.into_iter().find(|limit| !known.contains(limit))
}

/// A task that the planner sizes has what its node could give; any other has what its document says.
fn processors(subject: &Subject<'_>, vertex: usize) -> Vec<Limit> {
    let name = &subject.graph.vertices[vertex].name;
    let node = Limit::Node(subject.world.name(subject.nodes[vertex]).clone());
    let sized = subject.graph.job.tasks.get(name).is_some_and(|task| task.program.resources.cpu_sized);
    let task = Limit::Task(name.clone());
    if sized { vec![node, task] } else { vec![task, node] }
}

/// The links of a flow's path of which the least part is left, in the path's order.
fn fullest(subject: &Subject<'_>, flow: usize) -> Vec<Limit> {
    let (world, left) = (&subject.world, subject.with.residual(&subject.world));
    let part = |arc: &usize| {
        let pool = world.graph.arcs[*arc].pool;
        left[pool] / world.capacity[pool].max(1.0)
    };
    let path = &subject.flows[flow].path;
    let least = path.iter().map(part).fold(f64::INFINITY, f64::min);
    let full = path.iter().filter(|arc| part(arc) <= least + EQUALLY_FULL);
    let link = |arc: &usize| {
        // The first arc of the pool stands for both directions of a half-duplex link.
        let pool = world.graph.arcs[*arc].pool;
        let arc = world.graph.arcs.iter().find(|arc| arc.pool == pool).expect("the arc itself has the pool");
        Limit::Link { from: world.name(arc.from).clone(), to: world.name(arc.to).clone() }
    };
    full.map(link).collect()
}
