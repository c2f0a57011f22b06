//! What happened when, of everybody, on one clock: the evidence beside a violation.

use std::sync::Mutex;
use std::time::Instant;
use time::OffsetDateTime;

/// Seconds before and after a violation that its evidence covers.
const AROUND_S: f64 = 30.0;

/// One thing that happened.
#[derive(Debug, Clone)]
struct Line {
    at_s: f64,
    /// A job, a node or `controller`.
    about: String,
    text: String,
}

/// The time line of a run; seconds count from its making.
#[derive(Debug)]
pub(crate) struct Timeline {
    begun: Instant,
    begun_at: OffsetDateTime,
    lines: Mutex<Vec<Line>>,
}

impl Timeline {
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now(), begun_at: OffsetDateTime::now_utc(), lines: Mutex::default() }
    }

    pub(crate) fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// A moment of the wall clock, as the daemons' logs stamp it.
    pub(crate) fn at_s(&self, moment: OffsetDateTime) -> f64 {
        (moment - self.begun_at).as_seconds_f64()
    }

    pub(crate) fn note(&self, about: &str, text: impl Into<String>) {
        self.note_at(self.now_s(), about, text);
    }

    pub(crate) fn note_at(&self, at_s: f64, about: &str, text: impl Into<String>) {
        let line = Line { at_s, about: about.to_owned(), text: text.into() };
        self.lines.lock().expect("nobody panics while noting").push(line);
    }

    /// What happened to any of these, and to the controller, around a moment.
    pub(crate) fn around(&self, about: &[&str], at_s: f64) -> Vec<String> {
        let near = |line: &Line| {
            let concerned = line.about == "controller" || about.contains(&line.about.as_str());
            concerned && (line.at_s - at_s).abs() <= AROUND_S
        };
        self.told(near)
    }

    /// Everything.
    pub(crate) fn whole(&self) -> Vec<String> {
        self.told(|_| true)
    }

    fn told(&self, tell: impl Fn(&Line) -> bool) -> Vec<String> {
        let lines = self.lines.lock().expect("nobody panics while noting");
        let mut lines: Vec<Line> = lines.iter().filter(|line| tell(line)).cloned().collect();
        lines.sort_by(|x, y| x.at_s.total_cmp(&y.at_s));
        lines.iter().map(|line| format!("{:8.2} s  {:<12} {}", line.at_s, line.about, line.text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_of_those_concerned_and_of_that_time() {
        let timeline = Timeline::begin();
        for (at_s, about) in [(5.0, "n1"), (1.0, "a"), (6.0, "b"), (4.0, "controller"), (90.0, "a")] {
            timeline.note_at(at_s, about, "x");
        }
        let told = timeline.around(&["a", "n1"], 3.0);
        let subjects: Vec<&str> = told.iter().filter_map(|line| line.split_whitespace().nth(2)).collect();
        assert_eq!(subjects, ["a", "controller", "n1"]);
        assert_eq!(timeline.whole().len(), 5);
    }
}
