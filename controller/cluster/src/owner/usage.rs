//! The accounts: counters of nodes go into open records as they come, and what is due is kept.
//!
//! Open records are journaled every [`KEEP_MS`], less often where there are many, and when they are closed: the
//! counters that nodes keep fill in what a controller that died did not. Nothing is counted while jobs are still
//! gathered from nodes.

mod counting;

use super::Owner;
use crate::documents::share;
use crate::journal::JournalError;
use crate::model::{Event, JobRecord};
use crate::usage::{Change, Key, Open, Opening, Pricing, UsageQuery};
use crate::views::bytes_fetched;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::report::{ContainerPhase, Observed};
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_common::usage::{Tariff, UsageEnd, UsageList, UsageView};
use edgeloom_sched::plan::Share;
use std::collections::{BTreeMap, BTreeSet};

/// Open records that changed are journaled this often.
pub(crate) const KEEP_MS: u64 = 300_000;
/// So many times longer for each so many records: a record has about a kilobyte.
const FEW: usize = 50;
const KEEP_FACTOR_MAX: usize = 12;
/// Closed records go to the archive when so many wait, or this long after the last time.
const ARCHIVE_AT: usize = 64;
const ARCHIVE_MS: u64 = 3_600_000;
/// An event stays far below what the journal takes.
const BATCH: usize = 200;
const DAY_MS: u64 = 86_400_000;

/// Open records as they are now; the model has them as they were kept last.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    open: BTreeMap<Key, Open>,
    changed: BTreeSet<Key>,
    /// The model's records are taken over and prices are as configured.
    begun: bool,
    kept_ms: u64,
    archived_ms: u64,
}

impl Owner {
    /// Begins records of containers that a node shows, and notes what it fetched for them.
    pub(super) fn count_containers(&mut self, node: &NodeId, observed: &Observed) {
        if observed.containers.is_empty() || !self.accounts_begun() {
            return;
        }
        for state in &observed.containers {
            // Whatever its end: a container that is there has begun.
            let before = matches!(
                state.phase,
                ContainerPhase::Waiting | ContainerPhase::Pulling | ContainerPhase::Creating
            );
            if before || state.container_id.is_empty() {
                continue;
            }
            let Some((key, _)) = self.opened(node, (&state.job, &state.task), &state.container_id) else {
                continue;
            };
            let image = self.pulled_for(node, (&state.job, &state.task));
            let fetched = image.map_or(0, |image| bytes_fetched(observed, image));
            if let Some(open) = self.accounts.open.get_mut(&key)
                && open.pull(fetched)
            {
                self.accounts.changed.insert(key);
            }
        }
    }

    /// The open record of a container where the model has its task, begun if need be, and its limits.
    fn opened(
        &mut self,
        node: &NodeId,
        (job, task): (&JobName, &TaskName),
        container: &str,
    ) -> Option<(Key, Share)> {
        let record = self.state.model.jobs.get(job).filter(|record| record.may_have(task, node))?;
        let limit = reserved(record, task);
        let key = (job.clone(), record.since_ms, task.clone(), node.clone());
        if !self.accounts.open.contains_key(&key) {
            // What came back from nodes does not say when it got its place.
            let placed_ms = record.placed.get(task).map_or(record.since_ms, |placed| placed.at_ms);
            let (now_ms, late) = (self.now_ms, placed_ms < self.state.model.usage.begun_ms);
            let opening = Opening { record, task, node, container, limit, now_ms, late };
            self.accounts.open.insert(key.clone(), Open::new(&opening));
            self.accounts.changed.insert(key.clone());
        }
        Some((key, limit))
    }

    /// The image that is pulled for this task, if one is: what was there before, or comes for another task, costs
    /// this one nothing.
    fn pulled_for(&self, node: &NodeId, (job, task): (&JobName, &TaskName)) -> Option<&str> {
        let record = self.model().jobs.get(job)?;
        let predicted = record.bytes_predicted.get(task).is_some_and(|bytes| *bytes > 0);
        let placed = record.plan.as_ref()?.placement.get(task) == Some(node);
        let image = record.images.get(task)?;
        (predicted && placed).then_some(image.reference.name.as_str())
    }

