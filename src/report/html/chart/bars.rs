//! A histogram: one bar for each class of values.

use super::plot::Plot;
use super::{Colour, Figure, MIDDLE, Scale, Unit, px, share_of};
use std::fmt::Write;

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What stands below it; empty for none.
    pub label: String,
    /// How high it is.
    pub value: f64,
    /// What it is in words, shown when pointed at.
    pub detail: String,
}

/// A histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
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
    /// Their colour.
    pub colour: Colour,
    /// From left to right.
    pub bars: Vec<Bar>,
    /// Whether a label stands at the left edge of its bar rather than below its middle: bars of a range of values.
    pub edges: bool,
}

impl Bars {
    /// The markup.
    pub fn html(&self) -> String {
        let svg = self.svg();
        Figure { title: &self.title, hint: &self.hint, legend: "", svg: &svg, small: false }.html()
    }

    /// The drawing alone.
    pub fn svg(&self) -> String {
        let mut plot = Plot::new(&self.id, &self.title, &self.gist, MIDDLE, false);
        let scale = Scale::linear(self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max));
        plot.rungs(&scale, self.unit);
        let count = self.bars.len().max(1) as f64;
        let mut labels = Vec::new();
        for (index, bar) in self.bars.iter().enumerate() {
            let left = index as f64 / count;
            if !bar.label.is_empty() {
                labels.push((if self.edges { left } else { left + 0.5 / count }, bar.label.clone()));
            }
            if bar.value <= 0.0 {
                continue;
            }
            // Something never looks like nothing.
            let height = (scale.place(bar.value) * MIDDLE).max(1.5);
            let (x, width) = (share_of(left + 0.06 / count), share_of(0.88 / count));
            let mut rect = String::new();
            let _ = write!(
                rect,
                "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{}\" {} fill-opacity=\".8\"><title>{}</title></rect>",
                px(MIDDLE - height),
                px(height),
                self.colour.fill(),
                super::escape(&bar.detail),
            );
            plot.behind(&rect);
        }
        plot.below(&labels);
        plot.svg()
    }
}
