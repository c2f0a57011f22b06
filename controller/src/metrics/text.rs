//! The text that Prometheus reads (exposition format 0.0.4): families of samples, each with its help and type.

use edgeloom_cluster::Histogram;
use std::fmt::{Display, Write};

/// Names and values of a sample's labels.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

/// What a family's samples are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Never falls but with a restart.
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The text as far as written.
#[derive(Debug, Default)]
pub(super) struct Text(String);

/// Samples of one name, which stand together.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Text {
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = kind.word();
        self.0.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family { text: &mut self.0, name }
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, value);
    }

    pub(super) fn histogram(&mut self, labels: &Labels<'_>, histogram: &Histogram) {
        for (bound, count) in histogram.up_to() {
            self.bucket(labels, &bound.to_string(), count);
        }
        self.bucket(labels, "+Inf", histogram.count());
        self.line("_sum", labels, histogram.sum());
        self.line("_count", labels, histogram.count());
    }

    fn bucket(&mut self, labels: &Labels<'_>, bound: &str, count: u64) {
        self.line("_bucket", &[labels, &[("le", bound)]].concat(), count);
    }

    fn line(&mut self, suffix: &str, labels: &Labels<'_>, value: impl Display) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.text, "{}{suffix}{labels} {value}", self.name).expect("a text takes any text");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_end_their_quotes() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "Of a.").sample(&[("b", "c\"} 1\nd\\"), ("e", "")], 7);
        let lines =
            "# HELP a_total Of a.\n# TYPE a_total counter\na_total{b=\"c\\\"} 1\\nd\\\\\",e=\"\"} 7\n";
        assert_eq!(text.finish(), lines);
    }
}
