//! Throughput as the application's own output tells it, of several jobs over the same window.

use crate::document::Document;
use crate::engines::{Count, Engines};
use anyhow::{Context, Result};
use std::time::Duration;

/// Let queues and quotas settle before measuring.
pub(crate) const WARM_UP: Duration = Duration::from_secs(8);

/// A window that is open: what each job had finished at its beginning.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    engines: &'a Engines,
    jobs: Vec<(&'a Document, Vec<Count>)>,
}

impl<'a> Window<'a> {
    pub(crate) fn open(engines: &'a Engines, jobs: impl IntoIterator<Item = &'a Document>) -> Result<Self> {
        let first = |job: &'a Document| Ok((job, counts(engines, job)?));
        Ok(Self { engines, jobs: jobs.into_iter().map(first).collect::<Result<_>>()? })
    }

    /// Items a second of each job since then: of its slowest task without outputs.
    pub(crate) fn close(&self) -> Result<Vec<f64>> {
        self.jobs.iter().map(|(job, first)| slowest(job, first, &counts(self.engines, job)?)).collect()
    }
}

/// Items a second of each job over `length`.
pub(crate) fn measure(engines: &Engines, jobs: &[&Document], length: Duration) -> Result<Vec<f64>> {
    let window = Window::open(engines, jobs.iter().copied())?;
    std::thread::sleep(length);
    window.close()
}

fn counts(engines: &Engines, job: &Document) -> Result<Vec<Count>> {
    job.sinks.iter().map(|task| engines.items(&job.name, task)).collect()
}

fn slowest(job: &Document, first: &[Count], last: &[Count]) -> Result<f64> {
    let rates = first.iter().zip(last).map(|(first, last)| items_per_s(*first, *last));
    rates.reduce(f64::min).with_context(|| format!("{} has no last task", job.name))
}

/// Between two printed lines, by the moments at which they were printed.
#[expect(clippy::cast_precision_loss, reason = "item counts of an experiment are small")]
fn items_per_s(first: Count, last: Count) -> f64 {
    let seconds = last.at_s - first.at_s;
    if seconds <= 0.0 { 0.0 } else { last.since(first) as f64 / seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_items_between_lines_and_nothing_without_a_second_line() {
        let first = Count { items: 10, at_s: 100.0 };
        assert!((items_per_s(first, Count { items: 30, at_s: 110.0 }) - 2.0).abs() < 1e-9);
        assert!(items_per_s(first, first).abs() < 1e-9);
        assert!((items_per_s(first, Count { items: 5, at_s: 110.0 }) - 0.5).abs() < 1e-9);
    }
}
