//! How long something took in many runs: a histogram for each row, all on one scale, and beside them those to which it never came.

use super::super::super::layout::{count, millis};
use super::super::words::{escape, plain};
use super::plot::Plot;
use super::{Colour, Figure, Scale, px, share_of};
use std::fmt::Write;

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct TimesRow {
    /// What it is of.
    pub name: String,
    /// A figure beside the name.
    pub note: String,
    /// Its colour.
    pub colour: Colour,
    /// Seconds, of the runs to which it came.
    pub seconds: Vec<f64>,
    /// Runs to which it never came.
    pub never: u64,
    /// Runs without evidence.
    pub unknown: u64,
}

/// Rows of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Unique on the page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// A remark under the title; empty for none.
    pub hint: String,
    /// What there is to see, in words and numbers.
    pub gist: String,
    /// From the top.
    pub rows: Vec<TimesRow>,
}

/// The height of a row with its name.
const ROW: f64 = 76.0;
/// The height of the highest bar.
const BAR: f64 = 32.0;
/// The share of the width that times have.
const WIDE: f64 = 0.7;
/// Where the bars of `never` and `unknown` begin, and how wide they are.
const NEVER: f64 = 0.77;
const UNKNOWN: f64 = 0.9;
const ASIDE: f64 = 0.05;
/// Classes of times.
const BINS: usize = 48;

impl Times {
    /// The markup.
    pub fn html(&self) -> String {
        let svg = self.svg();
        Figure { title: &self.title, hint: &self.hint, legend: "", svg: &svg, small: false }.html()
    }

    fn svg(&self) -> String {
        let mut plot = Plot::new(&self.id, &self.title, &self.gist, ROW * self.rows.len().max(1) as f64, false);
        plot.wide();
        let longest = self.rows.iter().flat_map(|row| &row.seconds).copied().fold(0.0, f64::max);
        let scale = Scale::linear(longest);
        let bins: Vec<[u64; BINS]> = self.rows.iter().map(|row| binned(&row.seconds, &scale)).collect();
        let most = bins.iter().flatten().copied().max().unwrap_or(0).max(1);
        for (index, (row, bins)) in self.rows.iter().zip(&bins).enumerate() {
            let foot = ROW * (index as f64 + 1.0) - 6.0;
            plot.behind(&format!("<path d=\"M0 {}h9999\" class=\"rung\" stroke=\"#d9dde3\"/>", px(foot)));
            plot.front(&heading(row, foot));
            plot.front(&bars(row, bins, most, &scale, foot));
            plot.front(&aside(row, foot));
        }
        let seconds = |at: f64| if at == 0.0 { "0s".to_string() } else { millis(Some(at * 1e3)) };
        // Where none of them came to it there is no scale.
        let ticks = scale.ticks().into_iter().filter(|_| longest > 0.0).map(|tick| (scale.place(tick) * WIDE, seconds(tick)));
        plot.below(&ticks.collect::<Vec<_>>());
        let foot = px(ROW * self.rows.len().max(1) as f64 + 16.0);
        for (at, label) in [(NEVER, "never"), (UNKNOWN, "unknown")] {
            let x = share_of(at + ASIDE / 2.0);
            plot.front(&format!(
                "<text x=\"{x}\" y=\"{foot}\" text-anchor=\"middle\" class=\"lab\" fill=\"#4b5563\">{label}</text>"
            ));
        }
        plot.svg()
    }
}

fn binned(seconds: &[f64], scale: &Scale) -> [u64; BINS] {
    let mut bins = [0; BINS];
    for &time in seconds.iter().filter(|time| time.is_finite()) {
        bins[((scale.place(time) * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    bins
}

fn heading(row: &TimesRow, foot: f64) -> String {
    let none = row.seconds.is_empty() && row.never > 0;
    let note = if none { "none was healthy again" } else { &row.note };
    // On two lines, so that they do not meet where there is little room; what is too long for it is cut.
    format!(
        "<svg width=\"100%\" y=\"{}\" height=\"32\"><text y=\"12\" class=\"ink\" fill=\"#1b2430\" font-weight=\"600\">{}</text>\
         <text y=\"27\" class=\"lab\" fill=\"#4b5563\">{}</text></svg>",
        px(foot - ROW + 8.0),
        escape(&plain(&row.name, 40)),
        escape(note),
    )
}

/// The bars of the times.
fn bars(row: &TimesRow, bins: &[u64; BINS], most: u64, scale: &Scale, foot: f64) -> String {
    let mut text = String::new();
    let top = *scale.ticks().last().unwrap_or(&1.0);
    let width = WIDE / BINS as f64;
    for (bin, &runs) in bins.iter().enumerate().filter(|(_, runs)| **runs > 0) {
        let edge = |bin: usize| millis(Some(top * bin as f64 / BINS as f64 * 1e3));
        let detail = format!("{}: {} from {} to {}", plain(&row.name, 40), of(runs), edge(bin), edge(bin + 1));
        text += &bar(bin as f64 * width, width * 0.86, runs as f64 / most as f64, row.colour, &detail, foot);
    }
    text
}

/// The runs to which it never came, and those without evidence: as high as their share of all.
fn aside(row: &TimesRow, foot: f64) -> String {
    let all = (row.seconds.len() as u64 + row.never + row.unknown).max(1) as f64;
    let mut text = String::new();
    for (at, runs, colour, what) in
        [(NEVER, row.never, Colour::Vermilion, "never"), (UNKNOWN, row.unknown, Colour::Grey, "without evidence")]
    {
        if runs == 0 {
            continue;
        }
        let detail = format!("{}: {} {what}", plain(&row.name, 40), of(runs));
        text += &bar(at, ASIDE, runs as f64 / all, colour, &detail, foot);
        let (x, y) = (share_of(at + ASIDE), px(foot - 3.0));
        let _ = write!(text, "<text x=\"{x}\" dx=\"4\" y=\"{y}\" class=\"ink\" fill=\"#1b2430\">{}</text>", count(runs));
    }
    text
}

fn of(runs: u64) -> String {
    if runs == 1 { "1 run".into() } else { format!("{} runs", count(runs)) }
}

fn bar(left: f64, width: f64, share: f64, colour: Colour, detail: &str, foot: f64) -> String {
    // Something never looks like nothing.
    let height = (share * BAR).max(2.0);
    format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {} fill-opacity=\".85\"><title>{}</title></rect>",
        share_of(left),
        px(foot - height),
        share_of(width),
        px(height),
        colour.fill(),
        escape(detail)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_stands_apart_and_rows_share_a_scale() {
        let row = |name: &str, seconds: &[f64], never, unknown| TimesRow {
            name: name.into(),
            note: String::new(),
            colour: Colour::Blue,
            seconds: seconds.to_vec(),
            never,
            unknown,
        };
        let rows = vec![row("<now>", &[], 18, 2), row("budget", &[2.0, 2.1, 38.0], 0, 0)];
        let html = Times { id: "t".into(), title: "T".into(), hint: String::new(), gist: String::new(), rows }.html();
        assert!(html.contains("18 runs never") && html.contains("2 runs without evidence"), "{html}");
        assert!(html.contains("&lt;now&gt;") && !html.contains("<now>"));
        assert!(html.contains("2 runs from 1.7s to 2.5s") && html.contains("1 run from 37.5s to 38.3s"), "{html}");
        let many = vec![row("many", &vec![3.0; 100_000], 0, 0)];
        let html = Times { id: "t".into(), title: "T".into(), hint: String::new(), gist: String::new(), rows: many }.html();
        assert!(html.len() < 5_000, "{}", html.len());
    }
}
