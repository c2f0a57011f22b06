//! What a node's finished pulls teach: what its line to the registries gives, and how far predictions were off.
//!
//! In: pulls as the node reports them, again and again, and what was predicted for each. Out: the learnt goodput
//! and a summary. Nothing here outlives the controller; what the node still reports is learnt anew.

use crate::figures::Histogram;
use edgeloom_common::report::PullState;
use edgeloom_common::units::Bytes;
use edgeloom_common::view::PullsView;
use edgeloom_sched::pull::{Fetch, Goodput, Learnt};
use std::collections::{BTreeSet, VecDeque};

/// How many pulls are kept.
const KEPT: usize = 256;
/// Upper bounds of how far predicted seconds are off, as a part of those taken.
const ERROR_BOUNDS: [f64; 6] = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// One node's line and pulls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    learnt: Learnt,
    /// The newest last.
    finished: VecDeque<Finished>,
    /// What the node reported last: it may be more than is kept.
    told: BTreeSet<Told>,
    pulled: Pulled,
}

/// Image, milliseconds and bytes of a pull, which no other pull of a node has alike.
type Told = (String, Option<u64>, u64);

fn told(pull: &PullState) -> Told {
    (pull.image.clone(), pull.took_ms, pull.bytes_fetched.0)
}

/// A node's pulls since the controller started, in numbers that never fall.
#[derive(Debug, Clone, PartialEq)]
pub struct Pulled {
    pub finished: u64,
    /// Those of which bytes were predicted, since tasks waited for them.
    pub predicted: u64,
    /// Of the predicted ones those that fetched the predicted bytes to the byte.
    pub exact: u64,
    /// Of layers, over the predicted ones; configurations apart, which nodes do not count.
    pub bytes_predicted: u64,
    pub bytes_fetched: u64,
    /// How far predicted seconds were off, as a part of those taken.
    pub seconds_error: Histogram,
}

impl Default for Pulled {
    fn default() -> Self {
        let (finished, predicted, exact, bytes_predicted, bytes_fetched) = Default::default();
        let seconds_error = Histogram::new(&ERROR_BOUNDS);
        Self { finished, predicted, exact, bytes_predicted, bytes_fetched, seconds_error }
    }
}

impl Pulled {
    fn add(&mut self, pull: &Finished) {
        self.finished += 1;
        if let Some(bytes) = pull.bytes_predicted {
            self.predicted += 1;
            self.exact += u64::from(pull.is_exact());
            self.bytes_predicted = self.bytes_predicted.saturating_add(bytes.0);
            self.bytes_fetched = self.bytes_fetched.saturating_add(pull.state.bytes_fetched.0);
        }
        pull.seconds_error().into_iter().for_each(|error| self.seconds_error.add(error));
    }
}

/// What the controller knows of a pull.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// Its layers, as predicted; none where no task waited for the image.
    pub(crate) fetch: Option<Fetch>,
    /// What flows leave of the line; none where they have nothing of it.
    pub(crate) left: Option<Goodput>,
}

/// A line beside flows.
fn beside(line: Option<Goodput>, left: Option<Goodput>) -> Option<Goodput> {
    match (line, left) {
        (Some(line), Some(left)) => Some(line.at_most(left)),
        (line, left) => line.or(left),
    }
}

/// A pull that is done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finished {
    state: PullState,
    /// Bytes of layers; none where no task waited for the image.
    bytes_predicted: Option<Bytes>,
    pub(crate) seconds: f64,
    /// By the goodput known before; none before the first pull that told one.
    pub(crate) seconds_predicted: Option<f64>,
}

impl Line {
    /// What pulls get over it, as far as known.
    pub(crate) fn goodput(&self) -> Option<Goodput> {
        self.learnt.goodput()
    }

