//! Nodes that follow the load, where the operator lets them: emptied when the others suffice, and taken back before
//! jobs wait.
//!
//! In: what is requested of nodes, jobs that find no room. Out: cordons of the load's own; those of operators are
//! left alone. A node whose tasks turn out to have no other place is taken back, too.

use super::Owner;
use crate::cordon::Cordon;
use crate::follow::{NodeLoad, Step, can_go, to_take_back};
use crate::journal::JournalError;
use crate::model::{Event, JobRecord, Model};
use crate::planner::{Outcome, PlanError};
use crate::views::requested;
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::CordonedBy;
use edgeloom_sched::consolidate::{Bounds, consolidate};
use std::collections::BTreeMap;

/// One node at a time, and so many are tried: the owner waits for it.
const BOUNDS: Bounds = Bounds { emptied: 1, tried: 8 };

impl Owner {
    /// Once a second, while no change is on its way.
    pub(super) fn follow_load(&mut self) {
        if let Err(error) = self.try_follow_load() {
            tracing::error!(%error, "nodes do not follow the load");
        }
    }

    fn try_follow_load(&mut self) -> Result<(), JournalError> {
        let Some(bounds) = self.settings.follow.filter(|_| self.model().settled()) else { return Ok(()) };
        if let Some((node, reason)) = self.stuck_by_load() {
            return self.lift_cordon(&node, &format!("takes tasks again, since one has to stay: {reason}"));
        }
        let under_way = self.by_load().into_iter().any(|node| self.has_tasks(&node));
        let loads = self.loads();
        match self.follow.look(&bounds, &loads, self.now_ms) {
            Step::Nothing => Ok(()),
            Step::TakeBack(node) => self.lift_cordon(&node, "takes tasks again, since much is requested"),
            Step::Empty if under_way => Ok(()),
            Step::Empty => {
                self.follow.again();
                let (profile, snapshot) = self.consolidation();
                let found = consolidate(profile, &snapshot, BOUNDS).emptied.into_iter().next();
                let Some(node) = found.map(|it| it.node).filter(|node| can_go(&bounds, &loads, node)) else {
                    return Ok(());
                };
                let cordon = Cordon { since_ms: self.now_ms, by: CordonedBy::Load, drain: true };
                self.set_cordon(&node, cordon)?;
                self.advance();
                Ok(())
            }
        }
    }

    /// Nodes that the load has emptied.
    fn by_load(&self) -> Vec<NodeId> {
        let cordons = self.model().cordons.iter().filter(|(_, cordon)| cordon.by == CordonedBy::Load);
        cordons.map(|(node, _)| node.clone()).collect()
    }

    fn has_tasks(&self, node: &NodeId) -> bool {
        self.cordon_view(node).is_some_and(|view| !view.tasks.is_empty())
    }

    /// A node that the load wants to empty, and a task that has to stay there.
    fn stuck_by_load(&self) -> Option<(NodeId, String)> {
        self.by_load().into_iter().find_map(|node| {
            let task = self.cordon_view(&node)?.tasks.into_iter().find(|task| !task.reason.is_empty())?;
            Some((node, format!("{}/{}: {}", task.job, task.task, task.reason)))
        })
    }

    /// Nodes that are there and that no operator keeps from taking tasks.
    fn loads(&self) -> Vec<NodeLoad> {
        let ready = self.nodes.table.iter().filter(|(_, known)| known.ready());
        let load = |(node, known): (&NodeId, &crate::nodes::NodeRecord)| {
            let inventory = known.inventory.as_ref()?;
            let cordon = self.model().cordons.get(node);
            if cordon.is_some_and(|cordon| cordon.by == CordonedBy::Operator) {
                return None;
            }
            let (cpu, memory) = requested(self.model(), node);
            Some(NodeLoad {
                node: node.clone(),
                has: (u64::from(inventory.cpu.0), inventory.memory.0),
                requested: (u64::from(cpu), memory),
                active: cordon.is_none(),
            })
        };
        ready.filter_map(load).collect()
    }

    /// As [`decide`](Self::decide), with nodes taken back that would let all of these jobs be placed: the fewest. Says
    /// which; a job that waits all the same opens none.
    pub(super) fn decide_with_all(
        &self,
        records: &[&JobRecord],
    ) -> (Vec<NodeId>, Result<Outcome, PlanError>) {
        let outcome = self.decide(records);
        let waits = outcome.as_ref().is_ok_and(|found| found.unplaced.iter().any(|it| !it.never));
        if self.settings.follow.is_none() || !waits {
            return (Vec::new(), outcome);
        }
        let (mut model, mut loads, mut opened) = (self.model().clone(), self.loads(), Vec::new());
        while let Some(node) = to_take_back(&loads) {
            model.apply(Event::Uncordoned { node: node.clone() });
            loads.iter_mut().filter(|it| it.node == node).for_each(|it| it.active = true);
            opened.push(node);
            match self.outcome_in(&model, records) {
                Ok(found) if found.unplaced.iter().all(|it| it.never) => return (opened, Ok(found)),
                _ => {}
            }
        }
        (Vec::new(), outcome)
    }

    fn outcome_in(&self, model: &Model, records: &[&JobRecord]) -> Result<Outcome, PlanError> {
        let down = self.nodes.down(&model.topology);
        self.planner(model, &down, &BTreeMap::new()).outcome(records)
    }

    /// Takes back nodes for jobs that would wait.
    pub(super) fn open(&mut self, nodes: &[NodeId]) -> Result<(), JournalError> {
        nodes.iter().try_for_each(|node| self.lift_cordon(node, "takes tasks again, since a job would wait"))
    }
}
