//! Answers as tables: predicted and measured side by side, each under the name of where it comes from.

use crate::drain;
use crate::events::clock;
use crate::explanation;
use crate::table::Table;
use crate::units::{bytes, known, milliseconds, rate};
use edgeloom_common::view::{
    BatchView, Bound, FlowView, JobList, JobView, NodeList, NodeView, PredictionView, TaskView,
};

pub(crate) fn jobs(list: &JobList) -> String {
    let mut table =
        Table::new(["JOB", "STATE", "PROFILE", "TASKS RUNNING", "ITEMS/S PREDICTED", "MEASURED", "REASON"]);
    for job in &list.jobs {
        let running = job.tasks.iter().filter(|task| task.phase == "running").count();
        table.row([
            job.name.to_string(),
            job.state.word().to_owned(),
            job.profile.clone(),
            match &job.batch {
                Some(batch) => format!("{} of {}, {} succeeded", batch.running, batch.tasks, batch.succeeded),
                None => format!("{running} of {}", job.tasks.len()),
            },
            known(job.prediction.as_ref(), |prediction| format!("{:.2}", prediction.items_per_s_predicted)),
            known(job.measured.as_ref(), |measured| format!("{:.2}", measured.items_per_s_measured)),
            job.reason.clone(),
        ]);
    }
    table.text()
}

pub(crate) fn job(job: &JobView) -> String {
    let mut text = format!("job {}: {}, profile {}\n", job.name, job.state.word(), job.profile);
    if !job.reason.is_empty() {
        text.push_str(&format!("reason: {}\n", job.reason.replace(char::is_control, " ")));
    }
    if let Some(batch) = &job.batch {
        text.push_str(&format!("batch: {}\n", self::batch(batch)));
    }
    if let Some(prediction) = &job.prediction {
        text.push_str(&throughput(prediction));
    }
    if let Some(measured) = &job.measured {
        let (items, window_s, origin) = (measured.items_per_s_measured, measured.window_s, &measured.origin);
        text.push_str(&format!("measured: {items:.2} items/s over {window_s:.0} s, by its {origin}\n"));
    }
    if job.replans > 0 {
        text.push_str(&format!(
            "re-planned: {} times, see `edgeloom events --job {}`\n",
            job.replans, job.name
        ));
    }
    for note in &job.notes {
        text.push_str(&format!("note: {}\n", note.replace(char::is_control, " ")));
    }
    text.push('\n');
    text.push_str(&if job.batch.is_some() { runs(&job.tasks) } else { tasks(&job.tasks) });
    if !job.flows.is_empty() {
        text.push('\n');
        text.push_str(&flows(&job.flows));
    }
    text
}

/// A dry run: the job as it would be, and why.
pub(crate) fn planned(job: &JobView) -> String {
    let why = job.explanation.as_ref().map(|why| format!("\n{}", explanation::body(why)));
    self::job(job) + &why.unwrap_or_default()
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
            pull(task.bytes_predicted, task.pull_s_predicted),
            pull(task.bytes_fetched, task.pull_s),
            known(task.address, |address| address.to_string()),
            // Docker's own short form.
            known(task.container.get(..12), str::to_owned),
            task.detail.clone(),
        ]);
    }
    table.text()
}

/// `34 of 200 succeeded, 2 failed, 12 running, 152 waiting`.
pub(crate) fn batch(batch: &BatchView) -> String {
    let mut text = format!("{} of {} succeeded", batch.succeeded, batch.tasks);
    let others = [
        (batch.failed, "failed"),
        (batch.skipped, "skipped"),
        (batch.running, "running"),
        (batch.waiting, "waiting"),
    ];
    for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text
}

/// Containers that run to their end.
fn runs(tasks: &[TaskView]) -> String {
    let mut table =
        Table::new(["TASK", "NODE", "PHASE", "EXIT CODE", "ATTEMPTS", "SECONDS", "CONTAINER", "DETAIL"]);
    for task in tasks {
        let ran_ms = task.started_ms.zip(task.finished_ms).map(|(start, end)| end.saturating_sub(start));
        table.row([
            task.name.to_string(),
            task.node.to_string(),
            task.phase.clone(),
            known(task.outcome.and_then(|outcome| outcome.exit_code), |code| code.to_string()),
            known(task.started_ms, |_| (task.restarts + 1).to_string()),
            known(ran_ms, |ms| format!("{}.{}", ms / 1000, ms % 1000 / 100)),
            known(task.container.get(..12), str::to_owned),
            task.detail.clone(),
        ]);
    }
    table.text()
}

/// `12 MB in 4.1 s`, as far as known.
fn pull(fetched: u64, seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) if fetched > 0 => format!("{} in {seconds:.1} s", bytes(fetched)),
        _ => bytes(fetched),
    }
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
        "CLASS",
        "CPU USED/REQUESTED/CAPACITY",
        "SPEED MEASURED",
        "TEMPERATURE",
        "MEMORY USED/REQUESTED/CAPACITY",
        "DISK USED/CAPACITY",
        "PULLS AS PREDICTED",
        "GENERATION SENT/OBSERVED",
        "PROBLEMS",
    ]);
    for node in &list.nodes {
        table.row([
            node.name.to_string(),
            presence(node),
            node.class.clone(),
            format!(
                "{}m / {}m / {}m",
                node.cpu_used_millicores, node.cpu_requested_millicores, node.cpu_capacity_millicores
            ),
            format!("{:.2}", node.core_speed),
            known(node.temperature_millicelsius, |milli| format!("{:.0} °C", f64::from(milli) / 1000.0)),
            triple(node.memory_used_bytes, node.memory_requested_bytes, node.memory_capacity_bytes),
            format!("{} / {}", bytes(node.disk_used_bytes), bytes(node.disk_capacity_bytes)),
            format!("{} of {}", node.pulls.exact, node.pulls.finished),
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

fn presence(node: &NodeView) -> String {
    let word = node.state().word();
    let word = match node.offline_since_ms {
        Some(since_ms) => format!("{word} since {}", clock(since_ms)),
        None => word.to_owned(),
    };
    match &node.cordon {
        Some(cordon) => format!("{word}, {}", drain::state(cordon)),
        None => word,
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
