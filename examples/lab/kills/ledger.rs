//! What was asked of the controller and what it acknowledged: the truth that its lists are held against.
//!
//! Every job has a name of its own. A request whose answer was lost is asked again, or asked about; the
//! first answer then binds the controller like any other.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Asked for, no answer yet.
    Asked,
    /// 201, or 409 after an answer that was lost, or shown when asked about.
    Accepted,
    /// Refused by its document, or not there when asked about after a lost answer.
    Never,
    /// DELETE is under way.
    Stopping,
    /// 202, or 404 after an answer that was lost.
    Stopped,
    /// Not listed any more after that.
    Gone,
}

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) known: Known,
    /// When its end was first asked for.
    pub(crate) stop_s: Option<f64>,
}

/// The answers so far.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(crate) struct Count {
    pub(crate) accepted: usize,
    pub(crate) stopped: usize,
    /// Requests whose answer never came.
    pub(crate) answers_lost: usize,
    /// Answers that put a request off, such as 503.
    pub(crate) put_off: usize,
    pub(crate) lists_compared: usize,
}

/// All jobs, by name.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) jobs: BTreeMap<String, Entry>,
    pub(crate) count: Count,
    /// (job, what is wrong), and since when.
    pub(crate) breaches: BTreeMap<(String, String), f64>,
}

impl Ledger {
    pub(crate) fn ask(&mut self, job: &str) {
        self.jobs.insert(job.to_owned(), Entry { known: Known::Asked, stop_s: None });
    }

    pub(crate) fn set(&mut self, job: &str, known: Known) {
        if let Some(entry) = self.jobs.get_mut(job) {
            entry.known = known;
        }
        match known {
            Known::Accepted => self.count.accepted += 1,
            Known::Stopped => self.count.stopped += 1,
            _ => {}
        }
    }

    pub(crate) fn stop(&mut self, job: &str, at_s: f64) {
        if let Some(entry) = self.jobs.get_mut(job) {
            entry.known = Known::Stopping;
            entry.stop_s.get_or_insert(at_s);
        }
    }

    /// True the first time.
    pub(crate) fn breach(&mut self, job: &str, what: impl Into<String>, at_s: f64) -> bool {
        let breach = (job.to_owned(), what.into());
        let new = !self.breaches.contains_key(&breach);
        self.breaches.entry(breach).or_insert(at_s);
        new
    }

    pub(crate) fn known(&self) -> BTreeMap<String, Known> {
        self.jobs.iter().map(|(job, entry)| (job.clone(), entry.known)).collect()
    }

    pub(crate) fn with(&self, known: Known) -> Vec<String> {
        let jobs = self.jobs.iter().filter(|(_, entry)| entry.known == known);
        jobs.map(|(job, _)| job.clone()).collect()
    }

    /// Holds a list against what was known before it was asked for and is known still: what changed in between
    /// may be in it or not. New breaches, by job.
    pub(crate) fn compare(
        &mut self,
        before: &BTreeMap<String, Known>,
        listed: &BTreeSet<String>,
        at_s: f64,
    ) -> Vec<String> {
        self.count.lists_compared += 1;
        let mut broken = Vec::new();
        for (job, known) in self.known() {
            if before.get(&job) != Some(&known) {
                continue;
            }
            let breach = match (known, listed.contains(&job)) {
                (Known::Accepted, false) => "accepted, and not listed",
                (Known::Gone, true) => "stopped and gone, and listed again",
                (Known::Never, true) => "not there when asked about, and listed",
                (Known::Stopped, false) => {
                    self.set(&job, Known::Gone);
                    continue;
                }
                _ => continue,
            };
            if self.breach(&job, breach, at_s) {
                broken.push(job);
            }
        }
        let strangers = listed.iter().filter(|job| !self.jobs.contains_key(*job));
        for job in strangers.cloned().collect::<Vec<_>>() {
            if self.breach(&job, "listed, and nobody asked for it", at_s) {
                broken.push(job);
            }
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(known: Known) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.ask("a");
        ledger.set("a", known);
        ledger
    }

    fn broken(known: Known, listed: &[&str]) -> bool {
        let mut ledger = ledger(known);
        let before = ledger.known();
        let listed = listed.iter().map(|job| (*job).to_owned()).collect();
        !ledger.compare(&before, &listed, 1.0).is_empty()
    }

    #[test]
    fn an_acknowledged_answer_binds_the_lists_after_it() {
        assert!(broken(Known::Accepted, &[]) && !broken(Known::Accepted, &["a"]));
        assert!(broken(Known::Gone, &["a"]) && !broken(Known::Gone, &[]));
        assert!(broken(Known::Never, &["a"]) && !broken(Known::Never, &[]));
        for open in [Known::Asked, Known::Stopping, Known::Stopped] {
            assert!(!broken(open, &["a"]) && !broken(open, &[]), "{open:?}");
        }
        assert!(broken(Known::Gone, &["b"]), "a job that nobody asked for");
    }

    #[test]
    fn what_changed_while_the_list_was_under_way_is_not_judged() {
        let mut ledger = ledger(Known::Accepted);
        let before = ledger.known();
        ledger.stop("a", 1.0);
        assert!(ledger.compare(&before, &BTreeSet::new(), 1.0).is_empty());
    }

    #[test]
    fn a_stopped_job_that_is_not_listed_is_gone_and_stays_gone() {
        let mut ledger = ledger(Known::Stopped);
        let before = ledger.known();
        ledger.compare(&before, &BTreeSet::new(), 1.0);
        let before = ledger.known();
        assert_eq!(before["a"], Known::Gone);
        assert_eq!(ledger.compare(&before, &BTreeSet::from(["a".to_owned()]), 1.0), ["a"]);
    }
}
