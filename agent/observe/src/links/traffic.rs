//! How busy a link is with other traffic, from the kernel's byte counters.
//!
//! A train that shares its link measures what the others leave, not the capacity; behind our own traffic
//! classes it would even measure the least class. So no train leaves while a link is busy, and what was
//! measured last stands.
//!
//! But a link may come to carry less while it is busy. Then packets wait at its narrow place though less
//! passes than it should carry, and what waits in line there is passed in turn: a train that arrives in one
//! burst leaves it at the rate of the link. Where no rate is declared, nothing of ours holds a train back, and
//! it may leave then.

use edgeloom_common::units::BitRate;
use std::collections::BTreeMap;
use std::io;
use tokio::time::Instant;

/// A link is busy when other traffic takes more than one part in this many of its capacity.
const BUSY_PART: u64 = 20;

/// A link with less passing than this part of its capacity, in hundredths, should have no queue.
const FULL_PERCENT: u64 = 85;

/// Bytes that each interface of this network namespace has sent (proc(5), `/proc/net/dev`).
pub(super) fn bytes_sent() -> io::Result<BTreeMap<String, u64>> {
    Ok(parse(&std::fs::read_to_string("/proc/self/net/dev")?))
}

/// `  eth0: <8 numbers received> <bytes sent> …`; the two header lines hold no number there.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let sent = numbers.split_whitespace().nth(8)?.parse().ok()?;
        Some((name.trim().to_owned(), sent))
    };
    text.lines().filter_map(line).collect()
}

/// What one interface sends beside our probes.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    last: Option<(Instant, u64)>,
    /// Bytes of our own probes since the last look, with their headers.
    probes: u64,
    /// Bits a second of everything else between the last two looks.
    rate: Option<u64>,
}

impl Traffic {
    /// Counts a probe of ours, so that it does not make the link look busy.
    pub(super) fn probe_sent(&mut self, frame_bytes: u64) {
        self.probes += frame_bytes;
    }

    /// Takes the interface's counter; a counter that fell (an interface made anew) begins a new measure.
    pub(super) fn look(&mut self, now: Instant, bytes: u64) {
        let probes = std::mem::take(&mut self.probes);
        self.rate = self.last.and_then(|(then, before)| {
            let others = bytes.checked_sub(before)?.saturating_sub(probes);
            let millis = u64::try_from(now.saturating_duration_since(then).as_millis()).ok()?;
            (others * 8000).checked_div(millis)
        });
        self.last = Some((now, bytes));
    }

    /// Bits a second that passed beside our probes, as last looked at.
    pub(super) fn rate(&self) -> Option<BitRate> {
        self.rate.map(BitRate)
    }

    /// Whether so little passes that the link should have room.
    pub(super) fn should_have_room(&self, capacity: BitRate) -> bool {
        self.rate.is_some_and(|rate| rate.saturating_mul(100) < capacity.0.saturating_mul(FULL_PERCENT))
    }

    /// Whether a train would measure what others leave. A link of unknown capacity is tried in any case,
    /// one that was not looked at twice is not.
    pub(super) fn is_busy(&self, capacity: Option<BitRate>) -> bool {
        capacity.is_some_and(|capacity| self.rate.is_none_or(|rate| rate > capacity.0 / BUSY_PART))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CAPACITY: Option<BitRate> = Some(BitRate(20_000_000));

    #[test]
    fn the_kernel_s_table_reads() {
        let text = "Inter-|   Receive                        |  Transmit\n face |bytes packets errs drop fifo frame \
                    compressed multicast|bytes packets\n  to-n2: 10 1 0 0 0 0 0 0 4711 1 0 0 0 0 0 0\n";
        assert_eq!(parse(text), BTreeMap::from([("to-n2".to_owned(), 4711)]));
        assert!(bytes_sent().unwrap().contains_key("lo"));
    }

    #[test]
    fn a_link_is_busy_with_others_not_with_our_probes() {
        let (mut traffic, start) = (Traffic::default(), Instant::now());
        let second = |n| start + Duration::from_secs(n);
        assert!(traffic.is_busy(CAPACITY), "not yet looked at");
        assert!(!traffic.is_busy(None), "unknown capacity is tried");
        traffic.look(second(0), 1_000);
        traffic.probe_sent(45_000);
        traffic.look(second(1), 46_000);
        assert!(!traffic.is_busy(CAPACITY), "only our train passed");
        traffic.look(second(2), 2_046_000);
        assert!(traffic.is_busy(CAPACITY), "16 Mbit/s of others");
        assert_eq!(traffic.rate(), Some(BitRate(16_000_000)));
        assert!(
            traffic.should_have_room(BitRate(20_000_000)) && !traffic.should_have_room(BitRate(18_000_000))
        );
        traffic.look(second(3), 2_047_000);
        assert!(!traffic.is_busy(CAPACITY), "quiet again");
    }

    #[test]
    fn a_counter_that_falls_begins_anew() {
        let (mut traffic, start) = (Traffic::default(), Instant::now());
        traffic.look(start, 9_000_000);
        traffic.look(start + Duration::from_secs(1), 10);
        assert!(traffic.is_busy(CAPACITY));
        traffic.look(start + Duration::from_secs(2), 20);
        assert!(!traffic.is_busy(CAPACITY));
    }
}
