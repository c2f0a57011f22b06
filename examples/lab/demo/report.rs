//! What the demo found: printed for people, written as JSON for machines, and the verdict.

use serde::Serialize;
use serde_json::Value;

/// One question with its answer and the bound it is held against.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) ok: bool,
    pub(crate) value: Value,
    pub(crate) bound: Value,
}

/// A task of a job: where it ran and what its image cost.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TaskRow {
    pub(crate) job: String,
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) container: String,
    pub(crate) bytes_predicted: u64,
    /// From the registry's access log.
    pub(crate) bytes_fetched: u64,
}

/// A flow: what it was given and what passed the links' own namespaces.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FlowRow {
    pub(crate) job: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) path: Vec<String>,
    pub(crate) path_observed: Vec<String>,
    pub(crate) rate_given_bps: u64,
    pub(crate) rate_measured_bps: u64,
    pub(crate) saturated: bool,
}

/// A job's throughput.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JobRow {
    pub(crate) name: String,
    pub(crate) bound: String,
    pub(crate) items_per_s_predicted: f64,
    pub(crate) items_per_s_measured: f64,
}

/// An agent's footprint, read from outside.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AgentRow {
    pub(crate) node: String,
    pub(crate) pss_bytes: u64,
    /// Share of one core.
    pub(crate) cpu_share: f64,
}

/// Seconds until all tasks ran: ours from HTTP 201, the peer with Docker's API alone.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Start {
    pub(crate) ours_s: f64,
    pub(crate) docker_api_s: f64,
}

/// What changed across the kills of agent and controller.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Restarts {
    pub(crate) containers: usize,
    pub(crate) classes: usize,
}

/// What was there after and not before, over all nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LeftoverCount {
    pub(crate) containers: usize,
    pub(crate) classes: usize,
    pub(crate) map_entries: usize,
    pub(crate) rules: usize,
    pub(crate) routes: usize,
}

/// Everything the demo says.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) ok: bool,
    pub(crate) checks: Vec<Check>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) jobs: Vec<JobRow>,
    pub(crate) agents: Vec<AgentRow>,
    pub(crate) start: Start,
    pub(crate) restarts: Restarts,
    pub(crate) leftovers: LeftoverCount,
}

impl Report {
    /// Records a check and prints it at once, so that a long run shows how it stands.
    pub(crate) fn check(&mut self, name: &str, ok: bool, value: impl Into<Value>, bound: impl Into<Value>) {
        let check = Check { name: name.to_owned(), ok, value: value.into(), bound: bound.into() };
        let mark = if ok { "ok  " } else { "MISS" };
        println!("  {mark} {name}: {} (bound: {})", plain(&check.value), plain(&check.bound));
        self.checks.push(check);
    }

    /// The verdict: every check holds, and there is at least one.
    pub(crate) fn conclude(&mut self) -> bool {
        self.ok = !self.checks.is_empty() && self.checks.iter().all(|check| check.ok);
        self.ok
    }
}

/// A JSON value as people read it: text without quotes, numbers to four digits.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            format!("{:.4}", number.as_f64().unwrap_or(f64::NAN))
        }
        other => other.to_string(),
    }
}

/// Prints rows under a header, columns as wide as their widest cell.
pub(crate) fn print_table(header: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("  {}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(&header.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
}
