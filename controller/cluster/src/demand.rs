//! How many cores are enough for a container, by what it uses of its limit: without clock, state or planner.
//!
//! In: the cores that it used in the last seconds, and its limit. Out: a number of cores that its share need not
//! exceed, or none while it could use whatever its class allows. Both have to last. Giving waits longer than
//! getting, the longer the oftener a container wanted back what it gave, so that bursts do not flap; between
//! the two marks nothing changes.

use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::units::MilliCores;
use std::collections::BTreeMap;

/// Part of its limit from which a container counts as held by it.
const AT_LIMIT: f64 = 0.9;
/// How long it has to be held by it.
const RISE_AFTER_MS: u64 = 6_000;
/// What it keeps above the most that it used.
const HEADROOM: f64 = 1.25;
/// What is looked at is a mean over so long.
pub(crate) const SETTLED_MS: u64 = 10_000;
/// What it would keep has to be less than this part of its limit.
const WORTH: f64 = 0.9;
/// How long it has to use so little, and how often that doubles.
const FALL_AFTER_MS: u64 = 60_000;
const DOUBLED_MAX: u32 = 6;
/// Who wants back what it gave within this time waits longer before it gives again.
const LATELY_MS: u64 = 1_800_000;

/// Enough for each container of which that is known.
pub(crate) type Enough = BTreeMap<JobName, BTreeMap<TaskName, MilliCores>>;

/// A container uses little.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Low {
    since_ms: u64,
    /// The most since then, in cores.
    peak: f64,
}

/// One container under its limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Demand {
    /// In cores.
    enough: Option<f64>,
    limit: f64,
    high_since_ms: Option<u64>,
    low: Option<Low>,
    fell_ms: Option<u64>,
    doubled: u32,
}

impl Demand {
    /// Of a container that runs under this limit since before anybody looked: why it is what it is nobody knows,
    /// so it stays.
    pub(crate) fn inherited(limit: f64) -> Self {
        Self { enough: Some(limit), ..Self::default() }
    }

    pub(crate) const fn enough(&self) -> Option<f64> {
        self.enough
    }

    /// Looks at what it uses now; both in cores.
    pub(crate) fn look(&mut self, (used, limit): (f64, f64), now_ms: u64) {
        if (limit - self.limit).abs() > f64::EPSILON {
            (self.limit, self.high_since_ms, self.low) = (limit, None, None);
        }
        let high = used >= limit * AT_LIMIT;
        let low = used * HEADROOM < limit * WORTH;
        self.high_since_ms = high.then(|| self.high_since_ms.unwrap_or(now_ms));
        self.low = low.then(|| {
            let before = self.low.unwrap_or(Low { since_ms: now_ms, peak: used });
            // Until then the mean holds what was used before.
            let settles = now_ms.saturating_sub(before.since_ms) < SETTLED_MS;
            Low { peak: if settles { used } else { before.peak.max(used) }, ..before }
        });
        let lasted = |since_ms: u64, after_ms: u64| now_ms.saturating_sub(since_ms) >= after_ms;
        if self.high_since_ms.is_some_and(|since_ms| lasted(since_ms, RISE_AFTER_MS)) {
            self.rise(now_ms);
        }
        if let Some(low) = self.low.filter(|low| lasted(low.since_ms, FALL_AFTER_MS << self.doubled)) {
            (self.enough, self.fell_ms, self.low) = (Some(low.peak * HEADROOM), Some(now_ms), None);
        }
    }

    fn rise(&mut self, now_ms: u64) {
        if self.enough.take().is_none() {
            return;
        }
        let lately = self.fell_ms.is_some_and(|fell_ms| now_ms.saturating_sub(fell_ms) < LATELY_MS);
        self.doubled = if lately { (self.doubled + 1).min(DOUBLED_MAX) } else { 0 };
    }
}

/// In thousandths, rounded up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(crate) fn thousandths(cores: f64) -> MilliCores {
    MilliCores((cores * 1000.0).ceil() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks each second from `from_s` on; seconds at which another number was enough.
    fn fed(
        demand: &mut Demand,
        (from_s, limit): (u64, f64),
        used: impl IntoIterator<Item = f64>,
    ) -> Vec<u64> {
        let mut told = Vec::new();
        for (second, used) in (from_s..).zip(used) {
            let before = demand.enough();
            demand.look((used, limit), second * 1000);
            told.extend((demand.enough() != before).then_some(second));
        }
        told
    }

    #[test]
    fn who_uses_little_for_a_minute_keeps_the_most_and_a_quarter() {
        let mut demand = Demand::default();
        let mut used = vec![1.0; 100];
        used[30] = 1.6;
        assert_eq!(fed(&mut demand, (0, 4.0), used), [60]);
        assert!((demand.enough().unwrap() - 2.0).abs() < 1e-9);
        assert!(fed(&mut demand, (100, 2.0), vec![1.6; 1000]).is_empty(), "what is enough stays enough");
    }

    #[test]
    fn who_is_held_by_its_limit_gets_more_within_seconds() {
        let mut demand = Demand::inherited(1.0);
        assert!(fed(&mut demand, (0, 1.0), vec![0.85; 100]).is_empty());
        assert_eq!(fed(&mut demand, (100, 1.0), vec![0.99; 10]), [106]);
        assert_eq!(demand.enough(), None);
    }

    #[test]
    fn bursts_give_ever_more_seldom() {
        let mut demand = Demand::default();
        let (mut limit, mut changes) = (4.0, 0);
        for second in 0..7200_u64 {
            let burst = second / 90 % 2 == 1;
            let before = demand.enough();
            demand.look((if burst { limit } else { 0.5 }, limit), second * 1000);
            changes += usize::from(demand.enough() != before);
            limit = demand.enough().unwrap_or(4.0);
        }
        assert!(changes <= 3, "{changes}");
    }

    #[test]
    fn noise_between_the_marks_changes_nothing() {
        let mut demand = Demand::inherited(2.0);
        let noise = (0..3600).map(|second| if second % 2 == 0 { 1.46 } else { 1.79 });
        assert!(fed(&mut demand, (0, 2.0), noise).is_empty());
    }

    #[test]
    fn a_new_limit_is_looked_at_from_its_beginning() {
        let mut demand = Demand::default();
        fed(&mut demand, (0, 4.0), vec![1.0; 59]);
        assert!(fed(&mut demand, (59, 3.0), vec![1.0; 60]).is_empty());
        assert_eq!(fed(&mut demand, (119, 3.0), vec![1.0; 2]), [119]);
        assert_eq!(thousandths(1.2501), MilliCores(1251));
    }
}
