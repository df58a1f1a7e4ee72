//! The lines of the live view that are text: head, figures, faults, log, keys.

use super::keys::{Desk, Mode};
use super::series::Curve;
use super::view::{Fault, Stage, View, Weight};
use crate::report::layout::{Style as Layout, clock, columns, count, millis, number, percent, rate};
use crate::time::{Span, Timestamp};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Part};

/// How a part of a line looks. Whatever it says, words say it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Dim,
    Strong,
    Warning,
    Goodput,
    Baseline,
    Fault,
    Reversed,
}

/// Parts as a line; without colours only the weight of letters differs.
pub(super) fn spans(parts: Vec<(Tone, String)>, colour: bool) -> Line<'static> {
    Line::from_iter(parts.into_iter().map(|(tone, text)| Part::styled(text, look(tone, colour))))
}

fn look(tone: Tone, colour: bool) -> Style {
    let plain = Style::new();
    let (look, hue) = match tone {
        Tone::Plain => (plain, None),
        Tone::Dim => (plain.add_modifier(Modifier::DIM), None),
        Tone::Strong => (plain.add_modifier(Modifier::BOLD), None),
        Tone::Warning => (plain.add_modifier(Modifier::BOLD), Some(Color::Yellow)),
        Tone::Goodput => (plain, Some(Color::Cyan)),
        Tone::Baseline => (plain, Some(Color::Yellow)),
        Tone::Fault => (plain, Some(Color::Magenta)),
        Tone::Reversed => (plain.add_modifier(Modifier::REVERSED), None),
    };
    hue.filter(|_| colour).map_or(look, |hue| look.fg(hue))
}

/// Plan, seed and operator; how far the run is.
pub(super) fn head(view: &View, width: usize, now: Timestamp) -> Line<'static> {
    let style = &view.style;
    let done = (now.as_secs_f64() / view.length.as_secs_f64().max(1e-9)).min(1.0);
    let cells = (width / 6).clamp(4, 30);
    let full = (done * cells as f64) as usize;
    let (on, off) = if style.ascii { ("#", ".") } else { ("█", "░") };
    let bar = format!("{}{}", on.repeat(full), off.repeat(cells - full));
    let elapsed = Span(now.0).min(view.length).0 / 1_000_000_000;
    let right = format!("{} of {} {bar}", clock(elapsed), clock(view.length.0 / 1_000_000_000));
    let room = width.saturating_sub(columns(&right) + 1);
    let seed = format!("  seed {}", view.seed);
    let name = style.fit(&view.name, room.saturating_sub(columns(&seed)).clamp(room.min(4), 40));
    let mut left = vec![(Tone::Strong, name)];
    let said = [
        Some(seed),
        view.facts.operator.as_ref().map(|by| format!("  by {by}")),
        view.facts.note.as_ref().map(|why| format!("  {why}")),
    ];
    let mut used = columns(&left[0].1);
    for part in said.into_iter().flatten() {
        let part = style.fit(&part, room.saturating_sub(used));
        used += columns(&part);
        left.push((Tone::Dim, part));
    }
    left.push((Tone::Plain, " ".repeat(width.saturating_sub(used + columns(&right)))));
    left.push((Tone::Plain, right));
    spans(left, style.colour)
}

/// The phase, and the figures of the last window: as many as fit.
pub(super) fn figures(view: &View, width: usize) -> Line<'static> {
    let style = &view.style;
    let now = |curve| view.series.now(curve);
    let mut parts = vec![phase(view, (width / 3).clamp(8, 40))];
    let mut used = columns(&parts[0].1);
    let goodput = format!("goodput {} of {}", rate(now(Curve::Goodput)), rate(now(Curve::Offered)));
    let all = [
        (Tone::Goodput, goodput),
        (Tone::Plain, format!("retries {}", percent(now(Curve::RetryShare)))),
        (Tone::Plain, format!("p99 {}", millis(now(Curve::P99)))),
        (Tone::Plain, format!("backlog {}", now(Curve::Backlog).map_or_else(|| "n/a".into(), number))),
        (Tone::Baseline, view.baseline().map(|x| format!("baseline {}", rate(Some(x)))).unwrap_or_default()),
        (Tone::Plain, format!("in flight {}", now(Curve::InFlight).map_or_else(|| "n/a".into(), number))),
        (Tone::Plain, format!("attempted {}", rate(now(Curve::Attempted)))),
    ];
    for (tone, text) in all.into_iter().filter(|(_, text)| !text.is_empty()) {
        if used + 2 + columns(&text) <= width {
            used += 2 + columns(&text);
            parts.extend([(Tone::Plain, "  ".to_string()), (tone, text)]);
        }
    }
    spans(parts, style.colour)
}

