//! From seats and throughputs to plans: rates, shares, what is left handed out, and words.

use super::super::online::{Strategy, plan, whole_bits};
use super::super::params::{LEAST_RAISE, LEAST_RATE_BPS};
use super::super::{Case, Placed, wire_bits};
use super::member::Member;
use super::room::Room;
use super::shares::{Shares, shares};
use crate::ledger::Ledger;
use crate::opt::max_min::{Consumer, fill};
use crate::plan::JobPlan;

/// Plans of newcomers, and of running members whose plan changes.
pub(super) fn plans(room: &Room<'_>) -> Vec<JobPlan> {
    let items = steady(room);
    let rates = rates(room, &items);
    let shares = shares(room, &items);
    let mut changed = Vec::new();
    for (index, (member, rates)) in room.members.iter().zip(rates).enumerate() {
        let graph = member.graph.clone().with_shares(&shares[index]);
        let with = |ledger: &Ledger| {
            let case = Case { world: room.world, graph: &graph, ledger };
            changed_plan(&case, member, (&rates, &shares[index]))
        };
        // What is predicted depends on what the others hold, which takes long to add up; whether the plan is another does not.
        if with(&room.fixed).is_some() {
            changed.extend(with(&room.ledger(Some(index), &items)));
        }
    }
    changed
}

/// Throughputs; a running job's stays where little would be gained.
fn steady(room: &Room<'_>) -> Vec<f64> {
    let mut items = room.items_per_s(&[]);
    for (items, member) in items.iter_mut().zip(&room.members) {
        let Some(held) = member.held.map(|held| held.plan.prediction.items_per_s) else { continue };
        if *items >= held && *items < held * (1.0 + LEAST_RAISE) {
            *items = held;
        }
    }
    items
}

/// A flow whose rate is still to be found: its member, its place there, its pools.
type Hungry = (usize, usize, Vec<usize>);

/// Per member and flow: what the throughput needs, what a running flow can keep, then the rest max-min.
fn rates(room: &Room<'_>, items: &[f64]) -> Vec<Vec<f64>> {
    let mut left = room.links.clone();
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for (member, items) in room.members.iter().zip(items) {
        let needed = member.seat.flows.iter().map(|flow| wire_bits(room.world, &flow.edge) * items);
        rates.push(needed.collect());
    }
    let pools = |job: usize, flow: usize| -> Vec<usize> {
        room.world.graph.pools(&room.members[job].seat.flows[flow].path).collect()
    };
    for (job, rates) in rates.iter().enumerate() {
        for (flow, rate) in rates.iter().enumerate() {
            pools(job, flow).into_iter().for_each(|pool| left[pool] -= rate);
        }
    }
    let mut hungry: Vec<Hungry> = Vec::new();
    for (job, member) in room.members.iter().enumerate() {
        for (at, flow) in member.seat.flows.iter().enumerate() {
            let (pools, more) = (pools(job, at), flow.rate - rates[job][at]);
            if flow.rate > 0.0 && more.abs() <= 1.0 {
                rates[job][at] = flow.rate.min(rates[job][at]);
            } else if more > 0.0 && pools.iter().all(|pool| left[*pool] >= more) {
                rates[job][at] = flow.rate;
                pools.into_iter().for_each(|pool| left[pool] -= more);
            } else {
                hungry.push((job, at, pools));
            }
        }
    }
    hand_out(&mut rates, hungry, left);
    whole(room, &mut rates);
    rates
}

/// Whole bits, at least one each: where a link is full already, that one comes from the widest flow on it.
fn whole(room: &Room<'_>, rates: &mut [Vec<f64>]) {
    let mut on: Vec<Vec<(usize, usize)>> = vec![Vec::new(); room.links.len()];
    for (job, (member, rates)) in room.members.iter().zip(rates.iter_mut()).enumerate() {
        for (flow, (seated, rate)) in member.seat.flows.iter().zip(rates).enumerate() {
            *rate = whole_bits(*rate).as_f64();
            room.world.graph.pools(&seated.path).for_each(|pool| on[pool].push((job, flow)));
        }
    }
    for (flows, link) in on.into_iter().zip(&room.links) {
        let over = flows.iter().map(|(job, flow)| rates[*job][*flow]).sum::<f64>() - link;
        let widest = flows.into_iter().max_by(|x, y| rates[x.0][x.1].total_cmp(&rates[y.0][y.1]));
        if let Some((job, flow)) = widest.filter(|_| over > 0.0) {
            rates[job][flow] = (rates[job][flow] - over.ceil()).max(1.0);
        }
    }
}

/// Gives what is left of the links to these flows, max-min.
fn hand_out(rates: &mut [Vec<f64>], hungry: Vec<Hungry>, mut left: Vec<f64>) {
    left.iter_mut().filter(|left| **left < LEAST_RATE_BPS).for_each(|left| *left = 0.0);
    let consumer = |(_, _, pools): &Hungry| Consumer {
        uses: pools.iter().map(|pool| (*pool, 1.0)).collect(),
        weight: 1.0,
        limit: f64::INFINITY,
    };
    let consumers: Vec<Consumer> = hungry.iter().map(consumer).collect();
    for ((job, flow, _), more) in hungry.into_iter().zip(fill(&consumers, &left)) {
        rates[job][flow] += more;
    }
}

/// The member's plan with these rates and shares, if it is another than it has. A running job keeps its
/// reasons, after the one for the change, if its tasks or paths change.
fn changed_plan(case: &Case<'_>, member: &Member<'_>, (rates, shares): (&[f64], &Shares)) -> Option<JobPlan> {
    let mut flows = member.seat.flows.clone();
    flows.iter_mut().zip(rates).for_each(|(flow, rate)| flow.rate = *rate);
    let placed = Placed { nodes: member.seat.nodes.clone(), reasons: member.seat.reasons.clone() };
    let mut new = plan(case, Strategy::Edgeloom.name(), placed, flows);
    new.shares.extend(shares.iter().map(|(task, share)| (task.clone(), *share)));
    let Some(held) = member.held.map(|held| &held.plan) else { return Some(new) };
    if new.flows == held.flows && new.placement == held.placement && new.shares == held.shares {
        return None;
    }
    let moved = new.placement != held.placement;
    let paths = |plan: &JobPlan| plan.flows.iter().map(|flow| flow.path.clone()).collect::<Vec<_>>();
    if moved || paths(&new) != paths(held) {
        let what = if moved { "tasks moved" } else { "flows rerouted" };
        let gain = member.why.clone().unwrap_or_default();
        new.reasons.insert(0, format!("{what}: {gain}"));
    } else {
        new.reasons.clone_from(&held.reasons);
    }
    Some(new)
}
