//! Rates as HTB classes and their queues: pure arithmetic.
//!
//! All rates are wire rates. A flow's class gets its rate and never more; the link's class holds all. What
//! flows leave is shared by pulls of image layers and all else, half each, and either may use what the other or
//! flows do not, after them. Flows that only pass this node are among all else: it is guaranteed what they have.

use crate::kernel::Offered;
use crate::object::{Class, Leaf};
use crate::settings::Settings;
use edgeloom_common::units::BitRate;

/// Capacity of a link that nobody declared: above what any link here carries, so that it never limits.
const CAPACITY_UNKNOWN: BitRate = BitRate(10_000_000_000);
/// What is guaranteed beside flows whatever these have, in hundredths of the link: flows may reserve no more than
/// the rest.
const BESIDE_PERCENT: u64 = 5;
/// Below this a full frame takes more than a second.
pub(crate) const RATE_MIN: BitRate = BitRate(16_000);
/// A class must be able to send two full Ethernet frames at once.
const BURST_MIN_BYTES: u64 = 2 * 1514;
/// Five milliseconds: enough for a timer that fires late, too little to be seen. In ticks of 64 ns.
const BURST_MIN_TICKS: u64 = 5_000_000 / TICK_NS;
const TICK_NS: u64 = 64;
/// A leaf shorter than two full GSO packets (64 KiB each) starves its senders.
const LEAF_MIN: u64 = 150_000;
/// Bounds the memory that an undeclared link's queue can take.
const LEAF_MAX: u64 = 4_000_000;
/// Served after every flow within its guarantee.
const BESIDE_PRIORITY: u32 = 7;
const FLOW_PRIORITY: u32 = 1;

/// The class of a flow.
pub(crate) fn flow(rate: BitRate) -> Class {
    class(rate, rate, FLOW_PRIORITY)
}

/// The class of a link, above all others.
pub(crate) fn link(capacity: BitRate) -> Class {
    class(capacity, capacity, BESIDE_PRIORITY)
}

/// What flows have of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// Those with a class here.
    pub(crate) shaped: u64,
    /// Those that only pass.
    pub(crate) passing: u64,
}

/// The classes beside those of flows: for all else, and for pulls.
pub(crate) fn beside(capacity: BitRate, reserved: Reserved) -> (Class, Class) {
    let least = capacity.0 / 100 * BESIDE_PERCENT;
    let Reserved { shaped, passing } = reserved;
    // A document may be of before a link became slower: guarantees fit the link all the same.
    let passing = passing.min(capacity.0.saturating_sub(shaped).saturating_sub(least));
    let left = capacity.0.saturating_sub(shaped).saturating_sub(passing).max(least);
    let guaranteed = |rate: u64| class(BitRate(rate.max(RATE_MIN.0)), capacity, BESIDE_PRIORITY);
    (guaranteed(passing + left / 2), guaranteed(left / 2))
}

/// Links that share an interface share its capacity: the largest declared, unknown if one is.
pub(crate) fn capacity(settings: &Settings, interface: &str) -> BitRate {
    let links = settings.links.iter().filter(|link| link.interface == interface);
    links
        .map(|link| link.capacity)
        .reduce(|a, b| Some(a?.max(b?)))
        .flatten()
        .map_or(CAPACITY_UNKNOWN, |capacity| capacity.max(RATE_MIN))
}

fn class(rate: BitRate, ceil: BitRate, priority: u32) -> Class {
    let (rate, ceil) = (rate.0 / 8, ceil.0 / 8);
    let (burst_ticks, ceil_burst_ticks) = (burst_ticks(rate), burst_ticks(ceil));
    Class { rate, ceil, burst_ticks, ceil_burst_ticks, priority }
}

/// How long a class may send at once, at `rate` bytes a second.
fn burst_ticks(rate: u64) -> u32 {
    let two_frames = BURST_MIN_BYTES * 1_000_000_000 / rate / TICK_NS;
    u32::try_from(two_frames.max(BURST_MIN_TICKS)).expect("at the least rate two frames take 1.6 s")
}

/// A queue of 100 ms at the rate, within bounds, where the kernel has no fq_codel.
pub(crate) fn leaf(offered: Offered, rate: BitRate) -> Leaf {
    if offered.fq_codel {
        return Leaf::FqCodel;
    }
    let limit = (rate.0 / 80).clamp(LEAF_MIN, LEAF_MAX);
    Leaf::Bfifo { limit: u32::try_from(limit).expect("clamped to 4 MB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_can_send_two_frames_at_once() {
        for rate in [RATE_MIN, BitRate(1_000_000), BitRate(100_000_000_000)] {
            let class = flow(rate);
            let bytes =
                u128::from(class.burst_ticks) * u128::from(TICK_NS) * u128::from(class.rate) / 1_000_000_000;
            assert!(bytes + 1 >= u128::from(BURST_MIN_BYTES), "{rate}: {bytes} bytes");
            assert!(class.burst_ticks >= 78_125, "five milliseconds");
        }
    }

    #[test]
    fn a_leaf_holds_two_super_packets_and_no_more_than_needed() {
        let bfifo = Offered { htb: true, ..Offered::default() };
        assert_eq!(leaf(bfifo, BitRate(1_000_000)), Leaf::Bfifo { limit: 150_000 });
        assert_eq!(leaf(bfifo, BitRate(20_000_000)), Leaf::Bfifo { limit: 250_000 });
        assert_eq!(leaf(bfifo, CAPACITY_UNKNOWN), Leaf::Bfifo { limit: 4_000_000 });
        assert_eq!(leaf(Offered { fq_codel: true, ..bfifo }, BitRate(1_000_000)), Leaf::FqCodel);
    }

    #[test]
    fn pulls_and_all_else_halve_what_flows_leave_and_may_use_all() {
        let rates = |shaped, passing| {
            let (rest, pulls) = beside(BitRate(20_000_000), Reserved { shaped, passing });
            for class in [rest, pulls] {
                assert_eq!((class.ceil, class.priority), (2_500_000, 7));
            }
            (rest.rate * 8, pulls.rate * 8)
        };
        assert_eq!(rates(0, 0), (10_000_000, 10_000_000));
        assert_eq!(rates(8_000_000, 0), (6_000_000, 6_000_000));
        assert_eq!(rates(8_000_000, 4_000_000), (8_000_000, 4_000_000));
        assert_eq!(rates(19_000_000, 0), (500_000, 500_000), "a twentieth is nobody's");
        assert_eq!(rates(30_000_000, 0), (500_000, 500_000));
        assert_eq!(
            rates(10_000_000, 30_000_000),
            (9_500_000, 500_000),
            "what passes takes no more than there is"
        );
    }
}
