//! A percentile curve: how long the slowest of so many take. To the right by the number of nines, upwards by the logarithm.

use super::plot::Plot;
use super::{Colour, Dash, Figure, Scale, Sign, TALL, Unit, legend};
use std::fmt::Write;

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveLine {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// How it is drawn.
    pub dash: Dash,
    /// (percent from 0 to 100, value), rising.
    pub points: Vec<(f64, f64)>,
}

/// Percentile curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Unique on the page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// A remark under the title; empty for none.
    pub hint: String,
    /// What there is to see, in words and numbers.
    pub gist: String,
    /// What the values are.
    pub unit: Unit,
    /// The curves, the last on top.
    pub lines: Vec<CurveLine>,
}

/// Where the axis has marks: so many percent, and how it is written.
const NINES: [(f64, &str); 7] =
    [(0.0, "0%"), (50.0, "50%"), (90.0, "90%"), (99.0, "99%"), (99.9, "99.9%"), (99.99, "99.99%"), (99.999, "99.999%")];

/// The number of nines: 1 at 90%, 2 at 99%.
fn nines(percent: f64) -> f64 {
    -libm::log10((1.0 - percent / 100.0).max(1e-9))
}

impl Curve {
    /// The markup; empty without a curve.
    pub fn html(&self) -> String {
        let svg = self.svg();
        let entries: Vec<_> = self.lines.iter().map(|l| (l.colour, l.dash, Sign::Line, l.name.as_str())).collect();
        let legend = legend(&entries);
        Figure { title: &self.title, hint: &self.hint, legend: &legend, svg: &svg, small: false }.html()
    }

    fn svg(&self) -> String {
        let mut plot = Plot::new(&self.id, &self.title, &self.gist, TALL, false);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let values = || points().map(|(_, value)| *value).filter(|x| *x > 0.0);
        let scale = Scale::log(values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        let reached = points().map(|(percent, _)| *percent).filter(|p| *p < 100.0).fold(90.0, f64::max);
        let end = (nines(reached) + 0.15).clamp(1.0, 5.2);
        plot.rungs(&scale, self.unit);
        let marks = NINES.iter().map(|(percent, label)| (nines(*percent) / end, label.to_string())).filter(|(at, _)| *at <= 1.0);
        let marks: Vec<_> = marks.collect();
        plot.below(&marks);
        plot.values(1_000.0, &scale);
        for (index, line) in self.lines.iter().enumerate() {
            let mut path = String::new();
            for (percent, value) in line.points.iter().filter(|(_, value)| *value > 0.0) {
                let x = (nines(*percent) / end).min(1.0) * 1_000.0;
                let _ = write!(path, "{}{x:.0} {}", if path.is_empty() { 'M' } else { 'L' }, scale.coordinate(*value));
            }
            let _ = write!(
                plot.stretched,
                "<path data-s=\"{index}\" d=\"{path}\" fill=\"none\" {} stroke-width=\"2\"{} vector-effect=\"non-scaling-stroke\" \
                 stroke-linejoin=\"round\"/>",
                line.colour.stroke(),
                line.dash.attribute()
            );
        }
        plot.end();
        plot.svg()
    }
}
