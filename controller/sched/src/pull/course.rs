//! How a pull goes: layers come over the line, bottom first, while those that came are unpacked.
//!
//! Docker unpacks one layer of an image at a time, each above the one below. So for every layer a pull takes at
//! least as long as this one and those below take to come, and then this one and those above to be unpacked; the
//! longest of these is what it takes. An image of many small layers is unpacked long after it came, one of few large
//! ones is not. In: the sizes of the layers. Out: seconds on a line, and the other way round what a pull's seconds
//! say of its line.

use super::Goodput;
use edgeloom_common::units::Bytes;

/// Seconds that a pull takes whatever it fetches, microseconds to unpack a layer whatever its size, and bytes, as they
/// came, that are unpacked in one. Fitted to 299 pulls of 23 images by Docker 20.10 over 20 and 40 Mbit/s, in nine
/// runs; by what the others gave, each run was 2 to 8% off in the median.
const START_S: f64 = 0.05;
const LAYER_US: u64 = 90_000;
const UNPACKED_PER_US: u64 = 50;
/// More than decide of any official image.
const STAGES: usize = 8;

/// A layer that can be the last to be waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stage {
    /// Bytes of it and those below.
    come: u64,
    /// Microseconds to unpack it and those above.
    unpack_us: u64,
}

/// The layers that decide at some goodput or other, bottom first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Course {
    stages: [Stage; STAGES],
    count: usize,
}

/// What a pull told of its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    pub(super) bits: f64,
    /// The line took for each.
    pub(super) bit_s: f64,
}

fn unpack_us(layers: u64, bytes: u64) -> u64 {
    layers.saturating_mul(LAYER_US).saturating_add(bytes / UNPACKED_PER_US)
}

impl Course {
    /// Of layers of these sizes, bottom first.
    pub(super) fn of(sizes: &[Bytes]) -> Self {
        let all: u64 = sizes.iter().map(|size| size.0).sum();
        let (mut course, mut come) = (Self::default(), 0);
        for (size, above) in sizes.iter().zip((1..=sizes.len() as u64).rev()) {
            let unpack_us = unpack_us(above, all - come);
            come += size.0;
            course.push(Stage { come, unpack_us });
        }
        course
    }

    /// Of so many layers that are all as large: the first or the last of them decides.
    pub(super) fn even(layers: u32, all: Bytes) -> Self {
        let layers = u64::from(layers.max(1));
        let one = all.0 / layers;
        let mut course = Self::default();
        course.push(Stage { come: one, unpack_us: unpack_us(layers, all.0) });
        course.push(Stage { come: all.0, unpack_us: unpack_us(1, one) });
        course
    }

    /// Takes in the next layer, and lets those go that it and an earlier one outdo at every goodput.
    fn push(&mut self, next: Stage) {
        while self.count >= 2 && outdone([self.stages[self.count - 2], self.stages[self.count - 1], next]) {
            self.count -= 1;
        }
        self.count = self.count.min(STAGES - 1);
        self.stages[self.count] = next;
        self.count += 1;
    }

    /// Over a line on which so much comes before.
    pub(super) fn seconds(&self, goodput: Goodput, before: Bytes) -> f64 {
        let stages = self.stages[..self.count].iter();
        let done_s = stages.map(|stage| {
            goodput.seconds(Bytes(before.0 + stage.come)) + stage.unpack_s() * goodput.unpacking
        });
        START_S + done_s.fold(goodput.seconds(before), f64::max)
    }

    /// What a pull that took so long told of its line, by the layer that was waited for, if its node unpacks so; none
    /// where it was done before that.
    pub(super) fn seen(&self, seconds: f64, unpacking: f64) -> Option<Seen> {
        let seen = self.stages[..self.count].iter().map(|stage| {
            let bits = super::bits(Bytes(stage.come));
            Seen { bits, bit_s: (seconds - START_S - stage.unpack_s() * unpacking) / bits }
        });
        seen.min_by(|one, other| one.bit_s.total_cmp(&other.bit_s)).filter(|seen| seen.bit_s > 0.0)
    }
}

impl Stage {
    #[expect(clippy::cast_precision_loss, reason = "years have fewer than 2^52 microseconds")]
    fn unpack_s(self) -> f64 {
        self.unpack_us as f64 / 1e6
    }
}

/// Whether the second of three stages is below the straight line between the others.
fn outdone([first, second, third]: [Stage; 3]) -> bool {
    let rise = |stage: Stage| i128::from(stage.come) - i128::from(first.come);
    let fall = |stage: Stage| i128::from(first.unpack_us) - i128::from(stage.unpack_us);
    fall(second) * rise(third) >= fall(third) * rise(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::BitRate;
    use proptest::prelude::*;

    fn line(mbit_s: u64) -> Goodput {
        Goodput::declared(BitRate(mbit_s * 1_000_000))
    }

    /// As the module says it, over all layers.
    fn longest(sizes: &[Bytes], goodput: Goodput) -> f64 {
        let mut free_s: f64 = 0.0;
        let mut come = 0;
        for size in sizes {
            come += size.0;
            let unpack_s = unpack_us(1, 0) as f64 / 1e6 + size.0 as f64 / UNPACKED_PER_US as f64 / 1e6;
            free_s = free_s.max(goodput.seconds(Bytes(come))) + unpack_s;
        }
        START_S + free_s
    }

    proptest! {
        #[test]
        fn only_layers_that_never_decide_are_let_go(sizes in prop::collection::vec(1_u64..10_000_000, 1..STAGES)) {
            let sizes: Vec<Bytes> = sizes.into_iter().map(Bytes).collect();
            let course = Course::of(&sizes);
            for mbit_s in [1, 5, 20, 100, 1000] {
                let (told, longest) = (course.seconds(line(mbit_s), Bytes(0)), longest(&sizes, line(mbit_s)));
                prop_assert!((told - longest).abs() < 1e-4, "{} {} at {}", told, longest, mbit_s);
            }
        }
    }

    #[test]
    fn more_layers_than_stages_are_told_by_the_last() {
        let sizes: Vec<Bytes> = (0..200).map(|at| Bytes(1000 * at * at)).collect();
        let course = Course::of(&sizes);
        let all: u64 = sizes.iter().map(|size| size.0).sum();
        assert!(course.seconds(line(1), Bytes(0)) >= line(1).seconds(Bytes(all)));
    }

    #[test]
    fn even_layers_are_as_those_of_one_size() {
        let (even, each) = (Course::even(7, Bytes(7_000_000)), Course::of(&[Bytes(1_000_000); 7]));
        for mbit_s in [1, 20, 1000] {
            let [even, each] = [even, each].map(|course| course.seconds(line(mbit_s), Bytes(0)));
            assert!((even - each).abs() < 1e-4, "{even} {each}");
        }
        assert!(Course::even(u32::MAX, Bytes(1)).seen(60.0, 1.0).is_none());
    }

    #[test]
    fn the_seconds_of_a_pull_tell_its_line() {
        let course = Course::of(&[800_000, 2_300_000, 16, 480_000, 16, 16].map(Bytes));
        for mbit_s in [1, 20, 100] {
            let seen = course.seen(course.seconds(line(mbit_s), Bytes(0)), 1.0).unwrap();
            assert!((seen.bit_s * line(mbit_s).bits_per_s - 1.0).abs() < 1e-9, "{seen:?}");
        }
        assert_eq!(course.seen(0.3, 1.0), None);
    }
}
