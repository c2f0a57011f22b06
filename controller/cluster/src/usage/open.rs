//! A record that goes on: what was counted so far, and up to which reading.

use super::charge::{charge, owed};
use super::reading::{Bounds, Reading, byte_s, container_id};
use crate::record::JobRecord;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::price::Micros;
use edgeloom_common::usage::{Charge, Tariff, UsageEnd, UsageView};
use edgeloom_sched::plan::Share;
use serde::{Deserialize, Serialize};

/// Whose record it is: job with the time of its acceptance, task, node.
pub(crate) type Key = (JobName, u64, TaskName, NodeId);

/// From where on counters of the next reading count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Base {
    /// From the start of the run.
    Start,
    /// From the next reading on: what was before is nobody's, or counted already.
    Next,
    Seen(Reading),
}

/// An open record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    view: UsageView,
    base: Base,
    /// The limits since the last reading.
    limit: Share,
    /// Credit that records before this one could not take up.
    #[serde(default)]
    owed: Micros,
    /// Pulled bytes that are in records before this one.
    #[serde(default)]
    pulled_before: u64,
}

/// With what a record begins.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) record: &'a JobRecord,
    pub(crate) task: &'a TaskName,
    pub(crate) node: &'a NodeId,
    pub(crate) container: &'a str,
    pub(crate) limit: Share,
    pub(crate) now_ms: u64,
    /// It is older than the accounts: what was before is lost, or in others.
    pub(crate) late: bool,
}

impl Open {
    pub(crate) fn new(opening: &Opening<'_>) -> Self {
        let Opening { record, task, node, container, limit, now_ms, late } = *opening;
        let placed = record.placed.get(task).filter(|_| !late);
        let original = |name: &TaskName| record.job.tasks.get(name).and_then(|task| task.copy_of.clone());
        let copy_of = original(task);
        let first = copy_of.as_ref().unwrap_or(task);
        let further = record.job.tasks.values().filter(|task| task.copy_of.as_ref() == Some(first)).count();
        let view = UsageView {
            number: None,
            job: record.job.name.clone(),
            task: task.clone(),
            node: node.clone(),
            container: container_id(container),
            copies: u32::try_from(1 + further).unwrap_or(u32::MAX),
            copy_of,
            sla: record.job.sla,
            accepted_ms: record.since_ms,
            from_ms: now_ms,
            until_ms: None,
            end: UsageEnd::Open,
            heard_ms: now_ms,
            runs: 0,
            queued_ms: placed.map_or(0, |placed| placed.queued_ms),
            starting_ms: placed.map_or(0, |placed| now_ms.saturating_sub(placed.at_ms)),
            running_ms: 0,
            cpu_us: 0,
            memory_byte_s: 0,
            reserved_cpu_us: 0,
            reserved_memory_byte_s: 0,
            sent_bytes: 0,
            received_bytes: 0,
            pulled_bytes: 0,
            charge: None,
        };
        let base = if late { Base::Next } else { Base::Start };
        Self { view, base, limit, owed: Micros(0), pulled_before: 0 }
    }

    pub(crate) fn key(&self) -> Key {
        let view = &self.view;
        (view.job.clone(), view.accepted_ms, view.task.clone(), view.node.clone())
    }

    pub(crate) fn view(&self) -> &UsageView {
        &self.view
    }

    /// What it costs so far.
    pub(crate) fn charge(&self, tariff: &Tariff) -> Charge {
        charge(&self.view, tariff, self.owed)
    }

    /// The run up to which it has counted.
    pub(crate) fn reading(&self) -> Option<&Reading> {
        match &self.base {
            Base::Seen(reading) => Some(reading),
            Base::Start | Base::Next => None,
        }
    }

    /// Whether a report's count may be taken: one that was on its way while the run's last count came is behind.
    pub(crate) fn takes(&self, reading: &Reading) -> bool {
        self.reading().is_none_or(|before| !reading.is_of_run(before) || reading.age_ms >= before.age_ms)
    }

