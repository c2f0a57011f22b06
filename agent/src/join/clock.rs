//! Judging certificates of the controller by a clock that may be wrong: a Pi has none while it is off.
//!
//! What is tolerated, exactly. The time that counts is the system's if it lies between the last time that
//! a controller told us and a year after, and that last time otherwise. A certificate whose time has not
//! begun is taken as if it had: our clock is behind, and nobody can make a certificate of the authority
//! but the authority. One whose time is over at the time that counts is refused. The year is how long our
//! own certificate lasts: after it the controller, whose clock is right, would refuse us anyway.

use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error};
use std::time::Duration;

/// When this version was made: no clock shows less. 2026-01-01.
pub(super) const RELEASED_S: u64 = 1_767_225_600;

/// How far the system's time may be ahead of the last time told, and still count.
pub(super) const AHEAD_MAX_S: u64 = 365 * 24 * 3600;

/// Beginnings to step over: one of each certificate of a chain.
const STEPS_MAX: u32 = 4;

/// What is known of the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Told by a controller, or of this version.
    pub(super) good_s: u64,
    pub(super) ahead_max_s: u64,
}

impl Known {
    fn plausible(self, system_s: u64) -> u64 {
        let range = self.good_s..=self.good_s.saturating_add(self.ahead_max_s);
        if range.contains(&system_s) { system_s } else { self.good_s }
    }

    /// Verifies at the time that counts.
    pub(super) fn verify<T>(
        self,
        system: UnixTime,
        verify: impl Fn(UnixTime) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut at_s = self.plausible(system.as_secs());
        let mut outcome = verify(time(at_s));
        for _ in 0..STEPS_MAX {
            let Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) =
                &outcome
            else {
                break;
            };
            at_s = at_s.max(not_before.as_secs());
            outcome = verify(time(at_s));
        }
        outcome
    }
}

fn time(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = 24 * 3600;
    const GOOD_S: u64 = RELEASED_S + 100 * DAY_S;
    const KNOWN: Known = Known { good_s: GOOD_S, ahead_max_s: AHEAD_MAX_S };

    /// A certificate that is valid from one time to another.
    fn valid(from_s: u64, to_s: u64) -> impl Fn(UnixTime) -> Result<u64, Error> {
        move |at| {
            if at.as_secs() < from_s {
                let context = CertificateError::NotValidYetContext { time: at, not_before: time(from_s) };
                return Err(Error::InvalidCertificate(context));
            }
            let expired = CertificateError::ExpiredContext { time: at, not_after: time(to_s) };
            if at.as_secs() > to_s { Err(Error::InvalidCertificate(expired)) } else { Ok(at.as_secs()) }
        }
    }

    #[test]
    fn a_right_clock_judges_strictly_at_the_end_of_a_certificate() {
        let now = time(GOOD_S + 5 * DAY_S);
        assert_eq!(KNOWN.verify(now, valid(GOOD_S, GOOD_S + 9 * DAY_S)), Ok(GOOD_S + 5 * DAY_S));
        assert!(KNOWN.verify(now, valid(GOOD_S, GOOD_S + 4 * DAY_S)).is_err());
    }

    #[test]
    fn a_clock_at_its_birth_or_years_ahead_counts_as_the_last_time_told() {
        for wrong_s in
            [0, RELEASED_S - 400 * DAY_S, GOOD_S - 1, GOOD_S + AHEAD_MAX_S + 1, GOOD_S + 4000 * DAY_S]
        {
            let present = valid(GOOD_S - DAY_S, GOOD_S + DAY_S);
            assert_eq!(KNOWN.verify(time(wrong_s), present), Ok(GOOD_S), "{wrong_s}");
            let over = valid(GOOD_S - 9 * DAY_S, GOOD_S - DAY_S);
            assert!(KNOWN.verify(time(wrong_s), over).is_err(), "an expired one is never taken: {wrong_s}");
        }
    }

    #[test]
    fn a_certificate_from_after_the_last_time_told_is_taken_as_begun() {
        let renewed = valid(GOOD_S + 20 * DAY_S, GOOD_S + 110 * DAY_S);
        assert_eq!(KNOWN.verify(time(0), renewed), Ok(GOOD_S + 20 * DAY_S));
    }
}
