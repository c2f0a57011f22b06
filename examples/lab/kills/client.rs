//! A client that runs and stops small jobs all the time, and one that compares lists. Neither ever takes
//! silence for an answer.

use super::ledger::{Known, Ledger};
use super::timeline::Timeline;
use crate::api::{Api, Request};
use anyhow::Result;
use edgeloom_common::view::JobList;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between a request without an answer and the next.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// A request has to be answered within so long, whoever is down meanwhile.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);
/// One client's jobs at a time, at least and at most, once it has begun.
const JOBS: std::ops::Range<usize> = 2..5;
/// Seconds between two requests of a client.
const PAUSE_S: f64 = 2.5;
const LIST_PERIOD: Duration = Duration::from_millis(500);

/// What clients share.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) api: &'a Api,
    pub(crate) timeline: &'a Timeline,
    pub(crate) ledger: &'a Mutex<Ledger>,
    pub(crate) nodes: &'a [String],
}

/// What became of a request that was asked again until there was an answer.
struct Answered {
    status: u16,
    body: String,
    /// An answer to the same request was lost before.
    lost_before: bool,
}

impl Desk<'_> {
    fn ledger<T>(&self, with: impl FnOnce(&mut Ledger) -> T) -> T {
        with(&mut self.ledger.lock().expect("nobody panics with the ledger in hand"))
    }

    /// Runs and stops jobs of its own until told to end. Its first job is never stopped.
    pub(crate) fn run_and_stop(&self, name: &str, seed: u64, end: &AtomicBool) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut mine: Vec<String> = Vec::new();
        let mut count = 0;
        while !end.load(Ordering::Relaxed) {
            let more = mine.len() < JOBS.start || (mine.len() < JOBS.end && random.bool());
            if more {
                count += 1;
                let job = format!("{name}{count}");
                if self.run(&job, &mut random) {
                    mine.push(job);
                }
            } else {
                let job = mine.remove(random.usize(1..mine.len()));
                self.stop(&job);
            }
            std::thread::sleep(Duration::from_secs_f64(random.f64() * PAUSE_S));
        }
    }

    /// Posts a job; true if it is there afterwards.
    fn run(&self, job: &str, random: &mut fastrand::Rng) -> bool {
        let text = document(job, self.nodes, random);
        self.ledger(|ledger| ledger.ask(job));
        // After a lost answer some clients ask again, and others only look.
        let only_looks = random.u8(..4) == 0;
        let known = match self.answered(job, &Request::Post("/v1/jobs", &text), only_looks) {
            Some(Answered { status: 201, .. } | Answered { status: 409, lost_before: true, .. }) => {
                Known::Accepted
            }
            Some(Answered { status: 0, .. }) if self.is_there(job) => Known::Accepted,
            Some(Answered { status: 0, .. }) => Known::Never,
            Some(Answered { status, body, .. }) => {
                self.breach(job, format!("posting it is answered with {status}: {body}"));
                Known::Never
            }
            None => Known::Asked,
        };
        self.timeline.note(job, format!("posted: {known:?}"));
        self.ledger(|ledger| ledger.set(job, known));
        known == Known::Accepted
    }

    pub(crate) fn stop(&self, job: &str) {
        self.ledger(|ledger| ledger.stop(job, self.timeline.now_s()));
        self.timeline.note(job, "its end is asked for");
        match self.answered(job, &Request::Delete(&format!("/v1/jobs/{job}")), false) {
            Some(Answered { status: 202, .. } | Answered { status: 404, lost_before: true, .. }) => {
                self.ledger(|ledger| ledger.set(job, Known::Stopped));
                self.timeline.note(job, "its end is acknowledged");
            }
            Some(Answered { status, body, .. }) => {
                self.breach(job, format!("stopping it is answered with {status}: {body}"));
            }
            None => {}
        }
    }

    fn is_there(&self, job: &str) -> bool {
        let path = format!("/v1/jobs/{job}");
        self.answered(job, &Request::Get(&path), false).is_some_and(|answered| answered.status == 200)
    }

    fn breach(&self, job: &str, what: String) {
        self.timeline.note(job, format!("BREACH {what}"));
        self.ledger(|ledger| ledger.breach(job, what, self.timeline.now_s()));
    }

    /// Asks until there is an answer that is one; status 0 for a lost answer where `once` leaves it at that.
    fn answered(&self, job: &str, request: &Request<'_>, once: bool) -> Option<Answered> {
        let begun = Instant::now();
        let mut lost_before = false;
        while begun.elapsed() < ANSWER_LIMIT {
            match self.api.request(request) {
                Ok((status, body)) if status >= 500 => {
                    self.ledger(|ledger| ledger.count.put_off += 1);
                    self.timeline.note(job, format!("{request:?}: put off with {status}: {body}"));
                }
                Ok((status, body)) => return Some(Answered { status, body, lost_before }),
                // Nobody was there to take it.
                Err(error) if is_refused(&error) => {}
                Err(error) => {
                    lost_before = true;
                    self.ledger(|ledger| ledger.count.answers_lost += 1);
                    self.timeline.note(job, format!("the answer is lost: {error:#}"));
                    if once {
                        return Some(Answered { status: 0, body: String::new(), lost_before });
                    }
                }
            }
            std::thread::sleep(AGAIN_AFTER);
        }
        self.breach(job, format!("no answer within {} s", ANSWER_LIMIT.as_secs()));
        None
    }

    /// Holds the controller's lists against the ledger until told to end.
    pub(crate) fn compare_lists(&self, end: &AtomicBool) {
        while !end.load(Ordering::Relaxed) {
            // A controller that is down has no list.
            let _ = self.compare_list();
            std::thread::sleep(LIST_PERIOD);
        }
    }

    /// One comparison, and the list.
    pub(crate) fn compare_list(&self) -> Result<JobList> {
        let before = self.ledger(|ledger| ledger.known());
        let (status, body) = self.api.request(&Request::Get("/v1/jobs"))?;
        anyhow::ensure!(status == 200, "listing the jobs: status {status}: {body}");
        let list: JobList = serde_json::from_str(&body)?;
        let listed: BTreeSet<String> = list.jobs.iter().map(|job| job.name.to_string()).collect();
        for job in self.ledger(|ledger| ledger.compare(&before, &listed, self.timeline.now_s())) {
            self.timeline.note(&job, "BREACH in the list of jobs");
        }
        Ok(list)
    }
}

