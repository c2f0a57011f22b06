//! The figure of the layers experiment: what the paper's Fig. 3 and 4 draw a panel each, and Fig. 5's bytes
//! after each container.

use edgeloom_common::units::BitRate;

use super::panel::{Panel, Point, XAxis};
use super::{Head, figure, series, styles, whole};
use crate::layers::{Experiment, PROFILES, Row};
use crate::streaming::Axis;

/// What a panel shows of a row, and by what its values are divided.
struct Metric {
    title: &'static str,
    unit: &'static str,
    key: &'static str,
    scale: f64,
    value: fn(&Row) -> f64,
}

const METRICS: [Metric; 7] = [
    metric(("Requested CPU", "share of the nodes"), "cpu_share", |row| row.cpu_share),
    metric(("Requested memory", "share of the nodes"), "memory_share", |row| row.memory_share),
    Metric { scale: 1e9, ..metric(("Layers on disks", "GB"), "disk_bytes", |row| row.disk_bytes) },
    metric(("Containers placed", "containers"), "placed", |row| row.placed),
    Metric { scale: 1e9, ..metric(("Downloaded", "GB"), "bytes_fetched", |row| row.bytes_fetched) },
    metric(("Imbalance of CPU and memory (STD)", "share"), "std", |row| row.std),
    metric(("Time of all downloads", "seconds"), "seconds", |row| row.seconds),
];

const fn metric(
    (title, unit): (&'static str, &'static str),
    key: &'static str,
    value: fn(&Row) -> f64,
) -> Metric {
    Metric { title, unit, key, scale: 1.0, value }
}

/// The document.
#[must_use]
pub fn layers_svg(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    let axis = settings.sweep.as_ref().map(|sweep| sweep.axis);
    let x = axis.map_or(XAxis::Names, |axis| XAxis::Numbers {
        label: match axis {
            Axis::Nodes => "nodes",
            Axis::Jobs => "containers",
            Axis::Bandwidth => "bandwidth to the registry (Mbit/s)",
        },
        scale: if axis == Axis::Bandwidth { 1e6 } else { 1.0 },
    });
    let mut panels: Vec<Panel<'static>> = METRICS.iter().map(|metric| panel(experiment, metric, x)).collect();
    if axis.is_none() {
        panels.push(cumulative(experiment));
    }
    let head = Head { title: "Containers by profile".to_owned(), note: conditions(experiment) };
    figure(&head, Some(styles(&settings.profiles, &PROFILES)), &panels)
}

fn panel(experiment: &Experiment, metric: &Metric, x: XAxis) -> Panel<'static> {
    let point = |row: &Row| Point {
        x: row.sweep.unwrap_or(0.0),
        mean: (metric.value)(row) / metric.scale,
        half: row.ci95.get(metric.key).copied().flatten().unwrap_or(0.0) / metric.scale,
    };
    let points = |profile: &str| {
        experiment.rows.iter().filter(|row| row.profile == profile).map(point).collect::<Vec<_>>()
    };
    let styles = styles(&experiment.settings.profiles, &PROFILES);
    Panel {
        title: metric.title,
        unit: metric.unit,
        x,
        series: styles.into_iter().map(|style| series(style, points)).collect(),
    }
}

/// Bytes after each container.
#[expect(clippy::cast_precision_loss, reason = "containers are few")]
fn cumulative(experiment: &Experiment) -> Panel<'static> {
    let points = |profile: &str| {
        let row = experiment.rows.iter().find(|row| row.profile == profile);
        let bytes = row.iter().flat_map(|row| row.cumulative_bytes.iter().enumerate());
        bytes.map(|(at, bytes)| Point { x: (at + 1) as f64, mean: bytes / 1e9, half: 0.0 }).collect()
    };
    let styles = styles(&experiment.settings.profiles, &PROFILES);
    Panel {
        title: "Downloaded after each container",
        unit: "GB",
        x: XAxis::Numbers { label: "containers", scale: 1.0 },
        series: styles.into_iter().map(|style| series(style, points)).collect(),
    }
}

/// What is not swept, and what the whiskers are.
fn conditions(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    let axis = settings.sweep.as_ref().map(|sweep| sweep.axis);
    let parts = [
        (Axis::Nodes, format!("{} nodes", settings.nodes)),
        (Axis::Jobs, format!("{} containers", settings.containers)),
        (Axis::Bandwidth, format!("{} to the registry", BitRate(whole(settings.bandwidth_bps)))),
    ];
    let fixed = parts.into_iter().filter(|(part, _)| Some(*part) != axis).map(|(_, text)| text);
    let seeds = format!("{} seeds, whiskers: 95% intervals", experiment.seeds);
    fixed.chain([seeds]).collect::<Vec<_>>().join(", ")
}