/// What the run is at.
fn phase(view: &View, room: usize) -> (Tone, String) {
    let fit = |text: &str| view.style.fit(text, room);
    match view.stopping() {
        _ if view.is_over() => (Tone::Strong, fit("OVER")),
        Some(reason) => (Tone::Warning, fit(&format!("STOPPING: {reason}"))),
        None if view.series.now(Curve::Offered).is_none() => (Tone::Strong, fit("not a window yet")),
        None => (Tone::Strong, fit(&view.phase)),
    }
}

/// The faults, from the first that is shown on: as many as there are lines.
pub(super) fn faults(view: &View, desk: &Desk, width: usize, lines: usize, now: Timestamp) -> Vec<Line<'static>> {
    let all = view.faults();
    if all.is_empty() {
        return vec![spans(vec![(Tone::Dim, view.style.fit("  the plan has no fault", width))], view.style.colour)];
    }
    let selected = desk.selected.min(all.len() - 1);
    let first = (selected + 1).saturating_sub(lines);
    let row = |(index, fault)| fault_row(view, fault, index == selected, width, now);
    let mut rows: Vec<_> = all.iter().enumerate().skip(first).take(lines).map(row).collect();
    let hidden = all.len() - rows.len();
    if let (true, Some(last)) = (hidden > 0, rows.last_mut()) {
        last.push_span(Part::styled(format!("  ({hidden} more)"), look(Tone::Dim, view.style.colour)));
    }
    rows
}

fn fault_row(view: &View, fault: &Fault, selected: bool, width: usize, now: Timestamp) -> Line<'static> {
    let style = &view.style;
    let mark = match (selected, style.ascii) {
        (true, true) => "> ",
        (true, false) => "▸ ",
        (false, _) => "  ",
    };
    let name = style.pad(&fault.name, (width / 5).clamp(8, 30));
    let (word, tone, rest) = state(view, fault, now);
    let kind = if width >= 60 { style.pad(fault.kind, 14) } else { String::new() };
    let rest = style.fit(&rest, width.saturating_sub(2 + columns(&name) + columns(&kind) + 11));
    let named = if selected { Tone::Strong } else { Tone::Plain };
    let parts = vec![(named, format!("{mark}{name} ")), (Tone::Dim, kind), (tone, format!("{word:<8}")), (Tone::Plain, rest)];
    spans(parts, style.colour)
}

/// The state of a fault in a word, and what there is to say of it.
fn state(view: &View, fault: &Fault, now: Timestamp) -> (&'static str, Tone, String) {
    let lasts = format!("for {}", shown(fault.to.since(fault.from)));
    match fault.stage {
        Stage::Ahead if now < fault.from => ("ahead", Tone::Dim, format!("begins in {}, {lasts}", left(fault.from, now))),
        Stage::Ahead if now < fault.to => ("due", Tone::Warning, "has not begun".into()),
        Stage::Ahead => ("missed", Tone::Warning, "did not take place".into()),
        Stage::Acting if now >= fault.to => ("ACTS", Tone::Fault, "is due to end".into()),
        Stage::Acting if view.rests(fault, now) => ("RESTS", Tone::Fault, format!("ends in {}", left(fault.to, now))),
        Stage::Acting => ("ACTS", Tone::Fault, format!("ends in {}", left(fault.to, now))),
        Stage::Ending => ("ENDING", Tone::Warning, "ended by hand, and not gone yet".into()),
        Stage::Over { at, touched, early } => {
            let by_hand = if early { " by hand" } else { "" };
            ("over", Tone::Plain, format!("ended{by_hand} at {}, touched {}", clock(at.0 / 1_000_000_000), count(touched)))
        }
    }
}

/// Whole seconds to a moment, rounded up: a countdown ends at 1.
fn left(to: Timestamp, now: Timestamp) -> String {
    clock(to.since(now).0.div_ceil(1_000_000_000))
}

fn shown(span: Span) -> String {
    millis(Some(span.as_secs_f64() * 1e3))
}

