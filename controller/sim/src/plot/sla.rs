//! The figure of the SLA experiment: for each pattern the order of execution and the mean cores of each class.

use edgeloom_common::job::Service;

use super::canvas::{Anchor, Canvas, Font};
use super::panel::{Panel, Point, Series, XAxis};
use super::{COLOURS, HEAD, HEIGHT, WIDTH};
use crate::sla::{Experiment, Policy, Row};

/// Order and cores.
const COLUMNS: f64 = 2.0;

/// The document; rows of the profile itself are drawn.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "panels are few")]
pub fn sla(experiment: &Experiment) -> String {
    let own: Vec<&Row> = experiment.rows.iter().filter(|row| row.profile == Policy::Sla.name()).collect();
    let mut canvas = Canvas::new(COLUMNS * WIDTH, HEAD + own.len() as f64 * HEIGHT);
    canvas.text((24.0, 30.0), "Containers of three service classes", Font::Title, Anchor::Start);
    let conditions = format!(
        "90 containers, 15 nodes of 32 cores, profile sla; order of the first of {} seeds, whiskers: 95% intervals",
        experiment.seeds
    );
    canvas.text((24.0, 48.0), &conditions, Font::Note, Anchor::Start);
    for (at, service) in Service::ALL.into_iter().enumerate() {
        let (x, y) = (28.0 + at as f64 * 110.0, 68.0);
        canvas.line((x, y), (x + 24.0, y), COLOURS[at], 2.0);
        canvas.mark((x + 12.0, y), at, COLOURS[at]);
        canvas.text((x + 30.0, y + 4.0), service.name(), Font::Label, Anchor::Start);
    }
    for (at, row) in own.into_iter().enumerate() {
        let top = HEAD + at as f64 * HEIGHT;
        let titles =
            ["order of execution", "mean cores"].map(|what| format!("{}: {what}", row.pattern.name()));
        order(row, &titles[0]).draw(&mut canvas, (0.0, top), (WIDTH, HEIGHT));
        cores(row, &titles[1]).draw(&mut canvas, (WIDTH, top), (WIDTH, HEIGHT));
    }
    canvas.finish()
}

/// How many of each class have been started when so many of all have.
#[expect(clippy::cast_precision_loss, reason = "containers are few")]
fn order<'a>(row: &Row, title: &'a str) -> Panel<'a> {
    let series = |(at, service): (usize, Service)| {
        let own = row.order.iter().enumerate().filter(|(_, one)| one.service == service);
        let point =
            |(count, (place, _))| Point { x: place as f64 + 1.0, mean: count as f64 + 1.0, half: 0.0 };
        let points = own.enumerate().map(point).collect();
        Series { name: service.name().to_owned(), colour: COLOURS[at], mark: at, points }
    };
    Panel {
        title,
        unit: "started of the class",
        x: XAxis::Numbers { label: "place in the order of execution", scale: 1.0 },
        series: Service::ALL.into_iter().enumerate().map(series).collect(),
    }
}

fn cores<'a>(row: &Row, title: &'a str) -> Panel<'a> {
    let means = [
        (row.mean_cores_premium, "mean_cores_premium"),
        (row.mean_cores_advanced, "mean_cores_advanced"),
        (row.mean_cores_best_effort, "mean_cores_best_effort"),
    ];
    let series = |(at, (service, (mean, key))): (usize, (Service, (Option<f64>, &str)))| {
        let half = row.ci95.get(key).copied().flatten().unwrap_or(0.0);
        let points = mean.map(|mean| Point { x: 0.0, mean, half }).into_iter().collect();
        Series { name: service.name().to_owned(), colour: COLOURS[at], mark: at, points }
    };
    Panel {
        title,
        unit: "cores",
        x: XAxis::Names,
        series: Service::ALL.into_iter().zip(means).enumerate().map(series).collect(),
    }
}
