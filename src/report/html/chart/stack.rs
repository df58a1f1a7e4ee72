//! Parts of a whole: a bar of full width for each row, its parts in one ramp from light to dark.

use super::plot::Plot;
use super::{Figure, px, share_of};
use std::fmt::Write;

/// A part of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is; written into it where it fits.
    pub label: String,
    /// Its share of the row, 0 to 1.
    pub share: f64,
    /// What it is in words.
    pub detail: String,
    /// Its place on the ramp, from 0 to 7.
    pub shade: usize,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// A figure beside the name.
    pub note: String,
    /// Its parts; empty where there is no evidence.
    pub parts: Vec<Part>,
}

/// Rows of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Unique on the page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// A remark under the title; empty for none.
    pub hint: String,
    /// What there is to see, in words and numbers.
    pub gist: String,
    /// From the top.
    pub rows: Vec<Row>,
}

/// Shades from few to many, on white. The style sheet turns them round in the dark.
pub const SHADES: [&str; 8] = ["#dbe9f6", "#bcd7ee", "#94c1e2", "#66a5d3", "#3576b0", "#1f5f9e", "#124a86", "#082f63"];
/// The height of a row with its name.
const ROW: f64 = 42.0;
/// The least share that a label fits into.
const WIDE: f64 = 0.07;

impl Stack {
    /// The markup.
    pub fn html(&self) -> String {
        let svg = self.svg();
        Figure { title: &self.title, hint: &self.hint, legend: "", svg: &svg, small: false }.html()
    }

    fn svg(&self) -> String {
        let mut plot = Plot::new(&self.id, &self.title, &self.gist, ROW * self.rows.len().max(1) as f64, false);
        plot.wide();
        for (index, row) in self.rows.iter().enumerate() {
            let y = ROW * index as f64;
            let heading = super::escape(&super::super::words::plain(&row.name, 48));
            let note = super::escape(&row.note);
            let mut text = format!(
                "<svg width=\"58%\" y=\"{}\" height=\"17\"><text y=\"12\" class=\"ink\" fill=\"#1b2430\">{heading}</text></svg>\
                 <text x=\"100%\" y=\"{}\" text-anchor=\"end\" class=\"lab\" fill=\"#4b5563\">{note}</text>",
                px(y),
                px(y + 12.0)
            );
            let mut left = 0.0;
            for part in &row.parts {
                let shade = part.shade.min(SHADES.len() - 1);
                let ink = if shade < 4 { ("low", "#1b2430") } else { ("high", "#ffffff") };
                let label = if part.share >= WIDE { super::escape(&part.label) } else { String::new() };
                let _ = write!(
                    text,
                    "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\"><title>{}</title><rect width=\"100%\" height=\"20\" class=\"h{shade}\" \
                     fill=\"{}\"/><text x=\"5\" y=\"14\" class=\"on-{}\" fill=\"{}\">{label}</text></svg>",
                    share_of(left),
                    px(y + 17.0),
                    share_of(part.share),
                    super::escape(&part.detail),
                    SHADES[shade],
                    ink.0,
                    ink.1,
                );
                left += part.share;
            }
            plot.front(&text);
        }
        plot.svg()
    }
}
