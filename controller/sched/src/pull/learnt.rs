//! The goodput of a line, learnt of the last pulls over it.
//!
//! How long a pull takes beside its bytes varies by tenths of a second whatever its size, and now and then a machine
//! stands still in the midst of one. So it is the median that counts, each pull for as much as it fetched: a small
//! one moves it little, a single one that stood still hardly, and a line that changed is known after some pulls.

use super::{Fetch, Goodput, LAYER_S, START_S, bits};
use edgeloom_common::units::Bytes;
use std::collections::VecDeque;

/// Less than this says more about the start of a pull than about the line.
const TELLING: Bytes = Bytes(256 << 10);
/// Pulls that count; older ones told of the line as it was.
const RECENT: usize = 7;

/// What the last pulls over a line told of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learnt(VecDeque<Seen>);

/// One pull.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    bits: f64,
    /// The line took for each.
    bit_s: f64,
}

impl Learnt {
    /// Takes in one more pull, which was alone on the line.
    pub fn take(&mut self, fetched: Fetch, seconds: f64) {
        let on_line_s = seconds - START_S - LAYER_S * f64::from(fetched.layers);
        if fetched.bytes() < TELLING || on_line_s <= 0.0 {
            return;
        }
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        let bits = bits(fetched.bytes());
        self.0.push_back(Seen { bits, bit_s: on_line_s / bits });
    }

    /// None before the first pull that told of the line.
    #[must_use]
    pub fn goodput(&self) -> Option<Goodput> {
        let mut seen: Vec<Seen> = self.0.iter().copied().collect();
        seen.sort_by(|one, other| one.bit_s.total_cmp(&other.bit_s));
        median(&seen).map(|bit_s| Goodput((1.0 / bit_s).max(1.0)))
    }
}

/// By their bits, each pull at the middle of its own and straight between them; of pulls from the fastest on.
fn median(sorted: &[Seen]) -> Option<f64> {
    let half = sorted.iter().map(|seen| seen.bits).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let mut below: Option<(f64, f64)> = None;
    for seen in sorted {
        let at = sum + seen.bits / 2.0;
        match below {
            Some((lower, bit_s)) if at >= half => {
                return Some(bit_s + (seen.bit_s - bit_s) * (half - lower) / (at - lower));
            }
            None if at >= half => return Some(seen.bit_s),
            _ => below = Some((at, seen.bit_s)),
        }
        sum += seen.bits;
    }
    below.map(|(_, bit_s)| bit_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::BitRate;

    fn fetched((layers, bytes): (u32, u64)) -> Fetch {
        Fetch { layers, layer_bytes: Bytes(bytes), config_bytes: Bytes(0) }
    }

    /// Seconds of ten megabytes in a layer over a line of this rate.
    fn took_s(mbit_s: u64) -> f64 {
        fetched((1, 10_000_000)).seconds(Goodput::declared(BitRate(mbit_s * 1_000_000)), Bytes(0))
    }

    fn mbit_s(line: &Learnt) -> f64 {
        line.goodput().unwrap().0 / edgeloom_common::units::TCP_GOODPUT / 1e6
    }

    #[test]
    fn a_line_that_changed_is_known_after_some_pulls() {
        let mut line = Learnt::default();
        assert_eq!(line.goodput(), None);
        for rate in [20, 10, 40] {
            for _ in 0..RECENT {
                line.take(fetched((1, 10_000_000)), took_s(rate));
            }
            assert!((mbit_s(&line) / rate as f64 - 1.0).abs() < 1e-9, "{line:?}");
        }
    }

    #[test]
    fn a_pull_that_stood_still_hardly_counts() {
        let mut line = Learnt::default();
        for seconds in [took_s(20), took_s(21), 3600.0, took_s(19), took_s(20)] {
            line.take(fetched((1, 10_000_000)), seconds);
        }
        assert!((19.0..20.1).contains(&mbit_s(&line)), "{line:?}");
    }

    #[test]
    fn a_pull_counts_for_what_it_fetched() {
        let mut line = Learnt::default();
        line.take(fetched((9, 11_500_000)), 5.2);
        let before = mbit_s(&line);
        // Twice as long as it should have taken: a machine that was busy.
        line.take(fetched((5, 276_000)), 0.8);
        let after = mbit_s(&line) / before;
        assert!((0.95..1.0).contains(&after), "{after}");
        line.take(fetched((1, 1000)), 60.0);
        assert_eq!(line.0.len(), 2);
    }

    /// Pulls of real images at a fortieth of their size by Docker 20.10 over 20 Mbit/s, in the order in which one
    /// node made them: layers, bytes, seconds.
    const PULLS: [[(u32, u64, f64); 6]; 2] = [
        [
            (21, 5_430_108, 3.04),
            (8, 3_324_398, 1.61),
            (7, 6_325_070, 3.05),
            (7, 6_325_070, 3.03),
            (9, 4_109_322, 1.94),
            (11, 3_799_782, 2.08),
        ],
        [
            (21, 5_430_108, 2.85),
            (21, 5_430_108, 3.05),
            (8, 3_324_398, 1.58),
            (5, 274_763, 0.47),
            (21, 5_430_108, 2.98),
            (8, 3_324_398, 1.62),
        ],
    ];

    #[test]
    fn pulls_foretell_the_next_to_a_tenth_in_the_median() {
        let mut misses = Vec::new();
        for node in PULLS {
            let mut line = Learnt::default();
            for (layers, bytes, took_s) in node {
                let fetch = fetched((layers, bytes));
                let foretold_s = line.goodput().map(|line| fetch.seconds(line, Bytes(0)));
                misses.extend(foretold_s.map(|foretold_s| (foretold_s - took_s).abs() / took_s));
                line.take(fetch, took_s);
            }
        }
        misses.sort_by(f64::total_cmp);
        assert!(misses[misses.len() / 2] < 0.1, "{misses:?}");
    }
}
