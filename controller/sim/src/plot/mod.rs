//! Figures of experiments, as SVG. Of the streaming experiment: one panel a metric, lines over a sweep or bars
//! without one, with whiskers for the 95% intervals; `sla` has its own panels.
//!
//! In: an experiment. Out: one SVG document with its own fonts' names, colours and white ground, so that it
//! reads the same in a browser and on paper. Colours are Okabe's and Ito's, which colour-blind readers tell
//! apart; in lines each profile has its own mark too.

mod axis;
mod batch;
mod canvas;
mod layers;
mod panel;
mod sla;

pub use batch::batch_svg;
pub use layers::layers_svg;

use edgeloom_common::units::{BitRate, Bytes};

use crate::streaming::{Axis, Experiment, PROFILES, Row, Settings};
use canvas::{Anchor, Canvas, Font};
use panel::{Panel, Point, Series, XAxis};
pub use sla::sla;

/// Of the profiles, the same in every figure; others take those after.
const COLOURS: [&str; 8] =
    ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#000000", "#999999"];
const COLUMNS: usize = 2;
/// Of a panel with its labels, in pixels.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 340.0;
/// About the width of a letter of the legend.
const LETTER: f64 = 7.5;
/// Above the panels: title and legend.
const HEAD: f64 = 86.0;

/// What a panel shows of a row.
struct Metric {
    title: &'static str,
    unit: &'static str,
    key: &'static str,
    value: fn(&Row) -> f64,
}

const METRICS: [Metric; 4] = [
    Metric {
        title: "Mean job throughput",
        unit: "items/s",
        key: "items_per_s_mean",
        value: |row| row.items_per_s_mean,
    },
    Metric { title: "Mean waiting time", unit: "seconds", key: "wait_s_mean", value: |row| row.wait_s_mean },
    Metric {
        title: "Geometric mean of job throughput",
        unit: "items/s",
        key: "items_per_s_geomean",
        value: |row| row.items_per_s_geomean,
    },
    Metric {
        title: "Mean throughput of the worst five jobs",
        unit: "items/s",
        key: "items_per_s_worst5",
        value: |row| row.items_per_s_worst5,
    },
];

/// The document of the streaming experiment.
#[must_use]
pub fn svg(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    let lines = settings.sweep.is_some();
    let head = Head { title: title(settings), note: conditions(experiment) };
    let panels: Vec<Panel> = METRICS.iter().map(|metric| panel(experiment, metric)).collect();
    figure(&head, lines.then(|| styles(&settings.profiles, &PROFILES)), &panels)
}

/// What stands above the panels.
struct Head {
    title: String,
    note: String,
}

/// A name with the number of its colour and mark.
type Style = (String, usize);

/// Panels row by row, below a head and, for lines, a legend.
#[expect(clippy::cast_precision_loss, reason = "panels are few")]
fn figure(head: &Head, legend: Option<Vec<Style>>, panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let mut canvas = Canvas::new(COLUMNS as f64 * WIDTH, HEAD + rows as f64 * HEIGHT);
    canvas.text((24.0, 30.0), &head.title, Font::Title, Anchor::Start);
    canvas.text((24.0, 48.0), &head.note, Font::Note, Anchor::Start);
    if let Some(styles) = legend {
        draw_legend(&mut canvas, &styles);
    }
    for (at, panel) in panels.iter().enumerate() {
        let corner = ((at % COLUMNS) as f64 * WIDTH, HEAD + (at / COLUMNS) as f64 * HEIGHT);
        panel.draw(&mut canvas, corner, (WIDTH, HEIGHT));
    }
    canvas.finish()
}

fn panel(experiment: &Experiment, metric: &Metric) -> Panel<'static> {
    let settings = &experiment.settings;
    let points = |profile: &str| {
        experiment.rows.iter().filter(|row| row.profile == profile).map(|row| point(row, metric)).collect()
    };
    let x = settings.sweep.as_ref().map_or(XAxis::Names, |sweep| XAxis::Numbers {
        label: match sweep.axis {
            Axis::Nodes => "nodes",
            Axis::Jobs => "jobs",
            Axis::Bandwidth => "mean link bandwidth (Mbit/s)",
        },
        scale: if sweep.axis == Axis::Bandwidth { 1e6 } else { 1.0 },
    });
    Panel {
        title: metric.title,
        unit: metric.unit,
        x,
        series: styles(&settings.profiles, &PROFILES)
            .into_iter()
            .map(|style| series(style, points))
            .collect(),
    }
}

fn point(row: &Row, metric: &Metric) -> Point {
    let half = row.ci95.get(metric.key).copied().flatten().unwrap_or(0.0);
    Point { x: row.sweep.unwrap_or(0.0), mean: (metric.value)(row), half }
}

fn title(settings: &Settings) -> String {
    match settings.sweep.as_ref().map(|sweep| sweep.axis) {
        None => "Streaming jobs by profile".to_owned(),
        Some(Axis::Nodes) => "Streaming jobs by number of nodes".to_owned(),
        Some(Axis::Jobs) => "Streaming jobs by number of jobs".to_owned(),
        Some(Axis::Bandwidth) => "Streaming jobs by link bandwidth".to_owned(),
    }
}

/// What is not swept, and what the whiskers are.
fn conditions(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    let swept = settings.sweep.as_ref().map(|sweep| sweep.axis);
    let mut parts = Vec::new();
    if swept != Some(Axis::Nodes) {
        parts.push(format!("{} nodes", settings.nodes));
    }
    if swept != Some(Axis::Jobs) {
        parts.push(format!("{} jobs", settings.jobs));
    }
    if swept != Some(Axis::Bandwidth) {
        parts.push(format!("links of {}", BitRate(whole(settings.link_bps))));
    }
    parts.push(format!("{} jobs/s arrive", settings.arrivals_per_s));
    parts.push(format!("{} an item", Bytes(whole(settings.raw_bits / 8.0))));
    parts.push(format!("{} seeds, whiskers: 95% intervals", experiment.seeds));
    parts.join(", ")
}

/// A profile's points in its colour.
fn series((name, style): Style, points: impl Fn(&str) -> Vec<Point>) -> Series {
    let points = points(&name);
    Series { name, colour: COLOURS[style], mark: style, points }
}

/// Of lines; bars have their names below.
#[expect(clippy::cast_precision_loss, reason = "profiles are few")]
fn draw_legend(canvas: &mut Canvas, styles: &[Style]) {
    let (mut x, y) = (28.0, 68.0);
    for (name, style) in styles {
        let colour = COLOURS[*style];
        canvas.line((x, y), (x + 24.0, y), colour, 2.0);
        canvas.mark((x + 12.0, y), *style, colour);
        canvas.text((x + 30.0, y + 4.0), name, Font::Label, Anchor::Start);
        x += 30.0 + (name.len() as f64 * LETTER + 18.0).max(60.0);
    }
}

/// Each profile with the number of its colour and mark: known ones have theirs in every figure.
fn styles(profiles: &[String], known: &[&str]) -> Vec<Style> {
    let mut unknown = 0;
    let style = |name: &String| {
        let at = known.iter().position(|known| known == name).unwrap_or_else(|| {
            unknown += 1;
            known.len() + unknown - 1
        });
        (name.clone(), at % COLOURS.len())
    };
    profiles.iter().map(style).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "settings are positive")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