    /// Takes in a pull that is done, with what was known of it; one that was reported before teaches nothing.
    #[expect(clippy::cast_precision_loss, reason = "a pull takes far less than 2^52 milliseconds")]
    pub(crate) fn learn(&mut self, pull: &PullState, known: impl FnOnce() -> Known) {
        let Some(took_ms) = pull.took_ms else { return };
        if self.told.contains(&told(pull)) || self.finished.iter().any(|finished| finished.state == *pull) {
            return;
        }
        let Known { fetch, left } = known();
        let seconds = took_ms as f64 / 1000.0;
        let bytes_predicted = fetch.map(|fetch| fetch.layer_bytes);
        let foretold = beside(self.goodput(), left).zip(fetch);
        let seconds_predicted = foretold.map(|(goodput, fetch)| fetch.seconds(goodput, Bytes(0)));
        // What flows left says nothing of the line, and what came from elsewhere nothing of the way to the registry.
        if left.is_none() && pull.bytes_elsewhere.0 == 0 {
            let as_predicted = fetch.filter(|fetch| fetch.layer_bytes == pull.bytes_fetched);
            let fetched = as_predicted.unwrap_or_else(|| Fetch::even(pull.layers, pull.bytes_fetched));
            self.learnt.take(fetched, seconds);
        }
        if self.finished.len() == KEPT {
            self.finished.pop_front();
        }
        let finished = Finished { state: pull.clone(), bytes_predicted, seconds, seconds_predicted };
        self.pulled.add(&finished);
        self.finished.push_back(finished);
    }

    /// These are the pulls that the node reported, all of which are learnt.
    pub(crate) fn learnt<'a>(&mut self, pulls: impl Iterator<Item = &'a PullState>) {
        self.told = pulls.map(told).collect();
    }

    /// Its pulls since the start.
    pub(crate) fn pulled(&self) -> &Pulled {
        &self.pulled
    }

    /// The last pull of an image.
    pub(crate) fn last(&self, image: &str) -> Option<&Finished> {
        self.finished.iter().rev().find(|finished| finished.state.image == image)
    }

    /// How far predictions were off.
    pub(crate) fn view(&self) -> PullsView {
        let foretold = || self.finished.iter().filter_map(|it| Some((it, it.bytes_predicted?)));
        let mut errors: Vec<f64> = self.finished.iter().filter_map(Finished::seconds_error).collect();
        errors.sort_by(f64::total_cmp);
        PullsView {
            finished: foretold().count(),
            exact: foretold().filter(|(it, _)| it.is_exact()).count(),
            bytes_predicted: foretold().map(|(_, bytes)| bytes.0).fold(0, u64::saturating_add),
            bytes_fetched: foretold().map(|(it, _)| it.state.bytes_fetched.0).fold(0, u64::saturating_add),
            seconds_error_median: errors.get(errors.len() / 2).copied(),
            goodput_bps: self.goodput().map(|goodput| goodput.rate().0),
        }
    }
}

impl Finished {
    fn is_exact(&self) -> bool {
        self.bytes_predicted == Some(self.state.bytes_fetched)
    }