    /// Closes and keeps what is due.
    pub(super) fn keep_accounts(&mut self) {
        if !self.accounts_begun() {
            return;
        }
        let keep_ms = KEEP_MS * (1 + self.accounts.open.len() / FEW).min(KEEP_FACTOR_MAX) as u64;
        let due = self.now_ms.saturating_sub(self.accounts.kept_ms) >= keep_ms;
        let kept = self.close_ended().and_then(|()| self.close_days()).and_then(|()| match due {
            true => self.keep_open(),
            false => Ok(()),
        });
        if let Err(error) = kept.and_then(|()| self.archive()) {
            tracing::error!(%error, "what containers used is not kept; it is tried again");
        }
    }

    /// Keeps open records as they are, for whoever comes after.
    pub(crate) fn keep_open(&mut self) -> Result<(), JournalError> {
        self.accounts.kept_ms = self.now_ms;
        while !self.accounts.changed.is_empty() {
            let keys: Vec<Key> = self.accounts.changed.iter().take(BATCH).cloned().collect();
            let open = keys.iter().filter_map(|key| self.accounts.open.get(key).cloned()).collect();
            self.change_accounts(Change { open, ..Change::default() })?;
            self.accounts.changed.retain(|key| !keys.contains(key));
        }
        Ok(())
    }

    fn change_accounts(&mut self, change: Change) -> Result<(), JournalError> {
        self.state.commit(Event::Accounted(Box::new(change)))
    }

    /// False while nothing is counted yet.
    fn accounts_begun(&mut self) -> bool {
        if !self.accounts.begun && !self.gathering() {
            match self.begin_accounts() {
                Ok(()) => self.accounts.begun = true,
                Err(error) => tracing::error!(%error, "what containers use is not counted"),
            }
        }
        self.accounts.begun
    }

    /// Takes over what was kept. Prices that changed hold from now on.
    fn begin_accounts(&mut self) -> Result<(), JournalError> {
        let book = &self.state.model.usage;
        self.accounts.open = book.open().iter().map(|open| (open.key(), open.clone())).collect();
        let (begun, pricing) = (book.begun_ms > 0, book.pricing.clone());
        if !begun {
            let begun_ms = Some(self.now_ms.max(1));
            self.change_accounts(Change { begun_ms, ..Change::default() })?;
        }
        if pricing.prices != self.settings.prices {
            self.close_slices(&self.accounts.open.keys().cloned().collect::<Vec<_>>(), UsageEnd::Prices)?;
            let pricing = Pricing { version: pricing.version + 1, prices: self.settings.prices.clone() };
            self.change_accounts(Change { pricing: Some(pricing), ..Change::default() })?;
        }
        (self.accounts.kept_ms, self.accounts.archived_ms) = (self.now_ms, self.now_ms);
        Ok(())
    }

    fn tariff(&self) -> Option<Tariff> {
        self.model().usage.pricing.tariff()
    }

    fn next_number(&self) -> u64 {
        self.model().usage.last.max(self.state.archive.last()) + 1
    }

    /// Closes records of containers that are nowhere any more.
    fn close_ended(&mut self) -> Result<(), JournalError> {
        let jobs = &self.state.model.jobs;
        let gone = |(job, accepted_ms, task, node): &&Key| {
            let record = jobs.get(job).filter(|record| record.since_ms == *accepted_ms);
            record.is_none_or(|record| !record.may_have(task, node))
        };
        let gone: Vec<Key> = self.accounts.open.keys().filter(gone).cloned().collect();
        for keys in gone.chunks(BATCH) {
            let change = self.closing(keys);
            self.change_accounts(change)?;
            for key in keys {
                self.accounts.open.remove(key);
                self.accounts.changed.remove(key);
            }
        }
        Ok(())
    }

