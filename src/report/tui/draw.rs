//! Where everything stands on a screen of any size.

use super::chart;
use super::keys::{Desk, Mode};
use super::rows;
use super::series::Curve;
use super::view::View;
use crate::report::layout::clock;
use crate::time::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// The smallest screen on which curves can be read.
const SMALLEST: (u16, u16) = (40, 10);
/// The screen from which on there is a gap between curves, faults and log.
const ROOMY: usize = 20;

/// Shows a run as it is at a moment.
pub fn draw(view: &View, desk: &Desk, now: Timestamp, frame: &mut Frame) {
    let area = frame.area();
    let lines = if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(view, usize::from(area.width), usize::from(area.height), now)
    } else {
        screen(view, desk, usize::from(area.width), usize::from(area.height), now)
    };
    for (y, line) in (0..area.height).zip(lines) {
        frame.render_widget(line, Rect { x: area.x, y: area.y + y, width: area.width, height: 1 });
    }
}

/// A sentence, where nothing else fits.
fn too_small(view: &View, width: usize, height: usize, now: Timestamp) -> Vec<Line<'static>> {
    let seconds = |nanos: u64| clock(nanos / 1_000_000_000);
    let text = format!(
        "The run goes on: {} of {}, {}. Its view needs {}x{}.",
        seconds(now.0.min(view.length.0)),
        seconds(view.length.0),
        view.phase,
        SMALLEST.0,
        SMALLEST.1
    );
    view.style.wrap(&text, width, height).into_iter().map(Line::from).collect()
}

/// Every line of a screen.
fn screen(view: &View, desk: &Desk, width: usize, height: usize, now: Timestamp) -> Vec<Line<'static>> {
    let gap = usize::from(height >= ROOMY);
    let fault_lines = view.faults().len().clamp(1, (height / 8).max(1));
    let log_lines = if height < ROOMY { (height / 6).saturating_sub(1) } else { height / 6 };
    let curve_lines = height.saturating_sub(3 + 2 * gap + fault_lines + log_lines);
    let mut lines = vec![rows::head(view, width, now), rows::figures(view, width)];
    lines.extend(curves(view, desk, width, curve_lines, now));
    let below = fault_lines + gap + log_lines;
    lines.extend((0..gap).map(|_| Line::default()));
    if desk.mode == Mode::Help {
        lines.extend(filled(rows::help(&view.style, width, below), below));
    } else {
        lines.extend(filled(rows::faults(view, desk, width, fault_lines, now), fault_lines + gap));
        lines.extend(filled(rows::log(view, width, log_lines), log_lines));
    }
    lines.push(rows::keys(view, desk, width));
    lines
}

fn filled(mut lines: Vec<Line<'static>>, length: usize) -> Vec<Line<'static>> {
    lines.resize(length, Line::default());
    lines
}

/// The curves, from top to bottom as they are read.
const ORDER: [Curve; 8] = [
    Curve::Goodput,
    Curve::Offered,
    Curve::Attempted,
    Curve::RetryShare,
    Curve::P99,
    Curve::P50,
    Curve::Backlog,
    Curve::InFlight,
];

fn curves(view: &View, desk: &Desk, width: usize, lines: usize, now: Timestamp) -> Vec<Line<'static>> {
    let frame = chart::Frame::new(view, width, desk.near, now);
    let heights = heights(lines.saturating_sub(2));
    let mut drawn: Vec<Line> = ORDER.iter().flat_map(|&curve| frame.curve(curve, heights[curve as usize])).collect();
    drawn.push(frame.phases(now));
    drawn.push(frame.axis(now));
    filled(drawn, lines)
}

/// How many lines each curve gets of so many, by the curve's number: first what matters most, then more for those that gain by it.
fn heights(lines: usize) -> [usize; 8] {
    use Curve::{Attempted, Backlog, Goodput, InFlight, Offered, P50, P99, RetryShare};
    let first = [
        Goodput, Goodput, RetryShare, P99, Goodput, Attempted, Backlog, Goodput, Offered, Goodput, InFlight, P50, Goodput,
        Goodput,
    ];
    let then = [Goodput, RetryShare, Goodput, P99, Goodput, Attempted, Goodput, Backlog, Goodput, P50];
    let mut heights = [0; 8];
    for curve in first.into_iter().chain(then.into_iter().cycle()).take(lines.min(200)) {
        heights[curve as usize] += 1;
    }
    heights
}
