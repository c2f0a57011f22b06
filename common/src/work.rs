//! The unit of computing effort: a fixed integer kernel, so that work declared in a job, a node's
//! measured speed and a program that burns the declared work all mean the same thing.

/// How many iterations of [`spin`] one reference core does in a second. The reference core is about a
/// Raspberry Pi 4's; any fixed number would do, since only ratios enter a decision.
pub const ITERATIONS_PER_SECOND: u64 = 250_000_000;

/// Runs the kernel `iterations` times and returns its state, which the caller must use (print, compare,
/// `black_box`) so that the loop is not optimised away. Each step depends on the one before
/// (xorshift64, Marsaglia 2003), so neither vector units nor several issue ports shorten it.
#[must_use]
pub fn spin(iterations: u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..iterations {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_published_xorshift() {
        assert_eq!(spin(0), 0x9e37_79b9_7f4a_7c15);
        assert_ne!(spin(1), spin(2));
        assert_eq!(spin(1000), spin(1000));
    }
}