    fn seconds_error(&self) -> Option<f64> {
        let off = (self.seconds_predicted? - self.seconds).abs();
        (self.seconds > 0.0 && self.state.bytes_fetched.0 > 0).then(|| off / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::BitRate;

    fn pull(image: &str, megabytes: u64, took_ms: u64) -> PullState {
        PullState {
            image: image.to_owned(),
            bytes_fetched: Bytes(megabytes * 1_000_000),
            bytes_total: None,
            layers: 1,
            took_ms: Some(took_ms),
            bytes_elsewhere: Bytes(0),
            done: true,
            error: String::new(),
        }
    }

    fn predicted(bytes_predicted: Option<Bytes>) -> Known {
        Known { fetch: bytes_predicted.map(|bytes| Fetch::even(1, bytes)), left: None }
    }

    #[test]
    fn a_pull_beside_flows_is_foretold_by_what_they_leave_and_teaches_nothing_of_the_line() {
        let mut line = Line::default();
        line.learn(&pull("a", 10, 8_340), || predicted(Some(Bytes(10_000_000))));
        let left = Goodput::beside_flows(BitRate(20_000_000), BitRate(16_000_000));
        let beside = || Known { fetch: Some(Fetch::even(1, Bytes(5_000_000))), left: Some(left) };
        line.learn(&pull("b", 5, 11_270), beside);
        let last = line.last("b").unwrap();
        // 3.63 Mbit/s of payload: 0.95 of 4 Mbit/s on the wire.
        assert!((last.seconds_predicted.unwrap() - 11.26).abs() < 0.05, "{last:?}");
        assert_eq!(line.view().goodput_bps, Some(10_000_000));
    }

    #[test]
    fn the_goodput_is_learnt_and_foretells_the_next_pull() {
        let mut line = Line::default();
        // 10 MB in 8 s beside 0.34 s of start and unpacking: 10 Mbit/s.
        line.learn(&pull("a", 10, 8_340), || predicted(Some(Bytes(10_000_000))));
        assert_eq!(line.view().goodput_bps, Some(10_000_000));
        assert_eq!(line.last("a").unwrap().seconds_predicted, None);
        line.learn(&pull("b", 5, 4_240), || predicted(Some(Bytes(5_000_000))));
        let last = line.last("b").unwrap();
        assert!((last.seconds_predicted.unwrap() - last.seconds).abs() < 1e-9);
        assert!(line.view().seconds_error_median.unwrap() < 1e-9);
    }

    #[test]
    fn what_neighbours_gave_teaches_nothing_of_the_line_to_the_registry() {
        let mut line = Line::default();
        let near = PullState { bytes_elsewhere: Bytes(9_000_000), ..pull("a", 10, 800) };
        line.learn(&near, || predicted(Some(Bytes(10_000_000))));
        assert_eq!((line.goodput(), line.view().finished), (None, 1));
    }

    #[test]
    fn a_pull_counts_once_however_often_it_is_told() {
        let mut line = Line::default();
        for _ in 0..3 {
            line.learn(&pull("a", 10, 9_000), || predicted(Some(Bytes(9_000_000))));
        }
        let view = line.view();
        assert_eq!((view.finished, view.exact), (1, 0));
        assert_eq!((view.bytes_predicted, view.bytes_fetched), (9_000_000, 10_000_000));
    }

    #[test]
    fn small_pulls_and_impossible_times_teach_no_goodput() {
        let mut line = Line::default();
        line.learn(&PullState { bytes_fetched: Bytes(1000), ..pull("a", 0, 500) }, || {
            predicted(Some(Bytes(1000)))
        });
        line.learn(&pull("b", 10, 0), || predicted(None));
        line.learn(&PullState { layers: u32::MAX, ..pull("c", 10, 9_000) }, || predicted(None));
        assert_eq!(line.goodput(), None);
        assert_eq!((line.view().finished, line.view().exact), (1, 1));
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut line = Line::default();
        (0..2 * KEPT).for_each(|number| {
            line.learn(&pull(&number.to_string(), 1, 1_000), || predicted(Some(Bytes(1))));
        });
        assert_eq!(line.view().finished, KEPT);
        assert!(line.last("0").is_none());
    }

    #[test]
    fn more_pulls_than_are_kept_count_once_however_often_they_are_told() {
        let mut line = Line::default();
        let pulls: Vec<_> = (0..2 * KEPT).map(|number| pull(&number.to_string(), 1, 1_000)).collect();
        for _ in 0..3 {
            pulls.iter().for_each(|pull| line.learn(pull, || predicted(Some(pull.bytes_fetched))));
            line.learnt(pulls.iter());
        }
        let pulled = line.pulled();
        let all = 2 * KEPT as u64;
        assert_eq!((pulled.finished, pulled.predicted, pulled.exact), (all, all, all));
        assert_eq!(pulled.bytes_fetched, all * 1_000_000);
        assert_eq!(pulled.seconds_error.count(), all - 1, "the first one had no goodput to go by");
    }
}
