//! What the kills led to, for people and machines.

use super::judge::Cause;
use super::killer::Kill;
use super::ledger::Count;
use super::timeline::Timeline;
use crate::checks::{self, Checks, print_table};
use serde::Serialize;
use std::collections::BTreeMap;

/// What must never happen, as the issue names it.
pub(crate) const KINDS: [&str; 4] =
    ["acknowledged job lost", "task running twice", "healthy container restarted", "orphan"];

/// One of them that happened, with what happened around it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Violation {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    pub(crate) evidence: Vec<String>,
}

impl Violation {
    pub(crate) fn at(kind: &'static str, text: String, evidence: Vec<String>) -> Self {
        Self { kind, text, evidence }
    }

    pub(crate) fn now(kind: &'static str, text: String, timeline: &Timeline, about: &[&str]) -> Self {
        Self::at(kind, text, timeline.around(about, timeline.now_s()))
    }
}

/// All kills of one kind of daemon.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KindRow {
    kind: &'static str,
    /// Processes seen gone.
    kills: usize,
    /// Of these: seen serving again.
    back: usize,
    /// From the start of the new process.
    back_median_s: f64,
    back_longest_s: f64,
}

/// Everything that the run says.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) verdict: Checks,
    pub(crate) seed: u64,
    pub(crate) rows: Vec<KindRow>,
    pub(crate) jobs: Count,
    pub(crate) containers_begun: usize,
    pub(crate) containers_ended: BTreeMap<Cause, usize>,
    pub(crate) jobs_at_rest: usize,
    pub(crate) containers_at_rest: usize,
    /// Lines about interfaces that Docker did not take away when it was killed.
    pub(crate) left_by_docker: usize,
    pub(crate) violations: Vec<Violation>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    pub(crate) fn take_kills(&mut self, kills: &[Kill]) {
        let row = |kind: &'static str| {
            let of = || kills.iter().filter(|kill| kill.victim.kind() == kind);
            let mut back: Vec<f64> = of().filter_map(|kill| Some(kill.back_s? - kill.started_s)).collect();
            back.sort_by(f64::total_cmp);
            KindRow {
                kind,
                kills: of().count(),
                back: back.len(),
                back_median_s: back.get(back.len() / 2).copied().unwrap_or(0.0),
                back_longest_s: back.last().copied().unwrap_or(0.0),
            }
        };
        self.rows = ["controller", "agent", "Docker"].map(row).into();
    }

    /// Prints the table, and the violations with their evidence; then checks.
    pub(crate) fn settle(&mut self, wanted: usize) {
        self.print();
        let counted: usize = self.rows.iter().map(|row| row.back).sum();
        let checks = &mut self.verdict;
        checks.check("kills seen dead and seen back", counted == wanted, counted, wanted);
        let load = self.jobs.accepted.min(self.jobs.stopped * 2);
        checks.check(
            "jobs run and stopped meanwhile",
            wanted <= 2 * load,
            load,
            format!("at least {}", wanted / 2),
        );
        for kind in KINDS {
            let count = self.violations.iter().filter(|violation| violation.kind == kind).count();
            checks.check(kind, count == 0, count, 0);
        }
    }

    fn print(&self) {
        println!();
        let line = |row: &KindRow| {
            let [median, longest] =
                [row.back_median_s, row.back_longest_s].map(|seconds| format!("{seconds:.2} s"));
            vec![row.kind.to_owned(), row.kills.to_string(), row.back.to_string(), median, longest]
        };
        print_table(
            &["killed", "times", "back", "serves after (median)", "(longest)"],
            &self.rows.iter().map(line).collect::<Vec<_>>(),
        );
        let Count { accepted, stopped, answers_lost, put_off, lists_compared } = self.jobs;
        println!(
            "\n  {accepted} jobs acknowledged, {stopped} stopped; {answers_lost} answers lost, {put_off} put off"
        );
        println!("  {lists_compared} lists compared with what was acknowledged");
        println!("  {} containers began; ended: {:?}", self.containers_begun, self.containers_ended);
        println!("  at rest: {} jobs in {} containers", self.jobs_at_rest, self.containers_at_rest);
        println!("  left behind by Docker itself: {} lines about interfaces\n", self.left_by_docker);
        for violation in &self.violations {
            println!("  VIOLATION {}: {}", violation.kind, violation.text);
            violation.evidence.iter().for_each(|line| println!("      {line}"));
        }
    }
}