/// The connection was refused: the request cannot have been read.
fn is_refused(error: &anyhow::Error) -> bool {
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    matches!(error.downcast_ref(), Some(ureq::Error::Io(error)) if refused(error))
}

/// Three tasks in a row that do next to nothing. Two in three stay where their document says, so that flows
/// cross links and a task that changes its node does so for a reason.
fn document(job: &str, nodes: &[String], random: &mut fastrand::Rng) -> String {
    let mut node = || nodes[random.usize(..nodes.len())].clone();
    let (source, left, right) = (node(), node(), node());
    let mut place = |node: String| match random.u8(..3) {
        0 => String::new(),
        _ => format!("    constraints: [\"node.name == {node}\"]\n"),
    };
    let (left, right) = (place(left), place(right));
    let resources = "    resources: { cpu: 20m, memory: 16MiB }\n    work: 200us\n";
    format!(
        "kind: Job\nname: {job}\n\
         source:\n  node: {source}\n  image: 10.60.0.1:5000/vision/source:1.0\n  item: 2KB\n  rate: 4/s\n  \
         resources: {{ cpu: 20m, memory: 16MiB }}\n\
         tasks:\n  left:\n    image: 10.60.0.1:5000/three/left:1.0\n{resources}{left}    inputs: [source]\n    \
         outputs: {{ right: 1KB }}\n  \
         right:\n    image: 10.60.0.1:5000/three/right:1.0\n{resources}{right}    inputs: [left]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn every_document_reads_and_has_the_tasks_that_are_looked_for() {
        let nodes = ["n1", "n2", "n3", "n4"].map(str::to_owned);
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            let text = document("a1", &nodes, &mut random);
            assert_eq!(Document::read(&text).unwrap().sinks, ["right"], "{text}");
        }
    }

    #[test]
    fn only_a_refused_connection_proves_that_nobody_read_the_request() {
        let error =
            |kind| anyhow::Error::from(ureq::Error::Io(std::io::Error::from(kind))).context("posting");
        assert!(is_refused(&error(std::io::ErrorKind::ConnectionRefused)));
        assert!(!is_refused(&error(std::io::ErrorKind::ConnectionReset)));
    }
}
