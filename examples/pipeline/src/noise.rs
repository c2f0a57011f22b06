//! Work that varies from item to item, the same way each time the task is started.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A uniform factor in 1 +- `spread`, item after item.
#[derive(Debug)]
pub(crate) struct Noise {
    spread: f64,
    state: u64,
}

impl Noise {
    /// The task's own sequence: two tasks do not vary together.
    pub(crate) fn new(task: &str, spread: f64) -> Self {
        let mut hasher = DefaultHasher::new();
        task.hash(&mut hasher);
        Self { spread, state: hasher.finish() }
    }

    /// The next item's work, in the unit of `work`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "work below 2^52, factors from 0 to 2"
    )]
    pub(crate) fn applied_to(&mut self, work: u64) -> u64 {
        if self.spread == 0.0 {
            return work;
        }
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (work as f64 * (1.0 + self.spread * (2.0 * uniform - 1.0))) as u64
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_stays_in_its_bounds_fills_them_and_keeps_the_mean() {
        let mut noise = Noise::new("detect", 0.2);
        let items: Vec<u64> = (0..10_000).map(|_| noise.applied_to(1_000_000)).collect();
        let (least, most) = (items.iter().min().unwrap(), items.iter().max().unwrap());
        assert!((800_000..810_000).contains(least) && (1_190_000..=1_200_000).contains(most));
        let mean = items.iter().sum::<u64>() / 10_000;
        assert!((995_000..1_005_000).contains(&mean), "{mean}");
    }

    #[test]
    fn each_task_varies_in_its_own_way_and_the_same_again() {
        let sequence = |task| {
            let mut noise = Noise::new(task, 0.2);
            [0; 8].map(|_: i32| noise.applied_to(1_000_000))
        };
        assert_eq!(sequence("left"), sequence("left"));
        assert_ne!(sequence("left"), sequence("right"));
        assert_eq!(Noise::new("left", 0.0).applied_to(17), 17);
    }
}
