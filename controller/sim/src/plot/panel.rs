//! One metric of all profiles, with axes.

use super::axis::Scale;
use super::canvas::{Anchor, Canvas, Font, Place};

const AXIS: &str = "#444444";
const GRID: &str = "#dddddd";
const WHISKER: &str = "#333333";
/// Room for labels: left, right, above, below.
const MARGIN: (f64, f64, f64, f64) = (76.0, 18.0, 34.0, 52.0);
/// How far the axis goes beyond the highest mean: a longer whisker, as of two seeds, leaves the panel.
const WHISKER_ROOM: f64 = 2.0;
/// Half the width of a whisker's ends.
const WHISKER_END: f64 = 3.0;
/// Part of a bar's slot that it fills.
const BAR: f64 = 0.7;
/// Pixels between the whiskers of neighbouring series, so that they do not hide each other.
const DODGE: f64 = 2.5;
/// About the width of a letter of a note; names that are wider than their bars' slots take two lines in turn.
const LETTER: f64 = 6.5;
/// Labels that an axis has room for.
const LABELS_MAX: usize = 10;

/// A mean and half the width of its interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) mean: f64,
    pub(super) half: f64,
}

#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) colour: &'static str,
    pub(super) mark: usize,
    pub(super) points: Vec<Point>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum XAxis {
    /// The series' names, a bar each.
    Names,
    /// Numbers in units of `scale`, a line a series.
    Numbers { label: &'static str, scale: f64 },
    /// Two numbers a point, a line a series; neither axis begins at 0.
    Plane { label: &'static str },
}

#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub(super) title: &'a str,
    pub(super) unit: &'static str,
    pub(super) x: XAxis,
    pub(super) series: Vec<Series>,
}

/// Where numbers are on the canvas.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    y: Scale,
    /// The least and the most of the horizontal axis.
    x: (f64, f64),
}

impl Frame {
    fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.part(value) * (self.bottom - self.top)
    }

    fn x(&self, value: f64) -> f64 {
        let (least, most) = self.x;
        let part = if most > least { (value - least) / (most - least) } else { 0.5 };
        // A little room on both sides keeps marks and whiskers off the axes.
        self.left + (0.04 + 0.92 * part) * (self.right - self.left)
    }
}

