//! When each list and each tag of a registry is asked for next.
//!
//! In: what there is to ask, and what each answer brought. Out: what is due. Questions are spread evenly over the
//! period; what never changes is asked less and less often, down to a bound, what changed at once more often
//! again. While the registry notifies of changes the questions rest, until an answer shows a change that it told
//! nothing of. Invariant: nothing is asked twice within a period. Time is given, in milliseconds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Equal answers before a question is asked half as often.
const SAME_TO_SLOW: u8 = 3;
/// Periods between two questions, as a power of two: 32 for tags, of which there are many, 8 for the one list.
const LEVEL_MAX: u8 = 5;
const LEVEL_MAX_CATALOGUE: u8 = 3;
/// Questions after a notification until it shows: registries send it before the tag is written.
const HINTED: u8 = 3;
/// Between questions that rest: a notification may be lost.
const REST_MS: u64 = 30 * 60 * 1000;
/// Multiples of the golden ratio fill an interval evenly, however many there are (in 2^-32).
const GOLDEN: u32 = 0x9E37_79B9;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ask {
    /// Which repositories there are.
    Catalogue,
    /// Which tags a repository has.
    Tags(Arc<str>),
    /// What a tag of a repository names.
    Tag(Arc<str>, Arc<str>),
}

/// What an answer brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Changed,
    Same,
    Failed,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    /// None while it is being asked.
    due_ms: Option<u64>,
    asked_ms: Option<u64>,
    /// The interval is the period times two to the power of this.
    level: u8,
    same: u8,
    /// Somebody said that it has changed: so often it is asked for the change to show.
    hinted: u8,
    /// Where in an interval it belongs, in 2^-32.
    phase: u32,
}

/// The questions of one registry.
#[derive(Debug)]
pub(crate) struct Rota {
    period_ms: u64,
    items: BTreeMap<Ask, Item>,
    due: BTreeSet<(u64, Ask)>,
    rests: bool,
    next_phase: u32,
}

impl Rota {
    pub(crate) fn new(period_ms: u64) -> Self {
        let (items, due) = Default::default();
        Self { period_ms, items, due, rests: false, next_phase: 0 }
    }

    /// A question is there from now on; asked for the first time within a period.
    pub(crate) fn add(&mut self, ask: Ask, now_ms: u64) {
        if self.items.contains_key(&ask) {
            return;
        }
        let phase = if ask == Ask::Catalogue { 0 } else { self.next_phase };
        self.next_phase = self.next_phase.wrapping_add(GOLDEN);
        let due_ms = now_ms + fraction(self.period_ms, phase);
        self.due.insert((due_ms, ask.clone()));
        let item = Item { due_ms: Some(due_ms), asked_ms: None, level: 0, same: 0, hinted: 0, phase };
        self.items.insert(ask, item);
    }

    /// A question is of no interest any more.
    pub(crate) fn remove(&mut self, ask: &Ask) {
        if let Some(Item { due_ms: Some(due_ms), .. }) = self.items.remove(ask) {
            self.due.remove(&(due_ms, ask.clone()));
        }
    }

    /// A question that is due; it is not due again before [`done`](Self::done).
    pub(crate) fn next(&mut self, now_ms: u64) -> Option<Ask> {
        if self.next_ms()? > now_ms {
            return None;
        }
        let (_, ask) = self.due.pop_first()?;
        let item = self.items.get_mut(&ask).expect("what is due is an item");
        (item.due_ms, item.asked_ms) = (None, Some(now_ms));
        Some(ask)
    }

