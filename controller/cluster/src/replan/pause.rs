//! How long to leave alone what was just re-planned: once a job and minute, and each cause longer the
//! oftener it came up.

use super::CauseKey;
use edgeloom_common::ids::JobName;
use std::collections::BTreeMap;

/// At most one re-plan a job in this time.
pub(crate) const JOB_MS: u64 = 60_000;
/// After a re-plan for something that got better.
const BETTER_MS: u64 = 300_000;
/// A slight change for the worse is no reason for another re-plan within this.
const LATELY_MS: u64 = 900_000;
/// Each further re-plan for the same cause multiplies the pause.
const FACTOR: u64 = 4;
const PAUSE_MAX_MS: u64 = 3_600_000;
/// A cause not seen for this long begins anew.
const FORGOTTEN_MS: u64 = 7_200_000;

/// One cause's record.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    times: u32,
    last_ms: u64,
}

/// All pauses.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    jobs: BTreeMap<JobName, u64>,
    causes: BTreeMap<CauseKey, Record>,
}

impl Pauses {
    pub(crate) fn job_may(&self, job: &JobName, now_ms: u64) -> bool {
        self.jobs.get(job).is_none_or(|last_ms| now_ms.saturating_sub(*last_ms) >= JOB_MS)
    }

    /// Whether the cause may lead to a re-plan now. What got worse waits less than what got better.
    pub(crate) fn cause_may(&self, key: &CauseKey, better: bool, now_ms: u64) -> bool {
        let Some(record) = self.causes.get(key) else { return true };
        let first_ms = if better { BETTER_MS } else { JOB_MS };
        let pause_ms = first_ms.saturating_mul(FACTOR.saturating_pow(record.times - 1)).min(PAUSE_MAX_MS);
        now_ms.saturating_sub(record.last_ms) >= pause_ms
    }

    /// Whether the cause was acted on within the last minutes.
    pub(crate) fn lately(&self, key: &CauseKey, now_ms: u64) -> bool {
        self.causes.get(key).is_some_and(|record| now_ms.saturating_sub(record.last_ms) < LATELY_MS)
    }

    /// Notes a re-plan, or the attempt at one, for a cause.
    pub(crate) fn note_cause(&mut self, key: CauseKey, now_ms: u64) {
        self.causes.retain(|_, record| now_ms.saturating_sub(record.last_ms) < FORGOTTEN_MS);
        let record = self.causes.entry(key).or_default();
        *record = Record { times: record.times.saturating_add(1), last_ms: now_ms };
    }

    pub(crate) fn note_job(&mut self, job: JobName, now_ms: u64) {
        self.jobs.insert(job, now_ms);
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&JobName) -> bool) {
        self.jobs.retain(|job, _| keep(job));
        self.causes.retain(|key, _| key.job().is_none_or(&keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_waits_longer_each_time() {
        let key = CauseKey::link(&"n1".parse().unwrap(), &"n2".parse().unwrap());
        let mut pauses = Pauses::default();
        assert!(pauses.cause_may(&key, false, 0));
        pauses.note_cause(key.clone(), 0);
        assert!(!pauses.cause_may(&key, false, 59_999) && pauses.cause_may(&key, false, 60_000));
        assert!(!pauses.cause_may(&key, true, 299_999) && pauses.cause_may(&key, true, 300_000));
        pauses.note_cause(key.clone(), 60_000);
        assert!(!pauses.cause_may(&key, false, 299_999) && pauses.cause_may(&key, false, 300_000));
        for turn in 1..100 {
            pauses.note_cause(key.clone(), turn * 300_000);
        }
        assert!(pauses.cause_may(&key, true, 99 * 300_000 + PAUSE_MAX_MS), "never for good");
    }
}
