//! `edgeloom drain`, `cordon`, `uncordon` and `plan --consolidate`: nodes that take nothing new.

use crate::arguments::{EXIT_OK, EXIT_PLAN_CHANGE};
use crate::client::Client;
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use crate::units::{bytes, known};
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::{ConsolidationView, CordonView, CordonedBy, NodeView};

pub(crate) fn act(client: &Client, printer: &Printer, (node, verb): (&NodeId, &str)) -> Result<(), Error> {
    let view: NodeView = client.post(&format!("/v1/nodes/{node}/{verb}"), b"")?;
    printer.print(&view, told)
}

fn told(view: &NodeView) -> String {
    let Some(cordon) = &view.cordon else { return format!("node {}: takes tasks\n", view.name) };
    let mut text = format!("node {}: {}\n", view.name, state(cordon));
    for task in &cordon.tasks {
        let why = if task.reason.is_empty() { String::new() } else { format!(": {}", task.reason) };
        text.push_str(&format!("  {}/{}{why}\n", task.job, task.task));
    }
    text
}

/// `draining, 2 tasks there`.
pub(crate) fn state(cordon: &CordonView) -> String {
    let by = if cordon.by == CordonedBy::Load { " by load" } else { "" };
    match (cordon.drain, cordon.tasks.len()) {
        (true, 0) => format!("drained{by}"),
        (true, count) => format!("draining{by}, {count} tasks there"),
        (false, count) => format!("cordoned{by}, {count} tasks there"),
    }
}

/// Exit code as of a plan: 1 if some node could be emptied.
pub(crate) fn consolidate(client: &Client, printer: &Printer, apply: bool) -> Result<u8, Error> {
    const PATH: &str = "/v1/consolidation";
    let view: ConsolidationView = if apply { client.post(PATH, b"")? } else { client.fetch(PATH)? };
    printer.print(&view, table)?;
    Ok(if view.nodes.is_empty() || apply { EXIT_OK } else { EXIT_PLAN_CHANGE })
}

fn table(view: &ConsolidationView) -> String {
    let mut text = String::new();
    if !view.nodes.is_empty() {
        let names: Vec<String> = view.nodes.iter().map(|it| it.node.to_string()).collect();
        let verb = if view.applied { "are drained" } else { "could be emptied" };
        text.push_str(&format!("{verb}: {}\n\n", names.join(", ")));
    }
    let header = ["NODE", "JOB", "TASK", "MOVES TO", "PULL PREDICTED", "SECONDS", "PAUSE"];
    let mut moves = Table::new(header);
    for (node, it) in
        view.nodes.iter().flat_map(|emptied| emptied.moves.iter().map(move |it| (&emptied.node, it)))
    {
        moves.row([
            node.to_string(),
            it.job.to_string(),
            it.task.to_string(),
            it.to.to_string(),
            bytes(it.bytes_predicted),
            known(it.pull_s_predicted, |seconds| format!("{seconds:.1}")),
            format!("{:.1} s", it.pause_s_predicted),
        ]);
    }
    if view.nodes.iter().any(|it| !it.moves.is_empty()) {
        text.push_str(&moves.text());
        text.push('\n');
    }
    let mut kept = Table::new(["STAYS", "REASON"]);
    view.kept.iter().for_each(|it| kept.row([it.node.to_string(), it.reason.clone()]));
    text + &kept.text()
}
