//! The paper's figures of what was measured, drawn as `edgeloom sim layers` draws what it simulates.

use super::report::SeriesRow;
use anyhow::{Context, Result};
use edgeloom_sim::layers::{Experiment, Row, Settings};
use edgeloom_sim::plot::layers_svg;
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
        let (nodes, mbit) = (row.nodes, row.uplink_bps / 1_000_000);
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
        let labs = rows.iter().map(|row| (row.nodes, row.uplink_bps)).collect::<BTreeSet<_>>().len();
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
    let mut profiles: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.same_cell(rows[0])) {
        profiles.push(row.profile.clone());
    }
    let swept: BTreeSet<u64> = rows.iter().filter_map(|row| Some(place(axis?, row))).collect();
    #[expect(clippy::cast_precision_loss, reason = "nodes and rates")]
    let values = swept.into_iter().map(|value| value as f64).collect();
    let settings = Settings {
        seeds: 1,
        nodes: rows[0].nodes.into(),
        containers: rows[0].containers.len(),
        #[expect(clippy::cast_precision_loss, reason = "a rate below 2^52 bit/s")]
        bandwidth_bps: rows[0].uplink_bps as f64,
        profiles,
        sweep: axis.map(|axis| Sweep { axis, values }),
        ..Settings::default()
    };
    let rows = rows.iter().map(|row| drawn(axis, row)).collect();
    Experiment { experiment: "layers", seeds: 1, settings, rows, timing: Vec::new() }
}

fn place(axis: Axis, row: &SeriesRow) -> u64 {
    if axis == Axis::Nodes { row.nodes.into() } else { row.uplink_bps }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a lab and containers")]
fn drawn(axis: Option<Axis>, row: &SeriesRow) -> Row {
    Row {
        profile: row.profile.clone(),
        sweep: axis.map(|axis| place(axis, row) as f64),
        bytes_fetched: row.bytes_fetched as f64,
        seconds: row.pull_s,
        disk_bytes: row.disk_bytes as f64,
        std: row.std,
        placed: row.placed as f64,
        evicted: 0.0,
        cpu_share: row.cpu_share,
        memory_share: row.memory_share,
        cumulative_bytes: row.containers.iter().map(|one| one.cumulative_bytes as f64).collect(),
        ci95: BTreeMap::new(),
        ratio_to_kube: None,
    }
}
