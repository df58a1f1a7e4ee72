//! The recovery curve as text: goodput over time, and beneath it what was offered, attempted and retried.
//!
//! Goodput stands on the scale of the offered load, so that a gap is what users lost; attempts stand on their own,
//! for a storm would flatten everything else. Where several windows share a column, the one that deviates shows:
//! the highest for attempts and retry share, the one farthest from the median for goodput and offered load.
//! Something never looks like nothing: the smallest value above zero gets the lowest block.

use super::layout::{Colour, NONE, Style, clock, columns, millis, percent, rate};
use super::result::{PhaseResult, RunResult, WindowResult};

/// Columns before the curve: a label and the top of its scale.
const LABEL: usize = 12;
const VALUE: usize = 7;
const LEFT: usize = LABEL + VALUE + 1;

/// Lines that a curve has beside those of goodput.
pub const OTHER_LINES: usize = 5;

/// The lowest to the highest block of a cell, after the empty one.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BLOCKS: [char; 9] = [' ', '_', '.', '-', ':', '=', '+', '*', '#'];

/// Which of several windows a column shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// The highest.
    Highest,
    /// The one farthest from the median.
    Farthest,
}

/// The curve, a line each: `height` for goodput and [`OTHER_LINES`] more. None where the run has no window.
pub fn curve(result: &RunResult, style: &Style, height: usize) -> Vec<String> {
    let width = style.width.saturating_sub(LEFT);
    let windows = whole_windows(result);
    if windows.is_empty() || width < 10 || height == 0 {
        return Vec::new();
    }
    let per_second = |count: fn(&WindowResult) -> u64| -> Vec<Option<f64>> {
        windows.iter().map(|window| Some(count(window) as f64 / window_seconds(result, window))).collect()
    };
    let offered = per_second(|window| window.offered);
    let attempts = per_second(|window| window.attempts);
    let goodput = per_second(|window| window.succeeded);
    let shares: Vec<Option<f64>> = windows.iter().map(|window| window.retry_share).collect();
    let top = peak(&offered).unwrap_or(0.0).max(peak(&goodput).unwrap_or(0.0));

    let mut lines = tall(&cells(&goodput, width, Pick::Farthest), if top > 0.0 { top } else { 1.0 }, height, style);
    let mut low = |label: &str, values: &[Option<f64>], pick, top: f64, value: String| {
        lines.push(left(label, &value, style) + &spark(&cells(values, width, pick), top, style));
    };
    low("offered", &offered, Pick::Farthest, top, rate(peak(&offered)));
    low("attempted", &attempts, Pick::Highest, peak(&attempts).unwrap_or(0.0), rate(peak(&attempts)));
    low("retry share", &shares, Pick::Highest, 1.0, percent(peak(&shares)));
    let time = Time { column_ms: windows.len() as f64 * result.window_ms.max(1) as f64 / width as f64, width };
    lines.push(left("phase", "", style) + &phases(&result.phases, &time, style));
    lines.push(left("", "", style) + &axis(&time));
    lines.iter().map(|line| line.trim_end().to_string()).collect()
}

/// A stub of a window at the end says nothing about a rate.
pub(super) fn whole_windows(result: &RunResult) -> &[WindowResult] {
    match result.windows.split_last() {
        Some((last, rest)) if !rest.is_empty() && result.duration_ms < last.t_ms + result.window_ms / 2 => rest,
        _ => &result.windows,
    }
}

/// How long a window really was, in seconds.
pub(super) fn window_seconds(result: &RunResult, window: &WindowResult) -> f64 {
    let length = result.duration_ms.saturating_sub(window.t_ms).clamp(1, result.window_ms.max(1));
    length as f64 / 1e3
}

fn peak(values: &[Option<f64>]) -> Option<f64> {
    values.iter().flatten().copied().reduce(f64::max)
}

fn left(label: &str, value: &str, style: &Style) -> String {
    let value = style.fit(value, VALUE);
    let gap = " ".repeat(VALUE.saturating_sub(columns(&value)));
    format!("{}{gap}{value} ", style.pad(label, LABEL))
}

/// One value for each column. Fewer windows than columns are stretched.
pub(super) fn cells(values: &[Option<f64>], width: usize, pick: Pick) -> Vec<Option<f64>> {
    let median = median(values);
    (0..width)
        .map(|column| {
            let from = column * values.len() / width;
            let to = ((column + 1) * values.len() / width).max(from + 1);
            let weight = |x: f64| if pick == Pick::Highest { x } else { (x - median).abs() };
            values[from..to].iter().flatten().copied().reduce(|a, b| if weight(b) > weight(a) { b } else { a })
        })
        .collect()
}

fn median(values: &[Option<f64>]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// In `steps` of a scale that ends at `top`; at least one for what is more than nothing.
fn level(x: f64, top: f64, steps: usize) -> usize {
    if x <= 0.0 || top <= 0.0 {
        return 0;
    }
    ((x / top * steps as f64).round() as usize).clamp(1, steps)
}

/// The blocks of a cell, by level.
pub(super) fn blocks(style: &Style) -> &'static [char; 9] {
    if style.ascii { &ASCII_BLOCKS } else { &BLOCKS }
}

