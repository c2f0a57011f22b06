//! Counters of nodes go into open records: of containers that run, and of runs that have ended.
//!
//! In: what a node reports and observed, before anything else is made of it: a record is closed once its container is
//! gone. Nodes tell a run's last count, which no report has, several times, and runs that followed may have been
//! counted in between.

use super::super::Owner;
use crate::usage::{Bounds, Open, Reading};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{Observed, Report, TaskTotal};
use edgeloom_common::units::MilliCores;
use edgeloom_common::usage::UsageEnd;

/// Counters of one message that are looked at.
const TOTALS_MAX: usize = 4_096;

impl Owner {
    /// Takes in what a node counted.
    pub(crate) fn count(&mut self, node: &NodeId, report: &Report) {
        let Some(bounds) = self.bounds(node).filter(|_| !report.totals.is_empty()) else { return };
        if !self.accounts_begun() {
            return;
        }
        for total in report.totals.iter().take(TOTALS_MAX) {
            self.count_up_to(node, total, (bounds, Open::takes));
        }
    }

    /// What a node can have; nothing is counted of one that did not tell.
    fn bounds(&self, node: &NodeId) -> Option<Bounds> {
        let inventory = self.nodes.table.get(node)?.inventory.as_ref()?;
        Some(Bounds { cpu: inventory.cpu.max(MilliCores(1_000)), memory: inventory.memory })
    }

    /// Counts a run up to here in the record of its container, if that takes it.
    fn count_up_to(
        &mut self,
        node: &NodeId,
        total: &TaskTotal,
        (bounds, takes): (Bounds, fn(&Open, &Reading) -> bool),
    ) {
        let reading = Reading::of(total, bounds);
        let Some((key, limit)) = self.opened(node, (&total.job, &total.task), &reading.container) else {
            return;
        };
        let (now_ms, book) = (self.now_ms, &self.state.model.usage);
        if let Some(open) = self.accounts.open.get_mut(&key).filter(|open| takes(open, &reading)) {
            if open.reading().is_none() && book.has_rested(&key, &reading) {
                open.interrupt();
            }
            open.take(reading, (limit, bounds), now_ms);
            self.accounts.changed.insert(key);
        }
    }

    /// Takes in what runs used to their ends; what is counted already is not counted again.
    pub(crate) fn count_ends(&mut self, node: &NodeId, observed: &Observed) {
        let Some(bounds) = self.bounds(node).filter(|_| !observed.ended.is_empty()) else { return };
        if !self.accounts_begun() {
            return;
        }
        for total in observed.ended.iter().take(TOTALS_MAX) {
            if !self.is_closed(&total.container) {
                self.count_up_to(node, total, (bounds, Open::takes_last));
            }
        }
    }

    /// The container had its record, which is closed.
    fn is_closed(&self, container: &str) -> bool {
        let over = |end| matches!(end, UsageEnd::Ended | UsageEnd::UntilLastHeard);
        let closed = &self.model().usage.closed;
        closed.iter().any(|record| record.container == container && over(record.end))
            && !self.accounts.open.values().any(|open| open.view().container == container)
    }
}