    /// When something is due next.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Takes in what the answer brought. That nothing told of a change ends the rest.
    pub(crate) fn done(&mut self, ask: &Ask, outcome: Outcome, now_ms: u64) {
        let Some(item) = self.items.get_mut(ask) else { return };
        let asked_ms = item.asked_ms.unwrap_or(now_ms);
        let untold = outcome == Outcome::Changed && item.hinted == 0 && item.level > 0;
        let level_max = if *ask == Ask::Catalogue { LEVEL_MAX_CATALOGUE } else { LEVEL_MAX };
        item.same = if outcome == Outcome::Same { item.same.saturating_add(1) } else { 0 };
        let slower = outcome == Outcome::Failed || item.same >= SAME_TO_SLOW;
        let interval_ms = match outcome {
            Outcome::Changed => {
                item.level = 0;
                self.period_ms
            }
            _ if slower && item.level < level_max => {
                let before_ms = self.period_ms << item.level;
                (item.level, item.same) = (item.level + 1, 0);
                // All that slow down together are spread over the longer interval.
                before_ms + fraction(before_ms, item.phase)
            }
            _ => self.period_ms << item.level,
        };
        item.hinted = if outcome == Outcome::Changed { 0 } else { item.hinted.saturating_sub(1) };
        let rests = self.rests && !untold && item.hinted == 0 && outcome != Outcome::Failed;
        let interval_ms = if rests { interval_ms.max(rest_ms(item.phase)) } else { interval_ms };
        self.set(ask, asked_ms + interval_ms);
        if untold {
            self.wake(now_ms);
        }
    }

    /// Somebody says that this has changed, or is new: it is asked as soon as a period has passed since last time.
    pub(crate) fn hint(&mut self, ask: Ask, now_ms: u64) {
        self.rests = true;
        self.add(ask.clone(), now_ms);
        let item = self.items.get_mut(&ask).expect("it was added");
        (item.hinted, item.level, item.same) = (HINTED, 0, 0);
        let due_ms = item.asked_ms.map_or(now_ms, |asked_ms| now_ms.max(asked_ms + self.period_ms));
        if item.due_ms.is_some() {
            self.set(&ask, due_ms);
        }
    }

    /// Notifications are not relied on any more.
    pub(crate) fn wake(&mut self, now_ms: u64) {
        if !std::mem::take(&mut self.rests) {
            return;
        }
        let late = |item: &Item| {
            let interval_ms = self.period_ms << item.level;
            let due_ms = item.due_ms.filter(|due_ms| *due_ms > now_ms + interval_ms)?;
            let from_ms = item.asked_ms.map_or(now_ms, |asked_ms| now_ms.max(asked_ms + self.period_ms));
            Some(due_ms.min(from_ms + fraction(interval_ms, item.phase)))
        };
        let late: Vec<_> =
            self.items.iter().filter_map(|(ask, item)| Some((ask.clone(), late(item)?))).collect();
        for (ask, due_ms) in late {
            self.set(&ask, due_ms);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether questions rest because changes are notified.
    pub(crate) fn rests(&self) -> bool {
        self.rests
    }

    /// Repositories whose tags are asked for.
    pub(crate) fn repositories(&self) -> BTreeSet<Arc<str>> {
        let name = |ask: &Ask| match ask {
            Ask::Tags(name) => Some(name.clone()),
            _ => None,
        };
        self.items.keys().filter_map(name).collect()
    }

    /// Tags of a repository that are asked for.
    pub(crate) fn tags(&self, repository: &Arc<str>) -> BTreeSet<Arc<str>> {
        let from = Ask::Tag(repository.clone(), "".into());
        let name = |ask: &Ask| match ask {
            Ask::Tag(of, name) if of == repository => Some(name.clone()),
            _ => None,
        };
        self.items.range(from..).map_while(|(ask, _)| name(ask)).collect()
    }

    fn set(&mut self, ask: &Ask, due_ms: u64) {
        let Some(item) = self.items.get_mut(ask) else { return };
        if let Some(before_ms) = item.due_ms.replace(due_ms) {
            self.due.remove(&(before_ms, ask.clone()));
        }
        self.due.insert((due_ms, ask.clone()));
    }
}

fn fraction(interval_ms: u64, phase: u32) -> u64 {
    u64::try_from((u128::from(interval_ms) * u128::from(phase)) >> 32).expect("it is below the interval")
}

/// Half of the rest at least, so that what rests is spread, too.
fn rest_ms(phase: u32) -> u64 {
    REST_MS / 2 + fraction(REST_MS / 2, phase)
}

#[cfg(test)]
mod tests;
