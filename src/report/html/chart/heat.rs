//! Counts over time and size: a map whose darker cells hold more, with lines over it.

use super::columns::{columns, line, together};
use super::plot::{Backdrop, Plot};
use super::stack::SHADES;
use super::time::Series;
use super::{Colour, Dash, Figure, Scale, Sign, TALL, Unit, legend, px};
use std::fmt::Write;

/// A map.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat<'a> {
    /// Unique on the page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// A remark under the title; empty for none.
    pub hint: String,
    /// What there is to see, in words and numbers.
    pub gist: String,
    /// What the heights are.
    pub unit: Unit,
    /// What stands behind.
    pub backdrop: &'a Backdrop,
    /// How long a column is, in milliseconds.
    pub column_ms: f64,
    /// The edges of the rows, from below: one more than there are rows.
    pub edges: Vec<f64>,
    /// By column, (row, count).
    pub cells: Vec<Vec<(usize, u64)>>,
    /// Lines over it, one value for each window.
    pub lines: Vec<Series>,
}

impl Heat<'_> {
    /// The markup.
    pub fn html(&self) -> String {
        let svg = self.svg();
        let entries: Vec<_> = self.lines.iter().map(|s| (s.colour, s.dash, Sign::Line, s.name.as_str())).collect();
        let legend = legend(&entries) + &self.ramp();
        Figure { title: &self.title, hint: &self.hint, legend: &legend, svg: &svg, small: false }.html()
    }

    fn most(&self) -> u64 {
        self.cells.iter().flatten().map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// What the shades mean.
    fn ramp(&self) -> String {
        let most = super::super::super::layout::count(self.most());
        let cells: String = SHADES
            .iter()
            .enumerate()
            .map(|(n, shade)| format!("<rect x=\"{}\" width=\"14\" height=\"10\" class=\"h{n}\" fill=\"{shade}\"/>", n * 14))
            .collect();
        format!(
            "<p class=\"ramp\">1 <svg aria-hidden=\"true\" width=\"112\" height=\"10\">{cells}</svg> {most} operations in a cell</p>"
        )
    }

    fn svg(&self) -> String {
        let (Some(low), Some(high)) = (self.edges.first(), self.edges.last()) else { return String::new() };
        let scale = Scale::Log { low: *low, high: if high > low { *high } else { low * 10.0 } };
        let mut plot = Plot::new(&self.id, &self.title, &self.gist, TALL, false);
        let span = self.backdrop.span_ms.max(1.0);
        let windows = self.lines.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let each = together(windows, 300);
        let step = self.backdrop.window_ms.max(1.0) * each as f64;
        let _ = write!(
            plot.data,
            " data-step=\"{}\" data-unit=\"{}\" data-columns=\"{:.3}\" data-log=\"1\"",
            px(step),
            self.unit.key(),
            span / step
        );
        plot.rungs(&scale, self.unit);
        plot.time(self.backdrop);
        self.cells(&mut plot, span);
        plot.values(span / step, &scale);
        for (index, series) in self.lines.iter().enumerate() {
            let path = line(&columns(&series.values, each), &scale);
            let dash = series.dash.attribute();
            // A light edge keeps a line visible on dark cells and on light ones.
            let _ = write!(
                plot.stretched,
                "<g data-s=\"{index}\" fill=\"none\" vector-effect=\"non-scaling-stroke\"><path d=\"{path}\" class=\"edge\" stroke=\"#fff\" \
                 stroke-width=\"4\" stroke-opacity=\".75\" vector-effect=\"non-scaling-stroke\"/><path data-v=\"\" d=\"{path}\" {} \
                 stroke-width=\"1.8\"{dash} vector-effect=\"non-scaling-stroke\"/></g>",
                series.colour.stroke()
            );
        }
        plot.end();
        plot.svg()
    }

    /// One path for each shade; cells beside each other are drawn as one.
    fn cells(&self, plot: &mut Plot, span: f64) {
        let rows = self.edges.len().saturating_sub(1).max(1);
        let most = libm::log1p(self.most().max(1) as f64);
        let shade = |n: u64| ((libm::log1p(n as f64) / most * SHADES.len() as f64) as usize).min(SHADES.len() - 1);
        let mut grid = vec![vec![None; self.cells.len()]; rows];
        for (column, cells) in self.cells.iter().enumerate() {
            for (row, n) in cells.iter().filter(|(row, n)| *row < rows && *n > 0) {
                grid[*row][column] = Some(shade(*n));
            }
        }
        let mut paths = vec![String::new(); SHADES.len()];
        for (row, line) in grid.iter().enumerate() {
            let mut at = 0;
            while at < line.len() {
                let run = line[at..].iter().take_while(|cell| **cell == line[at]).count();
                if let Some(shade) = line[at] {
                    let _ = write!(paths[shade], "M{at} {row}h{run}v1h-{run}z");
                }
                at += run;
            }
        }
        let (x, y) = (1_000.0 * self.column_ms / span, plot.height / rows as f64);
        let _ = write!(
            plot.stretched,
            "<g transform=\"matrix({x:.6} 0 0 -{y:.6} 0 {})\" shape-rendering=\"crispEdges\">",
            px(plot.height)
        );
        for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            let _ = write!(plot.stretched, "<path d=\"{path}\" class=\"h{shade}\" fill=\"{}\"/>", SHADES[shade]);
        }
        plot.end();
    }
}

/// The two lines that a map of latency has.
pub fn quantiles(p50: Vec<Option<f64>>, p99: Vec<Option<f64>>) -> Vec<Series> {
    let line = |name: &str, colour, dash, values| Series { name: name.into(), colour, dash, values, ..Series::default() };
    vec![line("p50", Colour::Green, Dash::Solid, p50), line("p99", Colour::Vermilion, Dash::Dashed, p99)]
}
