//! Curves of the live view, a line or several each, over one stretch of the run.

use super::rows::{Tone, spans};
use super::series::Curve;
use super::view::View;
use crate::report::curve::{LABEL_GAP, STEPS, blocks, level};
use crate::report::layout::{clock, columns, millis, number, percent, rate};
use crate::time::{Span, Timestamp};
use ratatui::text::Line;

/// The stretch that is shown near: the last two minutes.
const NEAR: Span = Span::from_secs(120);

/// Where curves stand.
pub(super) struct Frame<'a> {
    view: &'a View,
    /// Columns of the label with the top of the scale, and of the curve.
    label: usize,
    width: usize,
    /// What the columns show of the run.
    stretch: (Timestamp, Timestamp),
}

impl<'a> Frame<'a> {
    /// Curves in so many columns: of the whole run, or of the last minutes.
    pub(super) fn new(view: &'a View, columns: usize, near: bool, now: Timestamp) -> Self {
        let end = Timestamp::ZERO + view.length;
        let stretch = if near && view.length > NEAR {
            let to = now.min(end).max(Timestamp::ZERO + NEAR);
            (Timestamp(to.0 - NEAR.0), to)
        } else {
            (Timestamp::ZERO, end)
        };
        let label = if columns < 60 { LABEL.1 } else { LABEL.0 };
        Self { view, label, width: columns.saturating_sub(label), stretch }
    }

