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
        self.bottom - value.clamp(0.0, self.y.end) / self.y.end * (self.bottom - self.top)
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
        let frame = Frame {
            left: corner.0 + MARGIN.0,
            right: corner.0 + size.0 - MARGIN.1,
            top: corner.1 + MARGIN.2,
            bottom: corner.1 + size.1 - MARGIN.3,
            y: Scale::holding(most.min(mean * WHISKER_ROOM)),
            x,
        };
        self.axes(canvas, &frame);
        match self.x {
            XAxis::Names => self.bars(canvas, &frame),
            XAxis::Numbers { label, scale } => {
                self.numbers(canvas, &frame, label, scale);
                self.lines(canvas, &frame);
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
        for (at, series) in self.series.iter().enumerate() {
            let middle = frame.left + (at as f64 + 0.5) * slot;
            for point in &series.points {
                let top = frame.y(point.mean);
                let corner = (middle - slot * BAR / 2.0, top);
                canvas.bar(corner, (slot * BAR, frame.bottom - top), series.colour);
                whisker(canvas, frame, (middle, WHISKER), point);
            }
            canvas.text((middle, frame.bottom + 18.0), &series.name, Font::Note, Anchor::Middle);
        }
    }

    /// The points of the series that has most: all series lie on the same axis.
    fn longest(&self) -> impl Iterator<Item = &Point> {
        let longest = self.series.iter().max_by_key(|series| series.points.len());
        longest.into_iter().flat_map(|series| &series.points)
    }

    fn numbers(&self, canvas: &mut Canvas, frame: &Frame, label: &str, scale: f64) {
        let values: Vec<f64> = self.longest().map(|point| point.x).collect();
        let every = values.len().div_ceil(LABELS_MAX).max(1);
        for value in values.iter().step_by(every) {
            let x = frame.x(*value);
            canvas.line((x, frame.bottom), (x, frame.bottom + 5.0), AXIS, 1.0);
            canvas.text((x, frame.bottom + 18.0), &format!("{}", value / scale), Font::Note, Anchor::Middle);
        }
        let middle = f64::midpoint(frame.left, frame.right);
        canvas.text((middle, frame.bottom + 38.0), label, Font::Note, Anchor::Middle);
    }

    #[expect(clippy::cast_precision_loss, reason = "profiles are few")]
    fn lines(&self, canvas: &mut Canvas, frame: &Frame) {
        let center = (self.series.len() as f64 - 1.0) / 2.0;
        for (at, series) in self.series.iter().enumerate() {
            let shift = (at as f64 - center) * DODGE;
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

/// The interval where there is one, cut off at the panel; an end that is cut off has no bar across.
fn whisker(canvas: &mut Canvas, frame: &Frame, (x, colour): (f64, &str), point: &Point) {
    if point.half <= 0.0 {
        return;
    }
    let ends = [point.mean - point.half, point.mean + point.half];
    let [low, high] = ends.map(|end| frame.y(end));
    canvas.line((x, low), (x, high), colour, 1.0);
    for (_, y) in ends.into_iter().zip([low, high]).filter(|(end, _)| (0.0..=frame.y.end).contains(end)) {
        canvas.line((x - WHISKER_END, y), (x + WHISKER_END, y), colour, 1.0);
    }
}