impl Panel<'_> {
    /// Draws into the rectangle from `corner`.
    pub(super) fn draw(&self, canvas: &mut Canvas, corner: Place, size: (f64, f64)) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let mean = points().map(|point| point.mean).fold(0.0, f64::max);
        let most = points().map(|point| point.mean + point.half).fold(0.0, f64::max);
        let x = points()
            .map(|point| point.x)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)));
        let plane = matches!(self.x, XAxis::Plane { .. });
        let least = points().map(|point| point.mean - point.half).fold(f64::INFINITY, f64::min);
        let along = Scale::between(x.0, x.1);
        let frame = Frame {
            left: corner.0 + MARGIN.0,
            right: corner.0 + size.0 - MARGIN.1,
            top: corner.1 + MARGIN.2,
            bottom: corner.1 + size.1 - MARGIN.3,
            y: if plane {
                Scale::between(least, most)
            } else {
                Scale::holding(most.min(mean * WHISKER_ROOM))
            },
            x: if plane { (along.start, along.end) } else { x },
        };
        self.axes(canvas, &frame);
        match self.x {
            XAxis::Names => self.bars(canvas, &frame),
            XAxis::Numbers { label, scale } => {
                let ticks = self.ticks(x, scale);
                numbers(canvas, &frame, label, &ticks);
                self.lines(canvas, &frame, DODGE);
            }
            XAxis::Plane { label } => {
                numbers(canvas, &frame, label, &along.ticks());
                self.lines(canvas, &frame, 0.0);
            }
        }
    }

    fn axes(&self, canvas: &mut Canvas, frame: &Frame) {
        let middle = f64::midpoint(frame.left, frame.right);
        canvas.text((middle, frame.top - 14.0), self.title, Font::Label, Anchor::Middle);
        for (value, label) in frame.y.ticks() {
            let y = frame.y(value);
            canvas.line((frame.left, y), (frame.right, y), GRID, 1.0);
            canvas.text((frame.left - 8.0, y + 4.0), &label, Font::Note, Anchor::End);
        }
        let side = (frame.left - 56.0, f64::midpoint(frame.top, frame.bottom));
        canvas.text(side, self.unit, Font::Note, Anchor::Upwards);
        canvas.line((frame.left, frame.top), (frame.left, frame.bottom), AXIS, 1.0);
        canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), AXIS, 1.0);
    }

    #[expect(clippy::cast_precision_loss, reason = "profiles are few")]
    fn bars(&self, canvas: &mut Canvas, frame: &Frame) {
        let slot = (frame.right - frame.left) / self.series.len() as f64;
        let widest = self.series.iter().map(|series| series.name.len()).max().unwrap_or(0) as f64 * LETTER;
        for (at, series) in self.series.iter().enumerate() {
            let middle = frame.left + (at as f64 + 0.5) * slot;
            for point in &series.points {
                let top = frame.y(point.mean);
                let corner = (middle - slot * BAR / 2.0, top);
                canvas.bar(corner, (slot * BAR, frame.bottom - top), series.colour);
                whisker(canvas, frame, (middle, WHISKER), point);
            }
            let lower = if widest > slot { (at % 2) as f64 * 15.0 } else { 0.0 };
            canvas.text((middle, frame.bottom + 18.0 + lower), &series.name, Font::Note, Anchor::Middle);
        }
    }

    /// Of the series that has most points, since all lie on the same axis; round numbers where those are too many.
    fn ticks(&self, (least, most): (f64, f64), scale: f64) -> Vec<(f64, String)> {
        let longest = self.series.iter().max_by_key(|series| series.points.len());
        let values: Vec<f64> =
            longest.into_iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        if values.len() <= LABELS_MAX {
            return values.into_iter().map(|value| (value, format!("{}", value / scale))).collect();
        }
        let round = Scale::between(least / scale, most / scale).ticks().into_iter();
        let inside = round.map(|(value, text)| (value * scale, text));
        inside.filter(|(value, _)| (least..=most).contains(value)).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "profiles are few")]
    fn lines(&self, canvas: &mut Canvas, frame: &Frame, dodge: f64) {
        let center = (self.series.len() as f64 - 1.0) / 2.0;
        for (at, series) in self.series.iter().enumerate() {
            let shift = (at as f64 - center) * dodge;
            let places: Vec<Place> =
                series.points.iter().map(|point| (frame.x(point.x) + shift, frame.y(point.mean))).collect();
            for pair in places.windows(2) {
                canvas.line(pair[0], pair[1], series.colour, 2.0);
            }
            for (place, point) in places.iter().zip(&series.points) {
                whisker(canvas, frame, (place.0, series.colour), point);
                canvas.mark(*place, series.mark, series.colour);
            }
        }
    }
}

/// Ticks below the panel, and what they count.
fn numbers(canvas: &mut Canvas, frame: &Frame, label: &str, ticks: &[(f64, String)]) {
    for (value, text) in ticks {
        let x = frame.x(*value);
        canvas.line((x, frame.bottom), (x, frame.bottom + 5.0), AXIS, 1.0);
        canvas.text((x, frame.bottom + 18.0), text, Font::Note, Anchor::Middle);
    }
    let middle = f64::midpoint(frame.left, frame.right);
    canvas.text((middle, frame.bottom + 38.0), label, Font::Note, Anchor::Middle);
}

/// The interval where there is one, cut off at the panel; an end that is cut off has no bar across.
fn whisker(canvas: &mut Canvas, frame: &Frame, (x, colour): (f64, &str), point: &Point) {
    if point.half <= 0.0 {
        return;
    }
    let ends = [point.mean - point.half, point.mean + point.half];
    let [low, high] = ends.map(|end| frame.y(end));
    canvas.line((x, low), (x, high), colour, 1.0);
    for (_, y) in
        ends.into_iter().zip([low, high]).filter(|(end, _)| (frame.y.start..=frame.y.end).contains(end))
    {
        canvas.line((x - WHISKER_END, y), (x + WHISKER_END, y), colour, 1.0);
    }
}