/// The last lines of the log.
pub(super) fn log(view: &View, width: usize, lines: usize) -> Vec<Line<'static>> {
    let skipped = view.lines.len().saturating_sub(lines);
    let line = |line: &super::view::Line| {
        let tone = match line.weight {
            Weight::Plain => Tone::Plain,
            Weight::Strong => Tone::Strong,
            Weight::Warning => Tone::Warning,
        };
        let at = format!("{:>6}  ", clock(line.at.0 / 1_000_000_000));
        let text = view.style.fit(&line.text, width.saturating_sub(columns(&at)));
        spans(vec![(Tone::Dim, at), (tone, text)], view.style.colour)
    };
    view.lines.iter().skip(skipped).map(line).collect()
}

/// What the keys do now, a question, a note that is written, or why a key did nothing.
pub(super) fn keys(view: &View, desk: &Desk, width: usize) -> Line<'static> {
    let style = &view.style;
    let asked = |text: String| spans(vec![(Tone::Reversed, style.pad(&text, width))], style.colour);
    match &desk.mode {
        Mode::Writing(editor) => writing(editor.halves(), style, width),
        Mode::EndFault(row) => {
            let name = view.faults().get(*row).map_or("", |fault| &fault.name);
            asked(format!(" end {} now?  y yes  n no", style.fit(name, width.saturating_sub(30))))
        }
        Mode::Stop => asked(" remove the faults, and stop the run?  y yes  n no".into()),
        Mode::EndAtOnce => asked(" end at once, without a report?  y yes  n no".into()),
        Mode::Help => asked(" any key goes back".into()),
        Mode::Watching => match &desk.said {
            Some(said) => asked(format!(" {said}")),
            None => help_line(view, style, width),
        },
    }
}

fn help_line(view: &View, style: &Layout, width: usize) -> Line<'static> {
    let stop = if view.stopping().is_some() { "end at once" } else { "stop" };
    let select = if style.ascii { "up/down" } else { "↑↓" };
    let all = [("e", "end fault"), ("n", "note"), ("q", stop), ("?", "help"), (select, "select"), ("z", "near")];
    let mut parts = Vec::new();
    let mut used = 0;
    for (key, what) in all {
        let long = columns(key) + columns(what) + 4;
        if used + long <= width {
            used += long;
            parts.extend([(Tone::Strong, format!(" {key}")), (Tone::Dim, format!(" {what}  "))]);
        }
    }
    spans(parts, style.colour)
}

/// The note, moved so far that the cursor is seen.
fn writing((before, after): (String, String), style: &Layout, width: usize) -> Line<'static> {
    const LABEL: &str = " note: ";
    let room = width.saturating_sub(columns(LABEL) + 1);
    let before = style.clean(&before);
    let mut shown: &str = &before;
    while columns(shown) >= room.max(1) {
        let mut rest = shown.chars();
        rest.next();
        shown = rest.as_str();
    }
    let after = style.clean(&after);
    let mut behind = after.chars();
    let cursor = behind.next().map_or_else(|| " ".to_string(), String::from);
    let left = room.saturating_sub(columns(shown) + columns(&cursor));
    let hint = if after.is_empty() && left > 36 { "   Enter keeps it, Esc does not" } else { "" };
    let behind = format!("{}{hint}", style.fit(behind.as_str(), left));
    let parts =
        vec![(Tone::Strong, LABEL.to_string()), (Tone::Plain, shown.to_string()), (Tone::Reversed, cursor), (Tone::Dim, behind)];
    spans(parts, style.colour)
}

/// What the keys and the marks mean.
pub(super) fn help(style: &Layout, width: usize, lines: usize) -> Vec<Line<'static>> {
    let all = [
        "e        end the selected fault now; later steps keep their times",
        "n        keep a note with the run, for its events and its report",
        "q        remove the faults, stop, write the report; again: end at once",
        "up down  select a fault        z  the last two minutes, or the whole run",
        "Ctrl-C   as without the view: the first stops, the second ends at once",
        "curves   the figure beside each is its highest; goodput is on offered's scale",
        "         a dashed line is the baseline's goodput; a dot is no evidence",
    ];
    all.iter().take(lines).map(|text| spans(vec![(Tone::Plain, style.fit(&format!(" {text}"), width))], style.colour)).collect()
}