    /// Whether a last count may be taken: of the run counted so far, or of one after it. Of a record without a count
    /// only its own container's is.
    pub(crate) fn takes_last(&self, reading: &Reading) -> bool {
        let follows = match &self.base {
            Base::Start => self.view.container == reading.container,
            Base::Next => true,
            Base::Seen(before) => !reading.began_before(before),
        };
        follows && self.takes(reading)
    }

    /// Counts from the next reading on: what lies between was counted elsewhere, or is lost.
    pub(crate) fn interrupt(&mut self) {
        self.base = Base::Next;
    }

    /// Counts up to a reading.
    pub(crate) fn take(&mut self, reading: Reading, (limit, bounds): (Share, Bounds), now_ms: u64) {
        let before = match &self.base {
            Base::Start => None,
            Base::Next => Some(&reading),
            Base::Seen(before) => Some(before),
        };
        let used = reading.since(before, bounds);
        let view = &mut self.view;
        if self.base == Base::Start {
            // The node saw the start before it told of it.
            let earlier = view.from_ms.saturating_sub(now_ms.saturating_sub(reading.age_ms));
            let earlier = earlier.min(view.starting_ms);
            (view.from_ms, view.starting_ms) = (view.from_ms - earlier, view.starting_ms - earlier);
        }
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        view.heard_ms = now_ms;
        view.container.clone_from(&reading.container);
        view.runs += u32::from(used.started);
        add(&mut view.running_ms, used.running_ms);
        add(&mut view.cpu_us, used.cpu_us);
        add(&mut view.memory_byte_s, used.memory_byte_s);
        add(&mut view.sent_bytes, used.sent);
        add(&mut view.received_bytes, used.received);
        add(&mut view.reserved_cpu_us, used.running_ms.saturating_mul(u64::from(self.limit.cpu.0)));
        add(&mut view.reserved_memory_byte_s, byte_s(self.limit.memory.0, used.running_ms));
        (self.limit, self.base) = (limit, Base::Seen(reading));
    }

    /// Bytes fetched for it, as far as that is known; more only. False: nothing is new.
    pub(crate) fn pull(&mut self, fetched: u64) -> bool {
        let more = fetched.saturating_sub(self.pulled_before);
        let new = more > self.view.pulled_bytes;
        self.view.pulled_bytes = self.view.pulled_bytes.max(more);
        new
    }

    /// The record as it is kept.
    pub(crate) fn close(&self, end: UsageEnd, now_ms: u64, tariff: Option<&Tariff>) -> UsageView {
        let unheard = end == UsageEnd::UntilLastHeard;
        let until_ms = if unheard { self.view.heard_ms } else { now_ms };
        let charge = tariff.map(|tariff| self.charge(tariff));
        UsageView { until_ms: Some(until_ms), end, charge, ..self.view.clone() }
    }

    /// The record that goes on where this one is closed.
    pub(crate) fn continued(&self, now_ms: u64, tariff: Option<&Tariff>) -> Self {
        let owed = tariff.map_or(Micros(0), |tariff| {
            let paid = self.charge(tariff).credit_micros;
            Micros(owed(&self.view, &tariff.prices, self.owed).0 - paid.0)
        });
        let view = UsageView {
            from_ms: now_ms,
            runs: 0,
            queued_ms: 0,
            starting_ms: 0,
            running_ms: 0,
            cpu_us: 0,
            memory_byte_s: 0,
            reserved_cpu_us: 0,
            reserved_memory_byte_s: 0,
            sent_bytes: 0,
            received_bytes: 0,
            pulled_bytes: 0,
            ..self.view.clone()
        };
        let pulled_before = self.pulled_before.saturating_add(self.view.pulled_bytes);
        Self { view, base: self.base.clone(), limit: self.limit, owed, pulled_before }
    }
}
