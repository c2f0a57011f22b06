//! A newcomer's seat: candidates of the placement search, judged over all members.

use super::super::online::{Outcome, no_bandwidth};
use super::super::params::EQUAL;
use super::super::search::{Found, candidates};
use super::super::{Case, Placed, Stuck};
use super::improve::improve;
use super::member::{Member, Seat, seat, sharing};
use super::plans::plans;
use super::room::{Room, starves_nobody};
use crate::images::PullCosts;
use crate::job_graph::JobGraph;
use crate::ledger::HeldJobs;
use crate::plan::JobPlan;
use crate::snapshot::Change;
use crate::world::World;

/// The newcomer's plan, and those of running jobs that make room for it.
pub(crate) fn newcomer(case: &Case<'_>, others: &HeldJobs<'_>, pulls: &PullCosts) -> Result<Outcome, Stuck> {
    let graph = sharing(case.world, case.graph.clone());
    let mut room = Room::of(case.world, others);
    let before = room.items_per_s(&[]);
    let ledger = room.ledger(None, &before);
    let own = Case { graph: &graph, ledger: &ledger, ..*case };
    let links = room.links_for(None, &before);
    let found = match candidates(&own, &links, pulls, &mut room.tables) {
        Ok(found) => found,
        Err(stuck) => make_room(&mut room, (&graph, pulls), &before).ok_or(stuck)?,
    };
    let first = found[0].placed.nodes.clone();
    let empty = seat(case.world, &graph, first.clone(), Vec::new());
    let change = Change::Placement;
    let pulls = pulls.clone();
    room.members.push(Member { held: None, graph: graph.clone(), change, pulls, seat: empty, why: None });
    let Some(seat) = best(&room, found, &before) else {
        return Err(no_bandwidth(case, &first));
    };
    if let Some(member) = room.members.last_mut() {
        member.seat = seat;
    }
    improve(&mut room);
    let mut plans = plans(&room);
    let at = plans.iter().position(|plan| plan.job == case.graph.job.name);
    let plan = plans.swap_remove(at.expect("a newcomer always has a plan"));
    plans.sort_by(|x, y| x.job.cmp(&y.job));
    Ok(Outcome { plan, changed: plans })
}

/// Seats a running member elsewhere, so that the newcomer fits: the first, in the order of their throughputs,
/// for whom that is possible. Answers with the newcomer's candidates then.
fn make_room(
    room: &mut Room<'_>,
    (graph, pulls): (&JobGraph<'_>, &PullCosts),
    items: &[f64],
) -> Option<Vec<Found>> {
    let mut order: Vec<usize> = (0..room.members.len()).collect();
    order.sort_by(|x, y| items[*x].total_cmp(&items[*y]).then(x.cmp(y)));
    let nothing = PullCosts::default();
    for other in order {
        if room.members[other].change < Change::Placement {
            continue;
        }
        let links = room.links_for(Some(other), items);
        let mut ledger = room.ledger(Some(other), items);
        let newcomer = Case { world: room.world, graph, ledger: &ledger };
        let Ok(found) = candidates(&newcomer, &links, pulls, &mut room.tables) else { continue };
        for (vertex, node) in found[0].placed.nodes.iter().enumerate() {
            ledger.hold(graph, vertex, *node);
        }
        let member = &room.members[other];
        let case = Case { world: room.world, graph: &member.graph, ledger: &ledger };
        let Ok(moved) = candidates(&case, &links, &nothing, &mut room.tables) else { continue };
        let Some(Found { placed, flows }) = moved.into_iter().next() else { continue };
        let seat = seat(room.world, &member.graph, placed.nodes, flows);
        let member = &mut room.members[other];
        member.seat = Seat { reasons: placed.reasons, ..seat };
        member.why = Some(format!("{} finds room only so", graph.job.name));
        return found.into_iter().next().map(|first| vec![first]);
    }
    None
}

/// The candidate that is worth most to all members; the first, which is the cheapest, of equals. None takes the last
/// items of a member that makes some before. The newcomer is the last member.
fn best(room: &Room<'_>, found: Vec<Found>, before: &[f64]) -> Option<Seat> {
    let newcomer = room.members.len() - 1;
    let mut best: Option<(f64, Seat)> = None;
    for Found { placed: Placed { nodes, reasons }, flows } in found {
        let seat = Seat { reasons, ..seat(room.world, &room.members[newcomer].graph, nodes, flows) };
        let trial = [(newcomer, seat)];
        let items = room.items_per_s(&trial);
        let worth = room.worth(&items, &trial);
        let [(_, seat)] = trial;
        let works = room.works(&seat, items[newcomer]) && starves_nobody(before, &items);
        if works && best.as_ref().is_none_or(|(top, _)| worth > top * (1.0 + EQUAL / 10.0)) {
            best = Some((worth, seat));
        }
    }
    best.map(|(_, seat)| seat)
}

/// Plans of running jobs that change when none comes.
pub(crate) fn rebalance(world: &World<'_>, held: &HeldJobs<'_>) -> Vec<JobPlan> {
    let mut room = Room::of(world, held);
    improve(&mut room);
    plans(&room)
}
