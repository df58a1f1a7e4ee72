//! One run in Markdown.

use super::escape::{code, text};
use super::{CELL, SENTENCE, findings, foot, heading, joined, table, wide};
use crate::report::layout::{NONE, count, millis, percent, rate, total};
use crate::report::result::{Engine, RunResult, Stretch, WindowResult};
use crate::report::text::facts::facts_of;
use crate::report::text::gates::unsaid;
use crate::report::text::header;

/// Reasons that are listed; the others are counted.
const REASONS: usize = 10;

/// The summary of a run.
pub fn of_run(result: &RunResult) -> Vec<u8> {
    let mut parts = vec![heading(result.outcome, &header(result, &wide()).join(" "))];
    let sentence = result.recovery.as_ref().map(|recovery| recovery.sentence.as_str()).filter(|sentence| !sentence.is_empty());
    parts.extend(sentence.map(|sentence| format!("{}\n", text(sentence, SENTENCE))));
    parts.extend(reasons(result));
    parts.extend(who(result));
    parts.extend(findings(&result.findings));
    parts.extend(figures(result));
    let facts = facts_of(result).into_iter().map(|(label, said)| vec![text(&label, CELL), text(&said, CELL)]);
    parts.extend(table(&["the whole run", ""], &facts.collect::<Vec<_>>()));
    let engine = match result.engine {
        Engine::Live => "on real sockets",
        Engine::Sim => "in virtual time",
    };
    parts.push(foot(&result.plan, engine, &result.stormwake));
    joined(parts)
}

/// Why, as far as neither the sentence nor a gate says it.
fn reasons(result: &RunResult) -> Option<String> {
    let all: Vec<&String> = unsaid(result).collect();
    let mut lines: Vec<String> = all.iter().take(REASONS).map(|reason| format!("- {}\n", text(reason, SENTENCE))).collect();
    let more = all.len().saturating_sub(REASONS);
    lines.extend((more > 0).then(|| format!("- and {more} more\n")));
    (!lines.is_empty()).then(|| lines.concat())
}

/// Who ran it, and why.
fn who(result: &RunResult) -> Option<String> {
    let operator = result.operator.as_ref().map(|operator| format!("run by {}", code(operator, CELL)));
    let note = result.note.as_ref().map(|note| text(note, SENTENCE));
    let said: Vec<String> = operator.into_iter().chain(note).collect();
    (!said.is_empty()).then(|| said.join(": ") + "\n")
}

/// A stretch of the run in figures.
struct Column {
    name: String,
    goodput: Option<f64>,
    offered: Option<f64>,
    attempts: Option<f64>,
    retry_share: Option<f64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    backlog: Option<u64>,
}

/// The figures before, during and after the faults, side by side.
fn figures(result: &RunResult) -> Option<String> {
    let columns = columns(result);
    let head: Vec<&str> = std::iter::once("").chain(columns.iter().map(|column| column.name.as_str())).collect();
    let row = |name: &str, shown: &dyn Fn(&Column) -> String| {
        std::iter::once(name.to_string()).chain(columns.iter().map(shown)).collect::<Vec<String>>()
    };
    let rows = [
        row("goodput", &|column| rate(column.goodput)),
        row("offered", &|column| rate(column.offered)),
        row("attempts", &|column| rate(column.attempts)),
        row("retry share", &|column| percent(column.retry_share)),
        row("p50", &|column| millis(column.p50_ms)),
        row("p99", &|column| millis(column.p99_ms)),
        row("largest backlog", &|column| column.backlog.map_or_else(|| NONE.into(), count)),
    ];
    if columns.is_empty() { None } else { table(&head, &rows) }
}

/// The baseline stands for what was before, where there is one.
fn columns(result: &RunResult) -> Vec<Column> {
    let baseline = result.baseline.as_ref().map(|of| Column {
        name: "baseline".into(),
        goodput: of.goodput,
        offered: of.offered,
        attempts: of.attempts,
        retry_share: of.retry_share,
        p50_ms: of.p50_ms,
        p99_ms: of.p99_ms,
        backlog: of.backlog.map(|backlog| backlog as u64),
    });
    let known = baseline.is_some();
    let others = result.stretches.iter().filter(|stretch| !(known && stretch.name == "before"));
    baseline.into_iter().chain(others.map(|stretch| column(stretch, result))).collect()
}

/// Of the windows that begin in a stretch, for as long as they lasted.
fn column(stretch: &Stretch, result: &RunResult) -> Column {
    let windows: Vec<&WindowResult> =
        result.windows.iter().filter(|window| stretch.from_ms <= window.t_ms && window.t_ms < stretch.to_ms).collect();
    let lasted = |window: &&WindowResult| result.window_ms.min(result.duration_ms.saturating_sub(window.t_ms));
    let seconds = total(windows.iter().map(lasted)) as f64 / 1e3;
    let sum = |of: fn(&WindowResult) -> u64| total(windows.iter().map(|window| of(window))) as f64;
    let per_second = |count: f64| (seconds > 0.0).then(|| count / seconds);
    let attempts = sum(|window| window.attempts);
    Column {
        name: text(&stretch.name, CELL),
        goodput: per_second(sum(|window| window.succeeded)),
        offered: per_second(sum(|window| window.offered)),
        attempts: per_second(attempts),
        retry_share: (attempts > 0.0).then(|| sum(|window| window.retries) / attempts),
        p50_ms: stretch.latency.p50_ms,
        p99_ms: stretch.latency.p99_ms,
        backlog: windows.iter().map(|window| window.backlog).max(),
    }
}
