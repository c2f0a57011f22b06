//! Answers as tables: predicted and measured side by side, each under the name of where it comes from.

use crate::table::Table;
use crate::units::{bytes, known, milliseconds, rate};
use edgeloom_common::view::{
    Bound, Explanation, FlowView, JobList, JobState, JobView, NodeList, NodeView, PredictionView, TaskView,
};
use serde_json::Value;

/// A job's state in a word.
pub(crate) fn state(state: JobState) -> &'static str {
    match state {
        JobState::Planned => "planned",
        JobState::Waiting => "waiting",
        JobState::Starting => "starting",
        JobState::Running => "running",
        JobState::Stopping => "stopping",
        JobState::Failed => "failed",
    }
}

pub(crate) fn jobs(list: &JobList) -> String {
    let mut table = Table::new(["JOB", "STATE", "PROFILE", "TASKS RUNNING", "ITEMS/S PREDICTED", "REASON"]);
    for job in &list.jobs {
        let running = job.tasks.iter().filter(|task| task.phase == "running").count();
        table.row([
            job.name.to_string(),
            state(job.state).to_owned(),
            job.profile.clone(),
            format!("{running} of {}", job.tasks.len()),
            known(job.prediction.as_ref(), |prediction| format!("{:.2}", prediction.items_per_s_predicted)),
            job.reason.clone(),
        ]);
    }
    table.text()
}

pub(crate) fn job(job: &JobView) -> String {
    let mut text = format!("job {}: {}, profile {}\n", job.name, state(job.state), job.profile);
    if !job.reason.is_empty() {
        text.push_str(&format!("reason: {}\n", job.reason.replace(char::is_control, " ")));
    }
    if let Some(prediction) = &job.prediction {
        text.push_str(&throughput(prediction));
    }
    text.push('\n');
    text.push_str(&tasks(&job.tasks));
    if !job.flows.is_empty() {
        text.push('\n');
        text.push_str(&flows(&job.flows));
    }
    text
}

fn throughput(prediction: &PredictionView) -> String {
    let bound = match prediction.bound {
        Bound::Compute => "compute",
        Bound::Network => "network",
        Bound::Source => "source",
    };
    let (items, by) = (prediction.items_per_s_predicted, &prediction.bound_by);
    format!("throughput: {items:.2} items/s predicted, bound by {bound} ({by})\n")
}

fn tasks(tasks: &[TaskView]) -> String {
    let header = [
        "TASK",
        "NODE",
        "PHASE",
        "RESTARTS",
        "PULL PREDICTED",
        "PULL MEASURED",
        "ADDRESS",
        "CONTAINER",
        "DETAIL",
    ];
    let mut table = Table::new(header);
    for task in tasks {
        table.row([
            task.name.to_string(),
            task.node.to_string(),
            task.phase.clone(),
            task.restarts.to_string(),
            bytes(task.bytes_predicted),
            bytes(task.bytes_fetched),
            known(task.address, |address| address.to_string()),
            // Docker's own short form.
            known(task.container.get(..12), str::to_owned),
            task.detail.clone(),
        ]);
    }
    table.text()
}

fn flows(flows: &[FlowView]) -> String {
    let mut table = Table::new([
        "FLOW",
        "PATH",
        "BYTES/ITEM DECLARED",
        "WIRE RATE GIVEN",
        "WIRE RATE MEASURED",
        "BACKLOG",
    ]);
    for flow in flows {
        let path: Vec<_> = flow.path.iter().map(ToString::to_string).collect();
        table.row([
            format!("{} -> {}", flow.from, flow.to),
            path.join(" > "),
            bytes(flow.bytes_per_item),
            rate(flow.rate_given_bps),
            known(flow.rate_measured_bps, rate),
            bytes(flow.backlog_bytes),
        ]);
    }
    table.text()
}

