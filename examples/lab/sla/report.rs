//! What was seen of limits, counts and moves.

use crate::checks::{self, Checks, print_table};
use serde::Serialize;

/// A container's limit at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LimitRow {
    pub(super) when: &'static str,
    pub(super) job: String,
    pub(super) node: String,
    /// Thousandths of a core.
    pub(super) kernel: u32,
    pub(super) view: u32,
}

/// What was counted of a container, beside the kernel's account.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CountRow {
    pub(super) when: &'static str,
    pub(super) job: String,
    pub(super) counted_s: f64,
    pub(super) kernel_s: f64,
}

/// A node that was emptied.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MoveRow {
    pub(super) how: &'static str,
    pub(super) node: String,
    /// From the order until the node had no task of ours.
    pub(super) empty_s: f64,
    /// Seconds of the job's items that are missing.
    pub(super) hole_s: f64,
}

/// The whole run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) verdict: Checks,
    pub(super) limits: Vec<LimitRow>,
    pub(super) counts: Vec<CountRow>,
    pub(super) moves: Vec<MoveRow>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    /// None of these is there; what is, is told.
    pub(super) fn none(&mut self, name: &str, found: &[String]) {
        let told = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        self.verdict.check(name, found.is_empty(), told, "none");
    }

    pub(super) fn print(&self) {
        println!();
        let limit = |row: &LimitRow| {
            vec![
                row.when.to_owned(),
                row.job.clone(),
                row.node.clone(),
                format!("{}m", row.kernel),
                format!("{}m", row.view),
            ]
        };
        let rows: Vec<_> = self.limits.iter().map(limit).collect();
        print_table(&["limits", "job", "node", "in the kernel", "in the job's view"], &rows);
        println!();
        let count = |row: &CountRow| {
            let seconds = |s: f64| format!("{s:.3}");
            vec![row.when.to_owned(), row.job.clone(), seconds(row.counted_s), seconds(row.kernel_s)]
        };
        let rows: Vec<_> = self.counts.iter().map(count).collect();
        print_table(&["core-seconds", "job", "counted", "by the kernel"], &rows);
        println!();
        let moved = |row: &MoveRow| {
            let seconds = |s: f64| format!("{s:.2}");
            vec![row.how.to_owned(), row.node.clone(), seconds(row.empty_s), seconds(row.hole_s)]
        };
        let rows: Vec<_> = self.moves.iter().map(moved).collect();
        print_table(&["emptied by", "node", "empty after s", "hole in the job s"], &rows);
        println!();
    }
}
