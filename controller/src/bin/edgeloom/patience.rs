//! Following a job while the controller is away: what runs goes on without it, so a restart is no reason to end.
//!
//! In: how requests went. Out: pauses that grow, a word on standard error when the controller goes and when it is
//! back, and at last the error itself: a controller that stays away is not waited for for ever.

use crate::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first pause; each further one is twice as long, up to the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);
/// How long a controller may be away: longer than a reboot of a slow machine.
const LIMIT: Duration = Duration::from_secs(300);
/// How long one that is back may not know a job: it may have lost its state, and asks the nodes for it.
const RECALL: Duration = Duration::from_secs(60);

/// How the controller stands, as one caller sees it.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Since when it does not answer.
    away: Option<Instant>,
    /// Since when it answers again.
    back: Option<Instant>,
    pause: Option<Duration>,
}

impl Patience {
    /// Asks until there is an answer that stands.
    pub(crate) fn until_answered<T>(
        &mut self,
        mut ask: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            match ask() {
                Ok(answer) => {
                    self.answered();
                    return Ok(answer);
                }
                Err(error) => self.bear(error)?,
            }
        }
    }

    /// Returns after a pause if another attempt may go better.
    pub(crate) fn bear(&mut self, error: Error) -> Result<(), Error> {
        let pause = self.next(&error, Instant::now()).ok_or(error)?;
        sleep(pause);
        Ok(())
    }

    fn answered(&mut self) {
        if self.away.take().is_some() {
            eprintln!("edgeloom: the controller answers again");
            self.back = Some(Instant::now());
        }
        self.pause = None;
    }

    /// The pause before the next attempt; none: there is to be none.
    fn next(&mut self, error: &Error, now: Instant) -> Option<Duration> {
        if error.is_passing() {
            let since = *self.away.get_or_insert_with(|| {
                let text = error.text();
                let line = text.lines().next().unwrap_or_default();
                eprintln!("{line}; the controller is asked again for {} s at most", LIMIT.as_secs());
                now
            });
            if LIMIT < now - since {
                return None;
            }
        } else {
            // It answers, if not well.
            if self.away.take().is_some() {
                self.back = Some(now);
            }
            let recalls = self.back.is_some_and(|back| now - back < RECALL);
            if !recalls || !error.is_unknown() {
                return None;
            }
        }
        let pause = self.pause.map_or(FIRST, |pause| (2 * pause).min(LONGEST));
        self.pause = Some(pause);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::view::Problem;

    fn away() -> Error {
        Error::Unreachable { server: String::new(), reason: String::new() }
    }

    fn refusal(status: u16) -> Error {
        let (code, title, detail) = (String::new(), String::new(), String::new());
        Error::Problem(Problem { code, title, status, detail, problems: vec![] })
    }

    #[test]
    fn pauses_grow_and_end_with_the_limit() {
        let (mut patience, begun) = (Patience::default(), Instant::now());
        let mut next = |seconds| patience.next(&away(), begun + Duration::from_secs(seconds));
        let pauses: Vec<_> = (0..6).map(|second| next(second).unwrap().as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 5000, 5000]);
        assert!(next(300).is_some() && next(301).is_none());
    }

    #[test]
    fn a_refusal_stands_but_for_a_job_that_the_controller_may_recall() {
        let (mut patience, begun) = (Patience::default(), Instant::now());
        assert_eq!(patience.next(&refusal(404), begun), None, "it was never away");
        assert!(patience.next(&refusal(503), begun).is_some(), "it is not ready yet");
        assert!(patience.next(&refusal(404), begun).is_some());
        assert_eq!(patience.next(&refusal(401), begun), None);
        assert_eq!(patience.next(&refusal(404), begun + RECALL), None);
    }
}
