//! When a job may be committed again after nodes did not carry its last commit out.
//!
//! The first failure may be tried again at once: the node that failed is left out then. After each further
//! one the pause doubles, from 1 s up to 5 min, so that a node which takes documents and does not carry them
//! out is not fed new ones without end. What was carried out is forgotten.

use edgeloom_common::ids::JobName;
use std::collections::BTreeMap;

const FIRST_MS: u64 = 1_000;
const MOST_MS: u64 = 300_000;
/// A failure this long after its pause says nothing any more.
const FORGOTTEN_MS: u64 = 1_800_000;

#[derive(Debug, Clone, Copy, Default)]
struct Retry {
    failures: u32,
    until_ms: u64,
}

/// Jobs whose last commit failed.
#[derive(Debug, Default)]
pub(crate) struct Retries(BTreeMap<JobName, Retry>);

impl Retries {
    pub(crate) fn may(&self, job: &JobName, now_ms: u64) -> bool {
        self.pause_ms(job, now_ms).is_none()
    }

    /// How long the job still waits for its next attempt; none if it does not.
    pub(crate) fn pause_ms(&self, job: &JobName, now_ms: u64) -> Option<u64> {
        let left_ms = self.0.get(job)?.until_ms.saturating_sub(now_ms);
        (left_ms > 0).then_some(left_ms)
    }

    /// Notes a failure, one of several at once by `turn`: jobs that failed together are not tried together
    /// for ever. The pause that follows.
    pub(crate) fn failed(&mut self, job: &JobName, turn: u64, now_ms: u64) -> u64 {
        let retry = self.0.entry(job.clone()).or_default();
        let pause_ms = match retry.failures {
            0 => 0,
            times => FIRST_MS.saturating_mul(2_u64.saturating_pow(times - 1)).min(MOST_MS),
        };
        let pause_ms = pause_ms.saturating_mul(turn + 1);
        *retry = Retry { failures: retry.failures.saturating_add(1), until_ms: now_ms + pause_ms };
        pause_ms
    }

    /// The job was never tried, or its last commit was carried out.
    pub(crate) fn fresh(&self, job: &JobName) -> bool {
        !self.0.contains_key(job)
    }

    pub(crate) fn carried_out(&mut self, job: &JobName) {
        self.0.remove(job);
    }

    /// Forgets jobs for which `keep` says no, and failures after which nothing was tried for long.
    pub(crate) fn retain(&mut self, keep: impl Fn(&JobName) -> bool, now_ms: u64) {
        self.0.retain(|job, retry| keep(job) && now_ms < retry.until_ms.saturating_add(FORGOTTEN_MS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_a_second_to_five_minutes_and_success_ends_them() {
        let (mut retries, job) = (Retries::default(), "a".parse().unwrap());
        let pauses: Vec<u64> = (0..12).map(|_| retries.failed(&job, 0, 0) / 1000).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert!(!retries.may(&job, MOST_MS - 1) && retries.may(&job, MOST_MS));
        retries.carried_out(&job);
        assert!(retries.may(&job, 0) && retries.fresh(&job));
        assert_eq!(retries.failed(&job, 0, 0), 0);
        assert_eq!([0, 1, 2].map(|turn| retries.failed(&job, turn, 0)), [1_000, 4_000, 12_000]);
    }
}
