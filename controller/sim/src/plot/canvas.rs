//! Shapes and text as SVG elements.

use std::fmt::Write;

/// Pixels from the left and from above.
pub(super) type Place = (f64, f64);

const INK: &str = "#222222";
/// Half the size of a mark.
const MARK: f64 = 4.0;

#[derive(Debug, Clone, Copy)]
pub(super) enum Font {
    Title,
    Label,
    Note,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// In the middle, and turned to read upwards.
    Upwards,
}

/// A document that grows.
#[derive(Debug)]
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let mut canvas = Self { text: String::new() };
        canvas.add(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">"
        ));
        canvas.bar((0.0, 0.0), (width, height), "#ffffff");
        canvas
    }

    fn add(&mut self, element: &str) {
        writeln!(self.text, "{element}").expect("a String takes all that is written");
    }

    pub(super) fn line(&mut self, from: Place, to: Place, colour: &str, width: f64) {
        self.add(&format!(
            "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A filled rectangle from its upper left corner.
    pub(super) fn bar(&mut self, (x, y): Place, (width, height): (f64, f64), colour: &str) {
        self.add(&format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{colour}\"/>"
        ));
    }

    /// One mark of several kinds, around its middle.
    pub(super) fn mark(&mut self, (x, y): Place, kind: usize, colour: &str) {
        let around: &[Place] = match kind % 6 {
            0 => return self.disc((x, y), colour),
            1 => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            2 => &[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)],
            3 => &[(0.0, -1.4), (1.4, 0.0), (0.0, 1.4), (-1.4, 0.0)],
            4 => &[(0.0, 1.3), (1.2, -0.9), (-1.2, -0.9)],
            _ => &[(-1.3, 0.0), (-0.65, -1.1), (0.65, -1.1), (1.3, 0.0), (0.65, 1.1), (-0.65, 1.1)],
        };
        let points: Vec<String> =
            around.iter().map(|(dx, dy)| format!("{:.2},{:.2}", x + dx * MARK, y + dy * MARK)).collect();
        self.add(&format!("<polygon points=\"{}\" fill=\"{colour}\"/>", points.join(" ")));
    }

    fn disc(&mut self, (x, y): Place, colour: &str) {
        self.add(&format!("<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{MARK}\" fill=\"{colour}\"/>"));
    }

    pub(super) fn text(&mut self, (x, y): Place, text: &str, font: Font, anchor: Anchor) {
        let style = match font {
            Font::Title => "font-size=\"17\" font-weight=\"bold\"",
            Font::Label => "font-size=\"13\"",
            Font::Note => "font-size=\"12\"",
        };
        let (anchor, turn) = match anchor {
            Anchor::Start => ("start", String::new()),
            Anchor::Middle => ("middle", String::new()),
            Anchor::End => ("end", String::new()),
            Anchor::Upwards => ("middle", format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"")),
        };
        let text = escape(text);
        self.add(&format!(
            "<text x=\"{x:.2}\" y=\"{y:.2}\" {style} fill=\"{INK}\" text-anchor=\"{anchor}\"{turn}>{text}</text>"
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.add("</svg>");
        self.text
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
