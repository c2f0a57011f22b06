//! The goodput of a line, and how its node unpacks, learnt of the last pulls.
//!
//! How long a pull takes varies by tenths of a second whatever its size, and now and then a machine stands still in
//! the midst of one. So it is the median that counts, each pull for as much as was waited for: a small one moves it
//! little, a single one that stood still hardly, and a line that changed is known after some pulls. How the node
//! unpacks is what explains the same pulls best.

use super::course::Seen;
use super::{Fetch, Goodput};
use edgeloom_common::units::Bytes;
use std::collections::VecDeque;

/// Less than this says more about the start of a pull than about the line.
const TELLING: Bytes = Bytes(256 << 10);
/// Pulls that count; older ones told of the line as it was.
const RECENT: usize = 7;
/// How nodes may unpack: times that it takes as long as the machine did that was measured.
const UNPACKING: [f64; 7] = [0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0];
/// How much better a factor of e has to explain the pulls, in parts of their time.
const DOUBT: f64 = 0.05;

/// What the last pulls over a line told of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learnt {
    /// With their seconds.
    pulls: VecDeque<(Fetch, f64)>,
    goodput: Option<Goodput>,
}

impl Learnt {
    /// Takes in one more pull, which was alone on the line.
    pub fn take(&mut self, fetched: Fetch, seconds: f64) {
        if fetched.bytes() < TELLING || fetched.course.seen(seconds, UNPACKING[0]).is_none() {
            return;
        }
        if self.pulls.len() == RECENT {
            self.pulls.pop_front();
        }
        self.pulls.push_back((fetched, seconds));
        let all = UNPACKING.iter().filter_map(|unpacking| self.explain(*unpacking));
        self.goodput = all.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, goodput)| goodput);
    }

    /// None before the first pull that told of the line.
    #[must_use]
    pub fn goodput(&self) -> Option<Goodput> {
        self.goodput
    }

    /// The line's goodput if the node unpacks so, and how badly that explains the pulls.
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    fn explain(&self, unpacking: f64) -> Option<(f64, Goodput)> {
        let seen = self.pulls.iter().filter_map(|(fetch, seconds)| fetch.course.seen(*seconds, unpacking));
        let mut seen: Vec<Seen> = seen.collect();
        seen.sort_by(|one, other| one.bit_s.total_cmp(&other.bit_s));
        let goodput = Goodput { unpacking, ..Goodput::new(1.0 / median(&seen)?) };
        let miss =
            |(fetch, took_s): &(Fetch, f64)| (fetch.seconds(goodput, Bytes(0)) - took_s).abs() / took_s;
        let missed = self.pulls.iter().map(miss).sum::<f64>() / self.pulls.len() as f64;
        Some((missed + DOUBT * unpacking.ln().abs(), goodput))
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

    fn large() -> Fetch {
        Fetch::even(1, Bytes(10_000_000))
    }

    /// Seconds of it over a line of this rate.
    fn took_s(mbit_s: u64) -> f64 {
        large().seconds(Goodput::declared(BitRate(mbit_s * 1_000_000)), Bytes(0))
    }

    fn mbit_s(line: &Learnt) -> f64 {
        line.goodput().unwrap().bits_per_s / edgeloom_common::units::TCP_GOODPUT / 1e6
    }

    #[test]
    fn a_line_that_changed_is_known_after_some_pulls() {
        let mut line = Learnt::default();
        assert_eq!(line.goodput(), None);
        for rate in [20, 10, 40] {
            for _ in 0..RECENT {
                line.take(large(), took_s(rate));
            }
            assert!((mbit_s(&line) / rate as f64 - 1.0).abs() < 1e-9, "{line:?}");
        }
    }

    #[test]
    fn a_pull_that_stood_still_hardly_counts() {
        let mut line = Learnt::default();
        for seconds in [took_s(20), took_s(21), 3600.0, took_s(19), took_s(20)] {
            line.take(large(), seconds);
        }
        assert!((19.0..20.1).contains(&mbit_s(&line)), "{line:?}");
    }

    #[test]
    fn a_pull_counts_for_what_it_fetched() {
        let mut line = Learnt::default();
        line.take(Fetch::even(9, Bytes(11_500_000)), 5.2);
        let before = mbit_s(&line);
        // Nearly twice as long as it should have taken: a machine that was busy.
        line.take(Fetch::even(5, Bytes(276_000)), 1.0);
        let after = mbit_s(&line) / before;
        assert!((0.95..1.05).contains(&after), "{after}");
        line.take(Fetch::even(1, Bytes(1000)), 60.0);
        assert_eq!(line.pulls.len(), 2);
    }

    /// Sizes of real images' layers at a fortieth, bottom first.
    const WORDPRESS: &[u64] = &[
        784_924, 16, 2_290_867, 16, 481_119, 16, 16, 278_585, 16, 269_396, 61, 16, 22, 474_599, 285_369, 16,
        16, 487, 564_450, 58, 43,
    ];
    const GHOST: &[u64] = &[784_924, 104, 885_456, 69_054, 16, 36_205, 255_184, 2_078_363, 16];
    const TOMCAT: &[u64] = &[760_717, 424_346, 4_811_174, 16, 16, 328_785, 16];
    const MYSQL: &[u64] = &[1_097_146, 22, 23_220, 115_292, 65, 16, 1_405_484, 16, 1_158_371, 134, 16];
    const REDIS: &[u64] = &[784_924, 43, 35_263, 239_425, 16, 16];

    /// Pulls by Docker 20.10 over 20 Mbit/s in the order in which a node made them: layers and seconds. Where a node
    /// had the base of an image it fetched what is above.
    fn pulls() -> [[(&'static [u64], f64); 6]; 2] {
        [
            [
                (WORDPRESS, 3.04),
                (&GHOST[1..], 1.61),
                (TOMCAT, 3.05),
                (TOMCAT, 3.03),
                (GHOST, 1.94),
                (MYSQL, 2.08),
            ],
            [
                (WORDPRESS, 2.85),
                (WORDPRESS, 3.05),
                (&GHOST[1..], 1.58),
                (&REDIS[1..], 0.47),
                (WORDPRESS, 2.98),
                (&GHOST[1..], 1.62),
            ],
        ]
    }

    /// Half as long for each layer as on the machine that was measured: those of many layers tell the node, those of
    /// few the line.
    #[test]
    fn how_a_node_unpacks_is_learnt() {
        let node = Goodput { unpacking: 0.5, ..Goodput::declared(BitRate(40_000_000)) };
        let mut line = Learnt::default();
        for sizes in [WORDPRESS, TOMCAT, GHOST, MYSQL] {
            let fetch = stacked(sizes);
            line.take(fetch, fetch.seconds(node, Bytes(0)));
        }
        let learnt = line.goodput().unwrap();
        assert!((learnt.bits_per_s / node.bits_per_s - 1.0).abs() < 0.01, "{learnt:?}");
        assert_eq!(learnt.unpacking, 0.5);
    }

    #[test]
    fn pulls_foretell_the_next_to_a_tenth_in_the_median() {
        let mut misses = Vec::new();
        for node in pulls() {
            let mut line = Learnt::default();
            for (sizes, took_s) in node {
                let fetch = stacked(sizes);
                let foretold_s = line.goodput().map(|line| fetch.seconds(line, Bytes(0)));
                misses.extend(foretold_s.map(|foretold_s| (foretold_s - took_s).abs() / took_s));
                line.take(fetch, took_s);
            }
        }
        misses.sort_by(f64::total_cmp);
        assert!(misses[misses.len() / 2] < 0.08, "{misses:?}");
    }

    fn stacked(sizes: &[u64]) -> Fetch {
        let layer = |(at, size): (usize, &u64)| super::super::Layer {
            digest: at.to_string(),
            chain: at.to_string(),
            size: Bytes(*size),
        };
        let layers: Vec<_> = sizes.iter().enumerate().map(layer).collect();
        Fetch::of(layers.iter(), Bytes(0))
    }
}