pub(crate) fn nodes(list: &NodeList) -> String {
    let mut table = Table::new([
        "NODE",
        "STATE",
        "CPU USED/REQUESTED/CAPACITY",
        "SPEED MEASURED",
        "MEMORY USED/REQUESTED/CAPACITY",
        "DISK USED/CAPACITY",
        "GENERATION SENT/OBSERVED",
        "PROBLEMS",
    ]);
    for node in &list.nodes {
        table.row([
            node.name.to_string(),
            presence(node).to_owned(),
            format!(
                "{}m / {}m / {}m",
                node.cpu_used_millicores, node.cpu_requested_millicores, node.cpu_capacity_millicores
            ),
            format!("{:.2}", node.core_speed),
            triple(node.memory_used_bytes, node.memory_requested_bytes, node.memory_capacity_bytes),
            format!("{} / {}", bytes(node.disk_used_bytes), bytes(node.disk_capacity_bytes)),
            format!("{:?} / {:?}", node.version_sent, node.version_observed),
            node.problems.join("; "),
        ]);
    }
    let mut text = table.text();
    if list.nodes.iter().any(|node| !node.links.is_empty()) {
        text.push('\n');
        text.push_str(&links(list));
    }
    text
}

fn triple(used: u64, requested: u64, capacity: u64) -> String {
    format!("{} / {} / {}", bytes(used), bytes(requested), bytes(capacity))
}

fn presence(node: &NodeView) -> &'static str {
    match (node.online, node.ready, node.converged) {
        (false, ..) => "offline",
        (true, false, _) => "joining",
        (true, true, false) => "applying",
        (true, true, true) => "ready",
    }
}

fn links(list: &NodeList) -> String {
    let mut table = Table::new([
        "LINK",
        "STATE",
        "CAPACITY DECLARED",
        "CAPACITY MEASURED",
        "RESERVED",
        "RTT LEAST",
        "RTT MEDIAN",
        "LOSS",
    ]);
    for node in &list.nodes {
        for link in &node.links {
            table.row([
                format!("{} -> {}", node.name, link.neighbour),
                if link.up { "up" } else { "down" }.to_owned(),
                known(link.capacity_declared_bps, rate),
                known(link.capacity_measured_bps, rate),
                rate(link.rate_reserved_bps),
                known(link.rtt_min_us, milliseconds),
                known(link.rtt_median_us, milliseconds),
                format!("{:.1}%", f64::from(link.loss_permille) / 10.0),
            ]);
        }
    }
    table.text()
}

pub(crate) fn explanation(explanation: &Explanation) -> String {
    let mut text = format!("job {}, profile {}\n", explanation.name, explanation.profile);
    for line in &explanation.lines {
        text.push_str(&line.replace(char::is_control, " "));
        text.push('\n');
    }
    text
}

/// An experiment's rows; the columns are the first row's keys, the profile first, those of nested objects
/// with a dot.
pub(crate) fn experiment(result: &Value) -> String {
    let row = |row: &Value| {
        let mut row = cells("", row);
        row.sort_by_key(|(key, _)| key != "profile");
        row
    };
    let rows: Vec<_> = result["rows"].as_array().into_iter().flatten().map(row).collect();
    let Some(first) = rows.first() else {
        return "no rows\n".to_owned();
    };
    let mut table = Table::new(first.iter().map(|(key, _)| key.as_str()));
    for row in &rows {
        table.row(row.iter().map(|(_, cell)| cell.clone()));
    }
    table.text()
}

fn cells(prefix: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(fields) => {
            let path = |key: &str| {
                if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
            };
            fields.iter().flat_map(|(key, value)| cells(&path(key), value)).collect()
        }
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            vec![(prefix.to_owned(), format!("{number:.3}"))]
        }
        Value::String(text) => vec![(prefix.to_owned(), text.clone())],
        other => vec![(prefix.to_owned(), other.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_one_row_a_profile() {
        let result = serde_json::json!({
            "rows": [
                { "profile": "otfs", "items_per_s_mean": 2.0, "timing": { "decision_ms_max": 7 } },
                { "profile": "lr", "items_per_s_mean": 1.25, "timing": { "decision_ms_max": 1 } },
            ]
        });
        let text = experiment(&result);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[0], ["profile", "items_per_s_mean", "timing.decision_ms_max"]);
        assert_eq!(lines[2], ["lr", "1.250", "1"]);
    }
}