/// One line; a dot where there is no evidence.
pub(super) fn spark(cells: &[Option<f64>], top: f64, style: &Style) -> String {
    let none = if style.ascii { '?' } else { '·' };
    cells.iter().map(|cell| cell.map_or(none, |x| blocks(style)[level(x, top, 8)])).collect()
}

/// Goodput, several lines high.
fn tall(cells: &[Option<f64>], top: f64, height: usize, style: &Style) -> Vec<String> {
    let line = |row: usize| -> String {
        let below = 8 * (height - 1 - row);
        let block = |x: f64| blocks(style)[level(x, top, 8 * height).saturating_sub(below).min(8)];
        cells.iter().map(|cell| cell.map_or(' ', block)).collect()
    };
    let value = |row: usize| match row {
        0 => rate(Some(top)),
        _ if row + 1 == height => "0/s".into(),
        _ => String::new(),
    };
    (0..height).map(|row| left(if row == 0 { "goodput" } else { "" }, &value(row), style) + &line(row)).collect()
}

/// How time lies along the columns.
struct Time {
    column_ms: f64,
    width: usize,
}

impl Time {
    fn column(&self, ms: u64) -> usize {
        ((ms as f64 / self.column_ms).round() as usize).min(self.width)
    }
}

/// The phases by name, each behind a mark at its begin; shaded where a fault acts.
fn phases(phases: &[PhaseResult], time: &Time, style: &Style) -> String {
    let (mark, shade) = if style.ascii { ("|", "x") } else { ("│", "▒") };
    let mut line = String::new();
    let mut at = 0;
    for phase in phases {
        let (from, to) = (time.column(phase.from_ms), time.column(phase.to_ms));
        if to <= at {
            continue;
        }
        line.push_str(&" ".repeat(from.saturating_sub(at)));
        let width = to - from.max(at);
        let name = style.fit(&phase.name, width.saturating_sub(1));
        let mark = if from == 0 { "" } else { mark };
        let rest = width.saturating_sub(columns(mark) + columns(&name));
        let text = format!("{mark}{name}{}", if phase.faults.is_empty() { " " } else { shade }.repeat(rest));
        line.push_str(&if phase.faults.is_empty() { text } else { style.paint(Colour::Red, &text) });
        at = to;
    }
    if line.trim().is_empty() { NONE.into() } else { line }
}

/// Steps of an axis, in milliseconds.
const STEPS: [u64; 19] = [
    10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
    7_200_000, 21_600_000, 86_400_000,
];

/// Columns between two labels of the axis, at the least.
const LABEL_GAP: f64 = 9.0;

fn axis(time: &Time) -> String {
    let step = STEPS.into_iter().find(|&step| step as f64 / time.column_ms >= LABEL_GAP).unwrap_or(STEPS[STEPS.len() - 1]);
    let mut line = String::new();
    for at in (0..).map(|n| n * step) {
        let column = time.column(at);
        let label = if step < 1_000 { millis(Some(at as f64)) } else { clock(at / 1_000) };
        if column + label.len() > time.width {
            break;
        }
        if column < line.len() + usize::from(at > 0) {
            continue;
        }
        line.push_str(&" ".repeat(column - line.len()));
        line.push_str(&label);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn peaks_and_dips_survive_downsampling() {
        let mut values = vec![100.0; 600];
        values[317] = 900.0;
        let shown = cells(&some(&values), 60, Pick::Highest);
        assert_eq!(shown[31], Some(900.0));
        assert_eq!(shown.iter().flatten().filter(|&&x| x == 100.0).count(), 59);
        values[317] = 0.0;
        assert_eq!(cells(&some(&values), 60, Pick::Farthest)[31], Some(0.0));
        assert_eq!(cells(&some(&values), 60, Pick::Highest)[31], Some(100.0));
    }

    #[test]
    fn few_windows_are_stretched_and_gaps_stay_gaps() {
        assert_eq!(cells(&some(&[1.0, 2.0]), 4, Pick::Highest), some(&[1.0, 1.0, 2.0, 2.0]));
        assert_eq!(cells(&[None, Some(2.0)], 2, Pick::Farthest), [None, Some(2.0)]);
    }

    #[test]
    fn something_never_looks_like_nothing() {
        let style = Style::default();
        assert_eq!(spark(&[Some(0.0), Some(0.001), Some(50.0), Some(100.0), None], 100.0, &style), " ▁▄█·");
        assert_eq!(spark(&[Some(0.0), Some(0.001), Some(100.0), None], 100.0, &Style { ascii: true, ..style }), " _#?");
        let tall = tall(&[Some(100.0), Some(50.0), Some(0.1), Some(0.0)], 100.0, 2, &style);
        assert_eq!(tall[0], format!("goodput     {:>7} █   ", "100/s"));
        assert_eq!(tall[1], format!("            {:>7} ██▁ ", "0/s"));
    }

    #[test]
    fn the_axis_never_passes_its_end() {
        for (windows, width) in [(1usize, 60usize), (30, 60), (60, 60), (7_200, 41), (90_000, 60), (100_000_000, 12)] {
            let time = Time { column_ms: windows as f64 * 1e3 / width as f64, width };
            let axis = axis(&time);
            assert!(axis.starts_with("0"), "{axis}");
            assert!(axis.len() <= width, "{axis}");
        }
        let time = Time { column_ms: 1_000.0, width: 60 };
        assert_eq!(axis(&time), "0s        10s       20s       30s       40s       50s");
    }
}
