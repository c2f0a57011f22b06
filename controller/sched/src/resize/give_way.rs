//! Jobs that wait for what shares above the least hold: those that run give way.
//!
//! In: a decision that leaves jobs waiting. Out: the same, or one that places more of them, made with every share
//! at its least; on nodes that got something new the rest is then divided anew, elsewhere nothing changes.

use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_common::units::MilliCores;
use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Seat, divide, has_class, seats};
use crate::ledger::{Held, HeldJobs, UNKNOWN};
use crate::plan::{Decision, JobPlan};
use crate::profile::{Profile, decide_once};
use crate::snapshot::{Change, Running, Snapshot};
use crate::world::World;

/// Decides again without what shares have above their least, if that places more jobs.
pub(crate) fn give_way(default: Profile, snapshot: &Snapshot, decision: Decision) -> Decision {
    let waits = decision.unplaced.iter().any(|unplaced| !unplaced.never);
    if !waits || !snapshot.running.iter().any(|running| has_class(&running.job, &running.plan)) {
        return decision;
    }
    let world = World::of(snapshot);
    let held: HeldJobs<'_> =
        snapshot.running.iter().map(|running| (running.job.name.clone(), Held::of(running))).collect();
    let seats = seats(&world, &held);
    if seats.iter().all(|seat| seat.held <= seat.claim.least) {
        return decision;
    }
    let running = snapshot.running.iter().map(|running| at_least(running, &seats)).collect();
    let tight = Snapshot { running, ..snapshot.clone() };
    let again = decide_once(default, &tight);
    if again.unplaced.len() >= decision.unplaced.len() {
        return decision;
    }
    refilled(&world, snapshot, (&tight, again))
}

/// The job with its shares at their least.
fn at_least(running: &Running, seats: &[Seat]) -> Running {
    let mut running = running.clone();
    for seat in seats.iter().filter(|seat| seat.job == running.job.name && seat.held > seat.claim.least) {
        if let Some(share) = running.plan.shares.get_mut(&seat.task) {
            share.cpu = MilliCores(u32::try_from(seat.claim.least).unwrap_or(u32::MAX));
        }
    }
    running
}

/// The decision with the shares that there is room for.
fn refilled(world: &World<'_>, snapshot: &Snapshot, (tight, again): (&Snapshot, Decision)) -> Decision {
    let touched: BTreeSet<usize> = again
        .plans
        .iter()
        .flat_map(|plan| plan.placement.values())
        .filter_map(|node| world.index(node))
        .collect();
    let mut held = afterwards(snapshot, (tight, &again));
    for (before, small) in snapshot.running.iter().zip(&tight.running) {
        if let Some(own) = held.get_mut(&before.job.name) {
            let untouched = |node: &NodeId| world.index(node).is_some_and(|node| !touched.contains(&node));
            restore(own.plan.to_mut(), (&before.plan, &small.plan), untouched);
        }
    }
    for plan in divide(world, &held, &|division| division.seats.iter().any(|it| touched.contains(&it.node))) {
        if let Some(own) = held.get_mut(&plan.job) {
            own.plan = Cow::Owned(plan);
        }
    }
    let as_before = |plan: &JobPlan| snapshot.running.iter().any(|running| running.plan == *plan);
    // Those that were placed in the order in which they were.
    let decided = again.plans.iter().map(|plan| &plan.job);
    let order = decided.chain(snapshot.running.iter().map(|running| &running.job.name));
    let mut seen = BTreeSet::new();
    let plans = order.filter(|job| seen.insert(*job)).filter_map(|job| held.get(job));
    let plans = plans.map(|own| own.plan.clone().into_owned()).filter(|plan| !as_before(plan)).collect();
    Decision { plans, unplaced: again.unplaced }
}

/// Everything that holds resources after the decision.
fn afterwards<'a>(snapshot: &'a Snapshot, (tight, again): (&Snapshot, &Decision)) -> HeldJobs<'a> {
    let decided = |job: &JobName| again.plans.iter().find(|plan| plan.job == *job);
    let mut held: HeldJobs<'_> = HeldJobs::new();
    for (before, small) in snapshot.running.iter().zip(&tight.running) {
        let plan = decided(&before.job.name).unwrap_or(&small.plan).clone();
        held.insert(before.job.name.clone(), Held { plan: Cow::Owned(plan), ..Held::of(before) });
    }
    for waiting in &snapshot.waiting {
        let Some(plan) = decided(&waiting.job.name).cloned().map(Cow::Owned) else { continue };
        let (job, profiles, change) = (&waiting.job, &waiting.profiles, Change::Placement);
        // One that runs and is planned anew.
        let enough = held.get(&job.name).map_or(&UNKNOWN, |own| own.enough);
        held.insert(job.name.clone(), Held { job, plan, profiles, change, enough });
    }
    held
}

/// Gives tasks that were brought to their least and stay on such nodes what they had.
fn restore(plan: &mut JobPlan, (before, small): (&JobPlan, &JobPlan), untouched: impl Fn(&NodeId) -> bool) {
    for (task, share) in &before.shares {
        let node = plan.placement.get(task);
        let stays = node.is_some_and(&untouched) && node == before.placement.get(task);
        if stays && small.shares.get(task) != Some(share) {
            plan.shares.insert(task.clone(), *share);
        }
    }
}