    /// A curve of so many lines.
    pub(super) fn curve(&self, curve: Curve, height: usize) -> Vec<Line<'static>> {
        let cells = self.view.series.columns(curve, self.stretch, self.width);
        let top = self.top(curve);
        let scale = if curve == Curve::RetryShare { Some(1.0) } else { top };
        let shown = |x: Option<f64>| match curve {
            Curve::Goodput | Curve::Offered | Curve::Attempted => rate(x),
            Curve::RetryShare => percent(x),
            Curve::P50 | Curve::P99 => millis(x),
            Curve::Backlog | Curve::InFlight => x.map_or_else(|| "n/a".into(), number),
        };
        let line = |row: usize| {
            let value = match row {
                0 => shown(if height > 1 { scale } else { top }),
                _ if row + 1 == height => shown(Some(0.0)),
                _ => String::new(),
            };
            let mut parts = vec![(Tone::Plain, self.left(if row == 0 { self.word(curve) } else { "" }, &value))];
            parts.extend(self.row(curve, &cells, scale.unwrap_or(0.0), (row, height)));
            spans(parts, self.view.style.colour)
        };
        (0..height).map(line).collect()
    }

    /// What stands highest on a curve's scale. Goodput stands on that of the offered load.
    fn top(&self, curve: Curve) -> Option<f64> {
        let series = &self.view.series;
        match curve {
            Curve::Goodput | Curve::Offered => {
                let all = [series.peak(Curve::Goodput), series.peak(Curve::Offered), self.view.baseline()];
                all.into_iter().flatten().reduce(f64::max)
            }
            _ => series.peak(curve),
        }
    }

    /// One line of a curve, with the baseline where it lies.
    fn row(&self, curve: Curve, cells: &[Option<f64>], top: f64, (row, height): (usize, usize)) -> Vec<(Tone, String)> {
        let style = &self.view.style;
        let below = 8 * (height - 1 - row);
        let none = if style.ascii { '?' } else { '·' };
        let dashes = (curve == Curve::Goodput && height > 1).then(|| self.view.baseline()).flatten();
        let dashed = dashes.is_some_and(|at| (level(at, top, 8 * height).max(1) - 1) / 8 == height - 1 - row);
        let dash = if style.ascii { '-' } else { '╌' };
        let tone = if curve == Curve::Goodput { Tone::Goodput } else { Tone::Plain };
        let cell = |column: usize| match cells.get(column) {
            Some(Some(x)) => match blocks(style)[level(*x, top, 8 * height).saturating_sub(below).min(8)] {
                ' ' if dashed => (Tone::Baseline, dash),
                block => (tone, block),
            },
            Some(None) if row + 1 == height => (Tone::Dim, none),
            _ if dashed => (Tone::Baseline, dash),
            _ => (Tone::Plain, ' '),
        };
        gathered((0..self.width).map(cell))
    }

    /// The phases by name, shaded where a fault acts; what lies ahead is dim.
    pub(super) fn phases(&self, now: Timestamp) -> Line<'static> {
        let (style, mark) = (&self.view.style, if self.view.style.ascii { "|" } else { "│" });
        let mut parts = vec![(Tone::Plain, self.left("phase", ""))];
        let mut at = 0;
        for phase in &self.view.phases {
            let (from, to) = (self.column(phase.from), self.column(phase.to));
            if to <= at {
                continue;
            }
            let width = to - from.max(at);
            let mark = if from == 0 { "" } else { mark };
            let name = style.fit(&phase.name, width.saturating_sub(columns(mark)));
            let shade = match (phase.faults.is_empty(), style.ascii) {
                (true, _) => " ",
                (false, true) => "x",
                (false, false) => "▒",
            };
            let rest = width.saturating_sub(columns(mark) + columns(&name));
            let tone = match phase.faults.is_empty() {
                _ if phase.from > now => Tone::Dim,
                true => Tone::Plain,
                false => Tone::Fault,
            };
            parts.push((tone, format!("{mark}{name}{}", shade.repeat(rest))));
            at = to;
        }
        spans(parts, style.colour)
    }

    /// The time along the columns, and where the run is.
    pub(super) fn axis(&self, now: Timestamp) -> Line<'static> {
        let column_ms = self.stretch.1.since(self.stretch.0).as_secs_f64() * 1e3 / self.width.max(1) as f64;
        let step =
            STEPS.into_iter().find(|&step| step as f64 / column_ms.max(1e-9) >= LABEL_GAP).unwrap_or(STEPS[STEPS.len() - 1]);
        let mut line = vec![' '; self.width];
        let first = self.stretch.0.as_millis().div_ceil(step);
        for at in (first..).map(|n| n * step) {
            let column = ((at - self.stretch.0.as_millis()) as f64 / column_ms.max(1e-9)).round() as usize;
            let label = if step < 1_000 { millis(Some(at as f64)) } else { clock(at / 1_000) };
            if column + label.len() > self.width {
                break;
            }
            line[column..column + label.len()].iter_mut().zip(label.chars()).for_each(|(cell, c)| *cell = c);
        }
        let here = self.column(now);
        if let Some(cell) = line.get_mut(here).filter(|cell| now > self.stretch.0 && **cell == ' ') {
            *cell = if self.view.style.ascii { '^' } else { '▲' };
        }
        let mut parts = vec![(Tone::Plain, self.left("", ""))];
        parts.push((Tone::Dim, line.into_iter().collect()));
        spans(parts, self.view.style.colour)
    }

    /// The name of a curve.
    const fn word(&self, curve: Curve) -> &'static str {
        match curve {
            Curve::Goodput => "goodput",
            Curve::Offered => "offered",
            Curve::Attempted if self.label == LABEL.0 => "attempted",
            Curve::Attempted => "attempt",
            Curve::RetryShare if self.label == LABEL.0 => "retry share",
            Curve::RetryShare => "retries",
            Curve::P50 => "p50",
            Curve::P99 => "p99",
            Curve::Backlog => "backlog",
            Curve::InFlight if self.label == LABEL.0 => "in flight",
            Curve::InFlight => "flying",
        }
    }

    fn column(&self, at: Timestamp) -> usize {
        let long = self.stretch.1.since(self.stretch.0).0.max(1) as f64;
        ((at.since(self.stretch.0).0 as f64 / long * self.width as f64).round() as usize).min(self.width)
    }

    fn left(&self, label: &str, value: &str) -> String {
        let style = &self.view.style;
        let value = style.fit(value, 7);
        let label = style.pad(label, self.label.saturating_sub(columns(&value) + 1));
        format!("{label}{value} ")
    }
}

/// Columns of the label and the top of the scale, where there is room and where there is not.
const LABEL: (usize, usize) = (20, 15);

/// Cells with their tones, those of one tone together.
fn gathered(cells: impl Iterator<Item = (Tone, char)>) -> Vec<(Tone, String)> {
    let mut parts: Vec<(Tone, String)> = Vec::new();
    for (tone, c) in cells {
        match parts.last_mut() {
            Some((last, text)) if *last == tone => text.push(c),
            _ => parts.push((tone, c.to_string())),
        }
    }
    parts
}
