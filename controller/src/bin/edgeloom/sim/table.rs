//! Results of experiments for people.

use crate::table::Table;
use crate::units::UNKNOWN;
use edgeloom_common::units::BitRate;
use edgeloom_sched::plan::Reason;
use edgeloom_sim::streaming::{Axis, Experiment, Ratios, Row};
use edgeloom_sim::what_if::{self, Answer};
use std::fmt::Write;

/// One line a profile and point: means over seeds with half their 95% intervals.
pub(super) fn streaming(experiment: &Experiment) -> String {
    let compared = experiment.rows.first().and_then(|row| {
        let otfs = row.ratio_to_otfs.as_ref().map(|_| "otfs");
        row.ratio_to_otfa.as_ref().map(|_| "otfa").or(otfs)
    });
    let mut header: Vec<String> =
        experiment.settings.sweep.iter().map(|sweep| sweep.axis.to_string().to_uppercase()).collect();
    header.extend(
        ["PROFILE", "ITEMS/S", "GEOMEAN", "WORST 5", "WAIT S", "NEVER", "MOVED", "REROUTED"]
            .map(str::to_owned),
    );
    if let Some(name) = compared {
        header.extend([format!("MEAN/{name}"), format!("GEOMEAN/{name}"), format!("WORST/{name}")]);
    }
    header.extend(["DECISION MS", "MAX MS"].map(str::to_owned));
    let mut table = Table::new(header.iter().map(String::as_str));
    for (row, timing) in experiment.rows.iter().zip(&experiment.timing) {
        let mut cells: Vec<String> = row.sweep.iter().map(|value| point(experiment, *value)).collect();
        cells.extend(metrics(row));
        if compared.is_some() {
            cells.extend(ratios(row.ratio_to_otfa.as_ref().or(row.ratio_to_otfs.as_ref())));
        }
        cells.extend([timing.decision_ms_mean, timing.decision_ms_max].map(|ms| format!("{ms:.2}")));
        table.row(cells);
    }
    table.text()
}

/// A value of the sweep with its unit.
fn point(experiment: &Experiment, value: f64) -> String {
    match experiment.settings.sweep.as_ref().map(|sweep| sweep.axis) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a bandwidth"
        )]
        Some(Axis::Bandwidth) => BitRate(value as u64).to_string(),
        _ => value.to_string(),
    }
}

fn metrics(row: &Row) -> Vec<String> {
    let mean = |key: &str, value: f64, digits: usize| match row.ci95.get(key).copied().flatten() {
        Some(half) => format!("{value:.digits$} ±{half:.digits$}"),
        None => format!("{value:.digits$}"),
    };
    vec![
        row.profile.clone(),
        mean("items_per_s_mean", row.items_per_s_mean, 3),
        mean("items_per_s_geomean", row.items_per_s_geomean, 3),
        mean("items_per_s_worst5", row.items_per_s_worst5, 4),
        mean("wait_s_mean", row.wait_s_mean, 1),
        format!("{:.1}", row.waiting_jobs),
        format!("{:.1}", row.migrations),
        format!("{:.1}", row.reroutes),
    ]
}

fn ratios(ratios: Option<&Ratios>) -> [String; 3] {
    let Some(ratios) = ratios else { return [UNKNOWN; 3].map(str::to_owned) };
    [&ratios.mean, &ratios.geomean, &ratios.worst5].map(|ratio| match ratio.ci95 {
        Some(half) => format!("{:.2} ±{half:.2}", ratio.mean),
        None => format!("{:.2}", ratio.mean),
    })
}

/// A what-if: totals by profile, then what each makes of each job.
pub(super) fn what_if(answer: &Answer) -> String {
    let mut table =
        Table::new(["PROFILE", "ITEMS/S SUM", "MEAN", "GEOMEAN", "WORST 5", "WAITING", "DECISION MS"]);
    for (row, timing) in answer.rows.iter().zip(&answer.timing) {
        let items =
            [row.items_per_s_sum, row.items_per_s_mean, row.items_per_s_geomean, row.items_per_s_worst5];
        let mut cells = vec![row.profile.clone()];
        cells.extend(items.map(|items| format!("{items:.3}")));
        cells.extend([row.waiting_jobs.to_string(), format!("{:.2}", timing.decision_ms_max)]);
        table.row(cells);
    }
    let mut text = table.text();
    for row in &answer.rows {
        write!(text, "\n{}\n{}", row.profile, jobs(row)).expect("a String takes all that is written");
    }
    text
}

fn jobs(row: &what_if::Row) -> String {
    let mut table = Table::new(["  JOB", "PREDICTED", "SIMULATED", "LIMITED BY", "PLACEMENT AND FLOWS"]);
    for job in &row.jobs {
        let simulated =
            job.items_per_s_simulated.map_or("no limit".to_owned(), |items| format!("{items:.3}"));
        let placement = job.placement.iter().map(|(task, node)| format!("{task}@{node}"));
        let predicted = format!("{:.3}", job.items_per_s_predicted);
        let placement = placement.collect::<Vec<_>>().join(" ");
        table.row([format!("  {}", job.job), predicted, simulated, job.bound_by.clone(), placement]);
        for flow in &job.flows {
            let path = flow.path.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
            let flow = format!("{}->{} {path} {}", flow.from, flow.to, BitRate(flow.rate_bps));
            table.row([String::new(), String::new(), String::new(), String::new(), flow]);
        }
    }
    let mut text = table.text();
    for waiting in &row.waiting {
        let until = if waiting.never { "fits nowhere" } else { "waits" };
        writeln!(text, "  {} {until}: task {}: {}", waiting.job, waiting.task, reasons(&waiting.reasons))
            .expect("a String takes all that is written");
    }
    text
}

/// `n1, n2: memory 2 GiB requested, …; n3: …`: each text once.
fn reasons(reasons: &[Reason]) -> String {
    let mut by_text: Vec<(&str, Vec<&str>)> = Vec::new();
    for reason in reasons {
        match by_text.iter_mut().find(|(text, _)| *text == reason.text) {
            Some((_, nodes)) => nodes.push(reason.node.as_str()),
            None => by_text.push((&reason.text, vec![reason.node.as_str()])),
        }
    }
    let parts = by_text.into_iter().map(|(text, nodes)| format!("{}: {text}", nodes.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_nodes_is_told_once() {
        let reason = |node: &str, text: &str| Reason { node: node.parse().unwrap(), text: text.to_owned() };
        let all = [reason("n1", "too slow"), reason("n2", "offline"), reason("n3", "too slow")];
        assert_eq!(reasons(&all), "n1, n3: too slow; n2: offline");
    }
}
