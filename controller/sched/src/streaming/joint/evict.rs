//! Places that one job takes and another gives up: both seats are judged as one change.
//!
//! Two kinds of places are asked for. The first tasks of a job shrink its items most, and they belong where the
//! items are made; and memory on fast nodes belongs to those who gain most by it, not to those who came
//! first. Where another job's tasks fill such a node, those are tried elsewhere.

use super::super::Case;
use super::improve::Improve;
use super::member::{Member, Seat};
use crate::filter::{Amount, Fit, holds, refusal};
use crate::ledger::Ledger;
use crate::snapshot::Change;
use std::collections::BTreeSet;

/// First tasks that may be wanted at the source.
const FIRST_TASKS: usize = 2;

impl Improve<'_, '_> {
    /// Tries all members that are in the way; false where none is asked for.
    pub(super) fn evict(&mut self, job: usize) -> bool {
        let member = &self.room.members[job];
        let source = member.graph.fixed(0).and_then(|node| self.room.world.index(node));
        let Some(source) = source.filter(|_| member.change == Change::Placement) else { return false };
        let first = 1..member.graph.vertices.len().min(FIRST_TASKS + 1);
        let allowed = |vertex: &usize| {
            let wanted = &member.graph.vertices[*vertex];
            refusal((source, self.room.world.nodes[source]), &wanted.need, wanted, Fit::AtLeast).is_none()
        };
        let away: Vec<usize> =
            first.filter(|vertex| member.seat.nodes[*vertex] != source).filter(allowed).collect();
        for count in (1..=away.len()).rev() {
            let mut wanted = self.room.members[job].seat.nodes.clone();
            away[..count].iter().for_each(|vertex| wanted[*vertex] = source);
            self.give_way(job, &wanted, source);
        }
        !away.is_empty()
    }

    /// Tries the place that the job would take if no member were in its way. Where only one node is too
    /// full for that, those who fill it are tried elsewhere. True if none is in the way.
    pub(super) fn claim(&mut self, job: usize) -> bool {
        let member = &self.room.members[job];
        if member.change < Change::Placement {
            return false;
        }
        let stays = |other: usize, member: &Member<'_>| other != job && member.change < Change::Placement;
        let open = self.room.ledger_of(stays, &self.items);
        let start = member.seat.nodes.clone();
        let Some(seat) = self.walk(&open, job, start.clone()) else { return false };
        let free = self.room.ledger(Some(job), &self.items).free;
        let member = &self.room.members[job];
        let full = |node: &usize| !holds(&free[*node], &need(member, &seat.nodes, *node));
        let full: BTreeSet<usize> = seat.nodes.iter().copied().filter(full).collect();
        match (full.len(), full.first()) {
            (1, Some(node)) => self.give_way(job, &seat.nodes, *node),
            (0, _) if seat.nodes != start => self.judge(vec![(job, seat)]),
            _ => {}
        }
        full.is_empty()
    }

    /// The job in the wanted placement, and each other member in turn elsewhere than on the node.
    fn give_way(&mut self, job: usize, wanted: &[usize], node: usize) {
        let Some(seat) = self.routed(job, wanted.to_vec()) else { return };
        let free = self.room.ledger(Some(job), &self.items).free[node];
        let need = need(&self.room.members[job], wanted, node);
        for other in (0..self.room.members.len()).filter(|other| *other != job) {
            let Some(leaving) = leaving(&self.room.members[other], &need, (node, free)) else { continue };
            if let Some(moved) = self.without((job, wanted), (other, &leaving)) {
                self.judge(vec![(job, seat.clone()), (other, moved)]);
            }
        }
    }

    /// Another member's seat when these of its tasks leave for the job in the wanted placement.
    fn without(
        &mut self,
        (job, wanted): (usize, &[usize]),
        (other, leaving): (usize, &[usize]),
    ) -> Option<Seat> {
        let mut ledger = self.room.ledger(Some(other), &self.items);
        let own = &self.room.members[job];
        for (vertex, (from, to)) in own.graph.vertices.iter().zip(own.seat.nodes.iter().zip(wanted)) {
            ledger.free[*from] += vertex.need;
            ledger.free[*to] -= vertex.need;
        }
        let start = self.elsewhere(other, leaving, &ledger)?;
        self.walk(&ledger, other, start)
    }

    /// A start for a member whose tasks leave a node: each to a node where others of it are, or the
    /// fastest, with room.
    fn elsewhere(&self, job: usize, leaving: &[usize], ledger: &Ledger) -> Option<Vec<usize>> {
        let member = &self.room.members[job];
        let case = Case { world: self.room.world, graph: &member.graph, ledger };
        let mut nodes = member.seat.nodes.clone();
        let mut free = ledger.free.clone();
        for (index, vertex) in member.graph.vertices.iter().enumerate() {
            if !leaving.contains(&index) {
                free[nodes[index]] -= vertex.need;
            }
        }
        for vertex in leaving {
            let need = member.graph.vertices[*vertex].need;
            let refusals = case.refusals(*vertex, ledger, Fit::AtLeast);
            let open = (0..free.len()).filter(|node| holds(&free[*node], &need) && refusals[*node].is_none());
            let used =
                |node: &usize| nodes.iter().enumerate().any(|(at, of)| of == node && !leaving.contains(&at));
            let speed = |node: &usize| self.room.world.nodes[*node].speed();
            let best =
                open.max_by(|x, y| used(x).cmp(&used(y)).then(speed(x).total_cmp(&speed(y))).then(y.cmp(x)))?;
            free[best] -= need;
            nodes[*vertex] = best;
        }
        Some(nodes)
    }
}

/// What a placement takes of a node.
fn need(member: &Member<'_>, nodes: &[usize], node: usize) -> Amount {
    let mut need = Amount::default();
    let here = member.graph.vertices.iter().zip(nodes).filter(|(_, at)| **at == node);
    here.for_each(|(vertex, _)| need += vertex.need);
    need
}

/// The member's last tasks on the node, as many as have to leave; none if the need fits anyhow, or never.
fn leaving(member: &Member<'_>, need: &Amount, (node, free): (usize, Amount)) -> Option<Vec<usize>> {
    if member.change < Change::Placement || holds(&free, need) {
        return None;
    }
    let mut free = free;
    let mut leaving = Vec::new();
    for (index, at) in member.seat.nodes.iter().enumerate().rev() {
        if holds(&free, need) {
            break;
        }
        if *at == node && member.graph.fixed(index).is_none() {
            free += member.graph.vertices[index].need;
            leaving.push(index);
        }
    }
    holds(&free, need).then_some(leaving)
}
