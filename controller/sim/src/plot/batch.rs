//! The figure of a batch experiment: bars by profile; over time also the factors of improvement by percentile. Of the
//! default with many values of its knobs: one panel of what they span.

use super::panel::{Panel, Point, Series, XAxis};
use super::{COLOURS, Head, figure, styles};
use crate::batch::{Experiment, Row, Scenario, Timing, knobs_of};
use crate::streaming::PROFILES;

/// What a panel of bars shows.
struct Bars {
    title: &'static str,
    unit: &'static str,
    key: &'static str,
    value: fn(&Row, &Timing) -> f64,
}

const SCHEDULED: Bars = Bars {
    title: "Containers that found room",
    unit: "containers",
    key: "scheduled",
    value: |row, _| row.scheduled,
};
const USED: Bars = Bars {
    title: "Part in use, CPU and memory",
    unit: "part",
    key: "utilisation",
    value: |row, _| row.utilisation,
};
const DECISION: Bars =
    Bars { title: "Time of a decision", unit: "ms", key: "", value: |_, timing| timing.decision_ms_mean };
const MEAN: Bars = Bars {
    title: "Mean completion time",
    unit: "seconds",
    key: "completion_s_mean",
    value: |row, _| row.completion_s_mean.unwrap_or(0.0),
};
const P99: Bars = Bars {
    title: "99th percentile of completion time",
    unit: "seconds",
    key: "completion_s_p99",
    value: |row, _| row.completion_s_p99.unwrap_or(0.0),
};

/// The document.
#[must_use]
pub fn batch_svg(experiment: &Experiment) -> String {
    let head = Head { title: "Batches of containers by profile".to_owned(), note: conditions(experiment) };
    let spanned = spanned(experiment);
    if spanned.iter().any(|series| series.points.len() > 1) {
        let legend = spanned.iter().map(|series| (series.name.clone(), series.mark)).collect();
        return figure(&head, Some(legend), &[plane(spanned)]);
    }
    let over_time = experiment.settings.scenario != Scenario::OneShot;
    let bars: &[Bars] = if over_time { &[MEAN, P99, USED] } else { &[SCHEDULED, USED, DECISION] };
    let mut panels: Vec<Panel> = bars.iter().map(|bars| panel(experiment, bars)).collect();
    panels.extend(improvement(experiment));
    figure(&head, over_time.then(|| styles(&experiment.settings.profiles, &PROFILES)), &panels)
}

/// Mean against 99th percentile, both over those of `kube`: a line a value of ageing, its points by patience; a point any
/// other profile.
fn spanned(experiment: &Experiment) -> Vec<Series> {
    let mut lines: Vec<(String, Vec<Point>)> = Vec::new();
    for row in &experiment.rows {
        let (Some(mean), Some(p99)) = (&row.completion_mean_to_kube, &row.completion_p99_to_kube) else {
            continue;
        };
        let point = Point { x: p99.mean, mean: mean.mean, half: 0.0 };
        let name = knobs_of(&row.profile).map(|(ageing_s, _)| format!("ageing {ageing_s} s"));
        let name = name.unwrap_or_else(|| row.profile.clone());
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    let series = |(at, (name, points)): (usize, (String, Vec<Point>))| {
        let mark = at % COLOURS.len();
        Series { name, colour: COLOURS[mark], mark, points }
    };
    lines.into_iter().enumerate().map(series).collect()
}

fn plane(series: Vec<Series>) -> Panel<'static> {
    Panel {
        title: "Completion with kube as 1, points by patience",
        unit: "mean",
        x: XAxis::Plane { label: "99th percentile" },
        series,
    }
}

fn panel(experiment: &Experiment, bars: &Bars) -> Panel<'static> {
    let points = |at: usize, row: &Row| {
        let half = row.ci95.get(bars.key).copied().flatten().unwrap_or(0.0);
        vec![Point { x: 0.0, mean: (bars.value)(row, &experiment.timing[at]), half }]
    };
    Panel { title: bars.title, unit: bars.unit, x: XAxis::Names, series: series(experiment, points) }
}

/// Percentiles from left to right, a line a profile.
#[expect(clippy::cast_precision_loss, reason = "nine tenths")]
fn improvement(experiment: &Experiment) -> Option<Panel<'static>> {
    experiment.rows.iter().any(|row| row.improvement.is_some()).then(|| {
        let points = |_: usize, row: &Row| {
            let deciles = row.improvement.iter().flat_map(|improvement| improvement.deciles);
            deciles
                .enumerate()
                .map(|(at, mean)| Point { x: (at + 1) as f64 * 10.0, mean, half: 0.0 })
                .collect()
        };
        Panel {
            title: "Completion with kube-blocking over completion here",
            unit: "factor",
            x: XAxis::Numbers { label: "percentile of containers", scale: 1.0 },
            series: series(experiment, points),
        }
    })
}

fn series(experiment: &Experiment, points: impl Fn(usize, &Row) -> Vec<Point>) -> Vec<Series> {
    let styles = styles(&experiment.settings.profiles, &PROFILES);
    let one = |(at, (row, (_, mark))): (usize, (&Row, (String, usize)))| Series {
        name: row.profile.clone(),
        colour: COLOURS[mark],
        mark,
        points: points(at, row),
    };
    experiment.rows.iter().zip(styles).enumerate().map(one).collect()
}

fn conditions(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    let when = match settings.scenario {
        Scenario::OneShot => "all at once".to_owned(),
        Scenario::Online => format!("over {} s", settings.span_s),
        Scenario::Drain => "all at the start".to_owned(),
    };
    format!(
        "{} machines, {} containers {when}, load {}, {} seeds, whiskers: 95% intervals",
        settings.machines, settings.containers, settings.load, experiment.seeds
    )
}
