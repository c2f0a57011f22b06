//! The paper's figures of what was measured, drawn as `edgeloom sim layers` draws what it simulates.

use super::cell::Cell;
use super::report::SeriesRow;
use anyhow::{Context, Result};
use edgeloom_sim::layers::{Experiment, Row, Settings};
use edgeloom_sim::plot::layers_svg;
use edgeloom_sim::statistics::{ci95, mean};
use edgeloom_sim::streaming::{Axis, Sweep};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What one figure shows.
type Rows<'a> = Vec<&'a SeriesRow>;

/// Writes a figure for each lab, and for each sweep of nodes at one rate or of rates with one number of nodes.
pub(super) fn draw(rows: &[SeriesRow], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut figures: BTreeMap<String, (Option<Axis>, Rows<'_>)> = BTreeMap::new();
    for row in rows {
        let (nodes, mbit) = (row.cell.nodes, row.cell.uplink.0 / 1_000_000);
        let names = [
            (format!("{nodes}-nodes-{mbit}-mbit"), None),
            (format!("by-nodes-{mbit}-mbit"), Some(Axis::Nodes)),
            (format!("{nodes}-nodes-by-bandwidth"), Some(Axis::Bandwidth)),
        ];
        for (name, axis) in names {
            figures.entry(name).or_insert((axis, Vec::new())).1.push(row);
        }
    }
    for (name, (axis, rows)) in figures {
        let labs = rows.iter().map(|row| row.cell).collect::<BTreeSet<_>>().len();
        if axis.is_none() || labs > 1 {
            let path = folder.join(format!("layers-{name}.svg"));
            std::fs::write(&path, layers_svg(&experiment(axis, &rows)))
                .with_context(|| path.display().to_string())?;
            println!("written: {}", path.display());
        }
    }
    Ok(())
}

fn experiment(axis: Option<Axis>, rows: &[&SeriesRow]) -> Experiment {
    let first = rows[0];
    let mut profiles: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.same_order(first)) {
        profiles.push(row.profile.clone());
    }
    let swept: BTreeSet<u64> = rows.iter().filter_map(|row| Some(place(axis?, row.cell))).collect();
    #[expect(clippy::cast_precision_loss, reason = "nodes and rates")]
    let values = swept.into_iter().map(|value| value as f64).collect();
    let orders = rows.iter().map(|row| row.order).collect::<BTreeSet<_>>().len();
    let seeds = u64::try_from(orders).unwrap_or(u64::MAX);
    let settings = Settings {
        seeds,
        nodes: first.cell.nodes.into(),
        containers: first.containers.len(),
        bandwidth_bps: first.cell.uplink.as_f64(),
        profiles,
        sweep: axis.map(|axis| Sweep { axis, values }),
        ..Settings::default()
    };
    let mut points: BTreeMap<(Cell, &str), Rows<'_>> = BTreeMap::new();
    for row in rows {
        points.entry((row.cell, &row.profile)).or_default().push(row);
    }
    let rows = points.values().map(|orders| drawn(axis, orders)).collect();
    Experiment { experiment: "layers", seeds, settings, rows, timing: Vec::new() }
}

fn place(axis: Axis, cell: Cell) -> u64 {
    if axis == Axis::Nodes { cell.nodes.into() } else { cell.uplink.0 }
}

/// What is drawn, by its key in a row's intervals.
type Metric = (&'static str, fn(&SeriesRow) -> f64);

#[expect(clippy::cast_precision_loss, reason = "bytes of a lab and containers")]
const METRICS: [Metric; 7] = [
    ("bytes_fetched", |row| row.bytes_fetched as f64),
    ("seconds", |row| row.pull_s),
    ("disk_bytes", |row| row.disk_bytes as f64),
    ("std", |row| row.std),
    ("placed", |row| row.placed as f64),
    ("cpu_share", |row| row.cpu_share),
    ("memory_share", |row| row.memory_share),
];

/// The means over the orders of a profile on a lab.
#[expect(clippy::cast_precision_loss, reason = "bytes of a lab and containers")]
fn drawn(axis: Option<Axis>, orders: &[&SeriesRow]) -> Row {
    let samples = |of: fn(&SeriesRow) -> f64| orders.iter().map(|row| of(row)).collect::<Vec<_>>();
    let [bytes_fetched, seconds, disk_bytes, std, placed, cpu_share, memory_share] =
        METRICS.map(|(_, of)| mean(&samples(of)));
    let containers = orders.iter().map(|row| row.containers.len()).min().unwrap_or(0);
    let cumulative = |at: usize| {
        mean(&orders.iter().map(|row| row.containers[at].cumulative_bytes as f64).collect::<Vec<_>>())
    };
    Row {
        profile: orders[0].profile.clone(),
        sweep: axis.map(|axis| place(axis, orders[0].cell) as f64),
        bytes_fetched,
        bytes_shared: bytes_fetched,
        bytes_least: mean(&samples(|row| row.bytes_least as f64)),
        seconds,
        disk_bytes,
        std,
        placed,
        evicted: 0.0,
        cpu_share,
        memory_share,
        cumulative_bytes: (0..containers).map(cumulative).collect(),
        ci95: METRICS.map(|(key, of)| (key, ci95(&samples(of)))).into(),
        ratio_to_kube: None,
    }
}
