//! Jobs that wait for what shares above the least hold: those that run give way.
//!
//! In: a decision that leaves jobs waiting. Out: the same, or one that places more of them, made with every share
//! at its least; on nodes that got something new the rest is then divided anew, elsewhere nothing changes.

use edgeloom_common::units::MilliCores;
use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Seat, divide, seats};
use crate::ledger::{Held, HeldJobs};
use crate::plan::{Decision, JobPlan, Share};
use crate::profile::{Profile, decide_once};
use crate::snapshot::{Change, Running, Snapshot};
use crate::world::World;

/// Decides again without what shares have above their least, if that places more jobs.
pub(crate) fn give_way(default: Profile, snapshot: &Snapshot, decision: Decision) -> Decision {
    if decision.unplaced.iter().all(|unplaced| unplaced.never) {
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
    let placed = |plan: &JobPlan| snapshot.running.iter().all(|running| running.job.name != plan.job);
    let news = again.plans.iter().filter(|plan| placed(plan)).flat_map(|plan| plan.placement.values());
    let touched: BTreeSet<usize> = news.filter_map(|node| world.index(node)).collect();
    let mut held: HeldJobs<'_> = HeldJobs::new();
    for (before, small) in snapshot.running.iter().zip(&tight.running) {
        let changed = again.plans.iter().find(|plan| plan.job == before.job.name);
        let mut plan = changed.unwrap_or(&small.plan).clone();
        restore(&mut plan, &before.plan, |node| !touched.contains(&node), world);
        held.insert(before.job.name.clone(), Held { plan: Cow::Owned(plan), ..Held::of(before) });
    }
    for waiting in &snapshot.waiting {
        if let Some(plan) = again.plans.iter().find(|plan| plan.job == waiting.job.name) {
            let (job, profiles) = (&waiting.job, &waiting.profiles);
            let enough = &crate::ledger::UNKNOWN;
            let own =
                Held { job, plan: Cow::Owned(plan.clone()), profiles, change: Change::Placement, enough };
            held.insert(job.name.clone(), own);
        }
    }
    for plan in
        divide(world, &held, &|division| division.seats.iter().any(|seat| touched.contains(&seat.node)))
    {
        if let Some(own) = held.get_mut(&plan.job) {
            own.plan = Cow::Owned(plan);
        }
    }
    let as_before = |plan: &JobPlan| snapshot.running.iter().any(|running| running.plan == *plan);
    // Those that were placed in the order in which they were.
    let order =
        again.plans.iter().map(|plan| &plan.job).chain(snapshot.running.iter().map(|it| &it.job.name));
    let mut seen = BTreeSet::new();
    let plans = order.filter(|job| seen.insert(*job)).filter_map(|job| held.get(job));
    let plans = plans.map(|own| own.plan.clone().into_owned()).filter(|plan| !as_before(plan)).collect();
    Decision { plans, unplaced: again.unplaced }
}

/// Gives tasks that stay on such nodes their share of before.
fn restore(plan: &mut JobPlan, before: &JobPlan, untouched: impl Fn(usize) -> bool, world: &World<'_>) {
    let stays =
        |task, node| before.placement.get(task) == Some(node) && world.index(node).is_some_and(&untouched);
    let tasks = plan.placement.iter().filter(|(task, node)| stays(*task, *node));
    let shares: Vec<(_, Share)> =
        tasks.filter_map(|(task, _)| Some((task.clone(), *before.shares.get(task)?))).collect();
    plan.shares.extend(shares);
}
