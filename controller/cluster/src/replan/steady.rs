//! A measured quantity that plans may lean on: it follows what lasts and ignores what passes.
//!
//! In: values as they come. Out: the value told, which stays until another differs by a tenth for some
//! seconds. A fall counts soon, since plans made with too much break; a rise after a fall has to last, the
//! longer the more often the value fell lately, so that a thing that flaps counts as low.

/// Differences up to this part of the told value are noise.
pub(super) const WITHIN: f64 = 0.1;
/// How long a value has to be lower.
const FALL_AFTER_MS: u64 = 5_000;
/// How long it has to be nothing at all: whoever says so has made sure already.
const NOTHING_AFTER_MS: u64 = 2_000;
/// How long it has to be higher, by how often it fell lately; the last holds for more.
const RISE_AFTER_MS: [u64; 5] = [10_000, 10_000, 120_000, 480_000, 1_920_000];
/// Falls older than this are forgotten.
const LATELY_MS: u64 = 1_800_000;

/// A value off what is told.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Off {
    since_ms: u64,
    below: bool,
    /// The least since then: what is found while a thing gets worse is rather too much than too little.
    least: f64,
}

/// One quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Steady {
    told: f64,
    off: Option<Off>,
    falls: usize,
    fell_ms: u64,
    /// What was told before it fell to nothing.
    before: Option<f64>,
}

impl Steady {
    /// The first value counts at once: there is nothing to lean on but it.
    pub(crate) const fn new(value: f64) -> Self {
        Self { told: value, off: None, falls: 0, fell_ms: 0, before: None }
    }

    pub(crate) const fn told(&self) -> f64 {
        self.told
    }

    /// What was told before it fell to nothing; what is told, if it did not.
    pub(crate) fn before(&self) -> f64 {
        self.before.unwrap_or(self.told)
    }

    /// Looks at the value now; true if another one is told.
    pub(crate) fn look(&mut self, value: f64, now_ms: u64) -> bool {
        let off = (value - self.told).abs() > self.told * WITHIN;
        let below = value < self.told;
        if self.off.is_some_and(|before| !before.below) && (below || !off) {
            // It rose and did not stay: as good as a fall.
            self.fell_ms = now_ms;
        }
        if !off {
            self.off = None;
            return false;
        }
        let fresh = Off { since_ms: now_ms, below, least: value };
        let before = self.off.filter(|before| before.below == below).unwrap_or(fresh);
        let now = Off { least: before.least.min(value), ..before };
        self.off = Some(now);
        if now_ms.saturating_sub(self.fell_ms) > LATELY_MS {
            self.falls = 0;
        }
        if now_ms.saturating_sub(now.since_ms) < self.patience(now) {
            return false;
        }
        if below {
            (self.falls, self.fell_ms) = (self.falls + 1, now_ms);
        }
        self.before = (now.least < 1.0).then_some(self.told);
        (self.told, self.off) = (now.least, None);
        true
    }

    fn patience(&self, now: Off) -> u64 {
        if !now.below {
            RISE_AFTER_MS[self.falls.min(RISE_AFTER_MS.len() - 1)]
        } else if now.least < 1.0 {
            NOTHING_AFTER_MS
        } else {
            FALL_AFTER_MS
        }
    }

    /// That it fell to nothing had a reason which says nothing about it: as before, and no fall.
    pub(crate) fn excuse(&mut self) {
        self.off = None;
        if let Some(before) = self.before.take() {
            (self.told, self.falls) = (before, self.falls.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks each second from `from_s` on; the seconds at which another value was told.
    fn fed(steady: &mut Steady, from_s: u64, values: impl IntoIterator<Item = f64>) -> Vec<u64> {
        let seconds = (from_s..).zip(values);
        seconds
            .filter(|(second, value)| steady.look(*value, second * 1000))
            .map(|(second, _)| second)
            .collect()
    }

    #[test]
    fn small_changes_and_short_ones_are_not_told() {
        let mut steady = Steady::new(20.0);
        let noise = (0..600).map(|second| if second % 2 == 0 { 18.2 } else { 21.8 });
        assert!(fed(&mut steady, 0, noise).is_empty());
        let dips = (0..600).map(|second| if second % 6 < 4 { 10.0 } else { 20.0 });
        assert!(fed(&mut steady, 600, dips).is_empty());
    }

    #[test]
    fn a_fall_is_told_within_seconds_and_a_first_rise_soon_after() {
        let mut steady = Steady::new(20.0);
        assert_eq!(fed(&mut steady, 100, [10.0; 60]), [105]);
        assert_eq!(fed(&mut steady, 160, [20.0; 60]), [170]);
    }

    #[test]
    fn nothing_at_all_is_told_sooner_and_can_be_excused() {
        let mut steady = Steady::new(20.0);
        assert_eq!(fed(&mut steady, 100, [0.0; 10]), [102]);
        steady.excuse();
        assert!((steady.told() - 20.0).abs() < 1e-9);
        assert_eq!(fed(&mut steady, 120, [0.0; 10]), [122]);
        assert_eq!(fed(&mut steady, 160, [20.0; 60]), [170], "the excused fall does not count");
    }

    #[test]
    fn the_least_of_what_was_seen_meanwhile_is_told() {
        let mut steady = Steady::new(20.0);
        fed(&mut steady, 0, [12.0, 11.0, 10.0, 10.5, 11.0, 11.0, 11.0]);
        assert!((steady.told() - 10.0).abs() < 1e-9, "{}", steady.told());
    }

    #[test]
    fn what_flaps_counts_as_low() {
        for period in [20, 60] {
            let mut steady = Steady::new(20.0);
            let flapping = (0..3_600).map(|second| if second / period % 2 == 0 { 0.0 } else { 20.0 });
            assert_eq!(fed(&mut steady, 0, flapping).len(), 3, "down, up once, down");
            assert!(steady.told() < 1.0);
        }
    }
}
