//! What the faults did, and what came back.

use super::holding::Difference;
use crate::checks::{self, Checks, print_table};
use serde::Serialize;
use std::time::Duration;

/// One fault.
#[derive(Debug, Clone, Serialize)]
pub(super) struct FaultRow {
    pub(super) scenario: &'static str,
    /// What was broken.
    pub(super) target: String,
    /// What was seen of it from outside.
    pub(super) effect: String,
    /// From the fault, or from the mending, until everything was back; the checks say which.
    pub(super) back_s: f64,
    /// Containers that were restarted or replaced, or have other limits.
    pub(super) containers_changed: usize,
    /// Classes, map elements, rules, routes and the like that are not which they were.
    pub(super) kernel_changed: usize,
}

impl FaultRow {
    /// A fault with what differs after it.
    pub(super) fn new(
        (scenario, target): (&'static str, &str),
        effect: String,
        back: Duration,
        changed: &Difference,
    ) -> Self {
        let (containers_changed, kernel_changed) = changed.parts();
        Self {
            scenario,
            target: target.to_owned(),
            effect,
            back_s: back.as_secs_f64(),
            containers_changed,
            kernel_changed,
        }
    }
}

/// All faults.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) verdict: Checks,
    pub(super) rows: Vec<FaultRow>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    /// A time against its bound, in seconds.
    pub(super) fn within(&mut self, name: &str, took: Duration, bound: Duration) {
        self.verdict.check(name, took <= bound, took.as_secs_f64(), bound.as_secs_f64());
    }

    /// Nothing differs; what does is printed.
    pub(super) fn nothing(&mut self, name: &str, changed: &Difference) {
        changed.print();
        self.verdict.check(name, changed.all() == 0, changed.all(), 0);
    }

    pub(super) fn print(&self) {
        println!();
        let line = |row: &FaultRow| {
            vec![
                row.scenario.to_owned(),
                row.target.clone(),
                format!("{:.2}", row.back_s),
                row.containers_changed.to_string(),
                row.kernel_changed.to_string(),
                row.effect.clone(),
            ]
        };
        let lines: Vec<Vec<String>> = self.rows.iter().map(line).collect();
        print_table(&["scenario", "target", "back after s", "containers", "kernel", "effect seen"], &lines);
        println!();
    }
}
