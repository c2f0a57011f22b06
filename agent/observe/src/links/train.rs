//! The packet train, receiver's side: from arrival times to the capacity of the link.
//!
//! Only the second half counts. A token bucket lets its burst pass at the speed of the device, so a
//! packet pair or a short train reads many times the shaped rate; by the second half of 30 full
//! frames the usual bucket of 16 KB is empty and the packets leave at the rate of the shaper.

use super::packet::TRAIN_FRAME;
use edgeloom_common::units::BitRate;

/// Packets of a train: 45 KB, 18 ms of a 20 Mbit/s link.
pub(super) const LENGTH: u32 = 30;

/// Fewer arrivals of the second half than this say too little.
const ARRIVALS_MIN: usize = 8;

/// Anything faster is an artefact of the clock.
const RATE_MAX: u64 = 400_000_000_000;

/// The train that is coming in from one neighbour.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    train: u32,
    /// Kernel receive times of the second half, in nanoseconds, in the order of arrival.
    times_ns: Vec<u64>,
    /// Which packets were seen, so that a repeated one does not count.
    seen: u32,
}

impl Arrivals {
    /// Notes a packet. The first packet of another train ends the one before.
    pub(super) fn note(&mut self, train: u32, index: u32, at_ns: u64) {
        if train != self.train {
            self.train = train;
            self.times_ns.clear();
            self.seen = 0;
        }
        let fresh = index < LENGTH && self.seen & (1 << index) == 0;
        if fresh {
            self.seen |= 1 << index;
            if index >= LENGTH / 2 {
                self.times_ns.push(at_ns);
            }
        }
    }

    /// The wire rate of `train`, if enough of it arrived.
    pub(super) fn rate(&self, train: u32) -> Option<BitRate> {
        if train != self.train || self.times_ns.len() < ARRIVALS_MIN {
            return None;
        }
        let (first, last) = (*self.times_ns.first()?, *self.times_ns.last()?);
        let span_ns = last.checked_sub(first).filter(|span| *span > 0)?;
        let bits = (self.times_ns.len() as u64 - 1) * TRAIN_FRAME as u64 * 8;
        let rate = u128::from(bits) * 1_000_000_000 / u128::from(span_ns);
        u64::try_from(rate).ok().filter(|rate| (1..=RATE_MAX).contains(rate)).map(BitRate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrival of packet `index` behind a bucket of ten packets and a shaper of 1 ms a packet.
    fn shaped(index: u32) -> u64 {
        1_000_000_000 + u64::from(index.min(10)) * 1_000 + u64::from(index.saturating_sub(10)) * 1_000_000
    }

    const MS_A_FRAME: BitRate = BitRate(1514 * 8 * 1000);

    #[test]
    fn the_burst_of_a_token_bucket_does_not_count() {
        let mut arrivals = Arrivals::default();
        (0..LENGTH).for_each(|index| arrivals.note(1, index, shaped(index)));
        assert_eq!(arrivals.rate(1), Some(MS_A_FRAME));
        assert_eq!(arrivals.rate(2), None);
    }

    #[test]
    fn drops_before_the_shaper_do_not_bend_the_rate() {
        let mut arrivals = Arrivals::default();
        let kept = (0..LENGTH).filter(|index| index % 4 != 0);
        for (position, index) in kept.enumerate() {
            arrivals.note(1, index, shaped(u32::try_from(position).unwrap() + 10));
        }
        assert_eq!(arrivals.rate(1), Some(MS_A_FRAME));
    }

    #[test]
    fn too_few_repeated_and_impossible_packets_give_no_rate() {
        let mut arrivals = Arrivals::default();
        (0..22).for_each(|index| arrivals.note(1, index, shaped(index)));
        assert_eq!(arrivals.rate(1), None);
        (0..100).for_each(|_| arrivals.note(1, 15, shaped(15)));
        (30..100).for_each(|index| arrivals.note(1, index, shaped(index)));
        assert_eq!(arrivals.rate(1), None);

        let mut instant = Arrivals::default();
        (0..LENGTH).for_each(|index| instant.note(2, index, 5));
        assert_eq!(instant.rate(2), None);
        let mut backwards = Arrivals::default();
        (0..LENGTH).for_each(|index| backwards.note(3, index, 1_000 - u64::from(index)));
        assert_eq!(backwards.rate(3), None);
    }

    #[test]
    fn a_new_train_starts_over() {
        let mut arrivals = Arrivals::default();
        (0..LENGTH).for_each(|index| arrivals.note(1, index, shaped(index)));
        (0..LENGTH).for_each(|index| arrivals.note(2, index, 2 * shaped(index)));
        assert_eq!(arrivals.rate(1), None);
        assert_eq!(arrivals.rate(2), Some(BitRate(MS_A_FRAME.0 / 2)));
    }
}