    fn closing(&self, keys: &[Key]) -> Change {
        let (tariff, number) = (self.tariff(), self.next_number());
        let mut change = Change { ended: keys.to_vec(), ..Change::default() };
        for open in keys.iter().filter_map(|key| self.accounts.open.get(key)) {
            let heard = self.nodes.online(&open.view().node);
            let end = if heard { UsageEnd::Ended } else { UsageEnd::UntilLastHeard };
            let closed = open.close(end, self.now_ms, tariff.as_ref());
            change.closed.push(numbered(closed, number + change.closed.len() as u64));
            if let (false, Some(reading)) = (heard, open.reading())
                && self.model().jobs.contains_key(&open.view().job)
            {
                change.rested.push(reading.rested(open.key()));
            }
        }
        change
    }

    /// A day that is over has its records.
    fn close_days(&mut self) -> Result<(), JournalError> {
        let today = self.now_ms / DAY_MS;
        let over = |(key, open): (&Key, &Open)| (open.view().from_ms / DAY_MS < today).then(|| key.clone());
        let over: Vec<Key> = self.accounts.open.iter().filter_map(over).collect();
        self.close_slices(&over, UsageEnd::Day)
    }

    /// Closes these records, and goes on with new ones.
    fn close_slices(&mut self, keys: &[Key], end: UsageEnd) -> Result<(), JournalError> {
        let tariff = self.tariff();
        for keys in keys.chunks(BATCH) {
            let (mut change, number) = (Change::default(), self.next_number());
            for open in keys.iter().filter_map(|key| self.accounts.open.get(key)) {
                let closed = open.close(end, self.now_ms, tariff.as_ref());
                if closed.tells_something() {
                    change.closed.push(numbered(closed, number + change.closed.len() as u64));
                }
                change.open.push(open.continued(self.now_ms, tariff.as_ref()));
            }
            let open = change.open.clone();
            self.change_accounts(change)?;
            for open in open {
                self.accounts.changed.remove(&open.key());
                self.accounts.open.insert(open.key(), open);
            }
        }
        Ok(())
    }

    /// Closed records leave the model once they are in the archive.
    fn archive(&mut self) -> Result<(), JournalError> {
        let closed = &self.state.model.usage.closed;
        let long = self.now_ms.saturating_sub(self.accounts.archived_ms) >= ARCHIVE_MS;
        let Some(last) = closed.last().filter(|_| long || closed.len() >= ARCHIVE_AT) else { return Ok(()) };
        let archived = last.number;
        match self.state.archive.append(closed, self.now_ms) {
            Ok(()) => {
                self.accounts.archived_ms = self.now_ms;
                self.change_accounts(Change { archived, ..Change::default() })
            }
            Err(error) => {
                tracing::error!(%error, "closed records of what containers used stay in the journal");
                Ok(())
            }
        }
    }

    /// Records that are not in the archive, as far as they are wanted, in the answer's order; all of those that are open.
    pub(crate) fn usage(&self, query: &UsageQuery) -> UsageList {
        let (book, tariff) = (&self.model().usage, self.tariff());
        let closed = book.closed.iter().filter(|record| query.wants(record)).cloned();
        let open = self.accounts.open.values().filter(|open| query.wants(open.view())).map(|open| {
            UsageView { charge: tariff.as_ref().map(|tariff| open.charge(tariff)), ..open.view().clone() }
        });
        UsageList {
            records: closed.chain(open).collect(),
            next: None,
            counted_since_ms: book.begun_ms,
            unreadable: 0,
            tariff: tariff.clone(),
        }
    }
}

fn numbered(record: UsageView, number: u64) -> UsageView {
    UsageView { number: Some(number), ..record }
}

/// What limits let a container use; the request where there is no limit.
fn reserved(record: &JobRecord, task: &TaskName) -> Share {
    let source = || record.job.source.as_ref()?.container.as_ref();
    let program = record.job.tasks.get(task).map(|task| &task.program).or_else(source);
    let Some(program) = program else { return Share { cpu: MilliCores(0), memory: Bytes(0) } };
    let requested = Share { cpu: program.resources.cpu, memory: program.resources.memory };
    let given = record.plan.as_ref().map_or(requested, |plan| share(plan, task, program));
    let cpu = if given.cpu.0 == 0 { requested.cpu } else { given.cpu };
    Share { cpu, ..given }
}
