//! `edgeloom measure`: progress on standard error while it lasts, the table at the end.

use crate::client::Client;
use crate::error::Error;
use crate::table::Table;
use crate::units::{bytes, known};
use edgeloom_common::measure::{MeasureLine, MeasureOutcome, MeasureRow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IsTerminal};

/// What `measure` prints as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measurements {
    pub(crate) rows: Vec<MeasureRow>,
}

impl Measurements {
    pub(crate) fn failed(&self) -> bool {
        self.rows.iter().any(|row| row.outcome == MeasureOutcome::Failed)
    }
}

/// Posts the document and follows the answer to its end.
pub(crate) fn run(client: &Client, path: &str, document: &[u8]) -> Result<Measurements, Error> {
    let lines = BufReader::new(client.stream(path, document)?).lines();
    let mut progress = Progress { is_terminal: io::stderr().is_terminal(), ..Progress::default() };
    for line in lines {
        match client.line(&line?)? {
            MeasureLine::Progress { task, class, node, text } => {
                progress.news(format!("{task} on {class} ({node})"), &text);
            }
            MeasureLine::Row(row) => progress.line(&format!("{}: {}", place(&row), outcome(&row))),
            MeasureLine::Done { rows } => return Ok(Measurements { rows }),
        }
    }
    Err(client.cut("the answer ended before the measurement did"))
}

/// What is under way: on a terminal one line that is written over, in a file only what is of another kind.
#[derive(Default)]
struct Progress {
    is_terminal: bool,
    told: BTreeMap<String, String>,
}

impl Progress {
    fn news(&mut self, about: String, text: &str) {
        let text = text.replace(char::is_control, " ");
        if self.is_terminal {
            eprint!("\r\x1b[K{about}: {text}");
            return;
        }
        let kind: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.told.get(&about) != Some(&kind) {
            eprintln!("{about}: {text}");
            self.told.insert(about, kind);
        }
    }

    fn line(&self, text: &str) {
        eprintln!("{}{text}", if self.is_terminal { "\r\x1b[K" } else { "" });
    }
}

fn place(row: &MeasureRow) -> String {
    match &row.node {
        Some(node) => format!("{} on {} ({node})", row.task, row.class),
        None if row.class.is_empty() => row.task.to_string(),
        None => format!("{} on {}", row.task, row.class),
    }
}

fn outcome(row: &MeasureRow) -> String {
    let text = match row.outcome {
        MeasureOutcome::New => "measured",
        MeasureOutcome::Kept => "kept from before",
        MeasureOutcome::Failed => return format!("failed: {}", row.reason.replace(char::is_control, " ")),
    };
    text.to_owned()
}

/// One row a task and class, and below it what the failed ones said last.
pub(crate) fn table(measurements: &Measurements) -> String {
    let mut table = Table::new([
        "TASK",
        "CLASS",
        "NODE",
        "SECONDS/ITEM MEASURED",
        "CORES USED",
        "MEMORY PEAK",
        "RESULT",
        "REASON",
    ]);
    for row in &measurements.rows {
        let profile = row.profile.as_ref();
        let result = match row.outcome {
            MeasureOutcome::New => "new",
            MeasureOutcome::Kept => "kept",
            MeasureOutcome::Failed => "failed",
        };
        table.row([
            row.task.to_string(),
            row.class.clone(),
            known(row.node.as_ref(), ToString::to_string),
            known(profile, |it| format!("{:.5}", it.wall_s_measured)),
            known(profile, |it| format!("{:.2}", it.cpu_s_measured / it.wall_s_measured)),
            known(profile, |it| bytes(it.memory_peak_bytes)),
            result.to_owned(),
            row.reason.clone(),
        ]);
    }
    let mut text = table.text();
    for row in measurements.rows.iter().filter(|row| !row.log.is_empty()) {
        text.push_str(&format!("\nlast lines of {}:\n", place(row)));
        for line in &row.log {
            text.push_str(&format!("  {}\n", line.replace(char::is_control, " ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::measure::ProfileView;

    fn row(outcome: MeasureOutcome) -> MeasureRow {
        let profile = ProfileView {
            image: "r/app:1".to_owned(),
            digest: "sha256:m".to_owned(),
            command: String::new(),
            cpu_millicores: 500,
            class: "pi4".to_owned(),
            node: "n1".parse().unwrap(),
            wall_s_measured: 0.08,
            cpu_s_measured: 0.04,
            work_s: 0.04,
            core_speed: 1.0,
            memory_peak_bytes: 5_000_000,
            items: 20,
            measured_ms: 1,
        };
        MeasureRow {
            task: "detect".parse().unwrap(),
            class: "pi4".to_owned(),
            node: Some("n1".parse().unwrap()),
            outcome,
            profile: (outcome != MeasureOutcome::Failed).then_some(profile),
            reason: String::new(),
            log: Vec::new(),
        }
    }

    #[test]
    fn a_row_has_its_figures_or_its_reason_and_the_last_lines() {
        let failed = MeasureRow {
            reason: "exit code 3".to_owned(),
            log: vec!["no\u{1b} model".to_owned()],
            ..row(MeasureOutcome::Failed)
        };
        let measurements = Measurements { rows: vec![row(MeasureOutcome::New), failed] };
        let text = table(&measurements);
        let words =
            |index: usize| text.lines().nth(index).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(1), "detect pi4 n1 0.08000 0.50 5 MB new");
        assert_eq!(words(2), "detect pi4 n1 - - - failed exit code 3");
        assert!(text.ends_with("last lines of detect on pi4 (n1):\n  no  model\n"), "{text}");
        assert!(measurements.failed());
    }
}
