//! A place at its source for a job that ships raw items, from a job that can do without.
//!
//! The first tasks of a job shrink its items most, and they belong where the items are made. Where another
//! job's tasks fill that node, those are tried elsewhere: both seats are judged as one change.

use super::super::Case;
use super::improve::Improve;
use super::member::Member;
use crate::filter::{Amount, Fit, holds, refusal};
use crate::ledger::Ledger;
use crate::snapshot::Change;

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
            let mut wanted = member_nodes(&self.room.members[job]);
            away[..count].iter().for_each(|vertex| wanted[*vertex] = source);
            for other in 0..self.room.members.len() {
                if other != job {
                    self.exchange(job, &wanted, (source, other));
                }
            }
        }
        !away.is_empty()
    }

    /// The job in the wanted placement, and one other member where it then finds its place.
    fn exchange(&mut self, job: usize, wanted: &[usize], (node, other): (usize, usize)) {
        let ledger = self.room.ledger(Some(job), &self.items);
        let need = need(&self.room.members[job], wanted, node);
        let Some(leaving) = leaving(&self.room.members[other], &need, (node, ledger.free[node])) else {
            return;
        };
        let mut without = self.room.ledger(Some(other), &self.items);
        let own = &self.room.members[job];
        for (vertex, (from, to)) in own.graph.vertices.iter().zip(own.seat.nodes.iter().zip(wanted)) {
            without.free[*from] += vertex.need;
            without.free[*to] -= vertex.need;
        }
        let Some(start) = self.elsewhere(other, &leaving, &without) else { return };
        let Some(moved) = self.walk(&without, other, start) else { return };
        if let Some(seat) = self.routed(job, wanted.to_vec()) {
            self.judge(vec![(job, seat), (other, moved)]);
        }
    }

    /// A start for a member whose tasks leave a node: each to a node where others of it are, or the
    /// fastest, with room.
    fn elsewhere(&self, job: usize, leaving: &[usize], ledger: &Ledger) -> Option<Vec<usize>> {
        let member = &self.room.members[job];
        let case = Case { world: self.room.world, graph: &member.graph, ledger };
        let mut nodes = member_nodes(member);
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

fn member_nodes(member: &Member<'_>) -> Vec<usize> {
    member.seat.nodes.clone()
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
