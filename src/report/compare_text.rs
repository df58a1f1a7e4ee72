//! A comparison of policies as a table: each in figures, what each changes against the reference, and the gates.
//!
//! Figures are rows and policies are columns, as many abreast as the width holds; the rest follow in further blocks, the reference first in each.

use super::compare::{CompareResult, Difference, EffectResult, PolicyResult};
use super::layout::{NONE, Style, number};
use super::result::{GateStatus, RunOutcome};
use super::seeds_text::{LABEL, class_counts, interrupted, interval, labelled, shown};
use super::text::gates::finding_lines;
use super::text::headline::{Ended, Headline, gates_in_words};
use super::text::report_line;
use crate::metrics::{Figure, Unit};

/// Columns of a policy.
const COLUMN: usize = 22;
/// Columns of an effect, at most: its numbers are longer, and there is none for the reference.
const EFFECT: usize = 40;
/// The figures that are shown, in this order.
pub(super) const SHOWN: [Figure; 6] =
    [Figure::RecoveryTime, Figure::Amplification, Figure::PeakAttempts, Figure::RetryShare, Figure::WastedWork, Figure::Lost];

/// The comparison as text of lines of at most `style.width` columns. `report` is where the report is.
pub fn table(result: &CompareResult, style: &Style, report: Option<&str>) -> String {
    let mut lines = header(result, style);
    lines.push(String::new());
    let Some((reference, candidates)) = result.policies.split_first() else { return finished(lines, report, style) };
    let abreast = (style.width.saturating_sub(LABEL) / COLUMN).saturating_sub(1).max(1);
    for block in candidates.chunks(abreast) {
        let policies: Vec<&PolicyResult> = std::iter::once(reference).chain(block).collect();
        lines.extend(policies_block(&policies, result, style));
        lines.push(String::new());
        lines.extend(effects_block(block, style));
        lines.push(String::new());
    }
    lines.extend(confidence(candidates, style));
    if !result.gates.is_empty() {
        lines.extend(result.gates.iter().flat_map(|gate| finding_lines(gate, LABEL, style)));
    }
    finished(lines, report, style)
}

fn finished(mut lines: Vec<String>, report: Option<&str>, style: &Style) -> String {
    lines.extend(report.map(|path| report_line(path, LABEL, style)));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The first line, and others for what does not fit: outcome, plan, fleet, exit code.
pub(super) fn header(result: &CompareResult, style: &Style) -> Vec<String> {
    let runs = |policy: &PolicyResult| policy.seeds.len();
    let said = match (result.outcome, result.gates.is_empty()) {
        (RunOutcome::Pass, true) => "policies compared".to_string(),
        (RunOutcome::Inconclusive, true) => "policies compared, some runs without evidence".to_string(),
        _ => "policies compared and judged".to_string(),
    };
    let done = result.policies.iter().map(runs).sum();
    let planned = result.planned * result.policies.len() as u64;
    let stopped = result.stopped.as_ref().map(|stopped| interrupted(stopped, done, planned, "runs"));
    let of = |status| result.gates.iter().filter(|gate| gate.status == status).count();
    let gates = gates_in_words(result.gates.len(), of(GateStatus::Fail), of(GateStatus::Inconclusive));
    let why = if result.outcome == RunOutcome::Pass { Vec::new() } else { stopped.into_iter().chain(gates).collect() };
    let (title, run) = (result.plan.name.clone(), vec![format!("fleet {}", result.fleet)]);
    Headline { why, said: vec![said], title, run }.lines(result.outcome, Ended::of(result.exit_code, result.advisory), style)
}

/// A label and cells of so many columns, a space behind each; the line is cut at the width.
fn row(label: &str, cells: &[String], width: usize, style: &Style) -> String {
    let cells: String = cells.iter().map(|cell| format!("{} ", style.pad(cell, width - 1))).collect();
    style.fit((style.pad(label, LABEL) + &cells).trim_end(), style.width)
}

fn policies_block(policies: &[&PolicyResult], result: &CompareResult, style: &Style) -> Vec<String> {
    let row = |label: &str, cell: &dyn Fn(&PolicyResult) -> String| {
        let cells: Vec<String> = policies.iter().map(|policy| cell(policy)).collect();
        row(label, &cells, COLUMN, style)
    };
    let mut lines = vec![
        row("policy", &|policy| policy.name.clone()),
        row("", &|policy| if policy.reference { "(reference)".into() } else { String::new() }),
        row("recovered", &|policy| format!("{} of {}", policy.recovered.runs, policy.recovered.of)),
        row("95% interval", &bounds),
        row("classes", &|policy| class_counts(&policy.classes)),
    ];
    if result.plan.expect.is_some() || policies.iter().any(|policy| !policy.gates.is_empty()) {
        lines.push(row("plan passed", &|policy| format!("{} of {}", policy.passed, policy.seeds.len())));
    }
    lines.extend(SHOWN.map(|figure| row(&labelled(figure.word()), &|policy| cell(policy, figure))));
    lines
}

/// Between which bounds the share of its runs that recover lies.
pub(super) fn bounds(policy: &PolicyResult) -> String {
    let text = interval(&policy.recovered);
    text.split_once("interval ").map_or(text.clone(), |(_, bounds)| bounds.to_string())
}

/// A value in few characters.
pub(super) fn short(figure: Figure, value: Option<f64>) -> String {
    match (figure.unit(), value) {
        (Unit::Count, Some(n)) => number(n),
        _ => shown(figure.word(), value),
    }
}

/// `8.2s (7.1s-9s)`, the median and the range.
pub(super) fn cell(policy: &PolicyResult, figure: Figure) -> String {
    let spread = policy.figures.iter().find(|spread| spread.figure == figure.word() && spread.runs > 0);
    let Some(spread) = spread else { return NONE.into() };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(|value| short(figure, value));
    if min == max { median } else { format!("{median} ({}-{max})", min.trim_end_matches("/s")) }
}

fn effects_block(candidates: &[PolicyResult], style: &Style) -> Vec<String> {
    let width = (style.width.saturating_sub(LABEL) / candidates.len().max(1)).clamp(COLUMN, EFFECT);
    let row = |label: &str, cell: &dyn Fn(&PolicyResult) -> String| {
        let cells: Vec<String> = candidates.iter().map(cell).collect();
        row(label, &cells, width, style)
    };
    let mut lines = vec![row("against it", &|policy| policy.name.clone())];
    lines.extend(SHOWN.map(|figure| row(&labelled(figure.word()), &|policy| effect_cell(policy, figure))));
    lines
}

/// What a candidate changes in a figure; that no difference is shown, where none is.
pub(super) fn effect_cell(policy: &PolicyResult, figure: Figure) -> String {
    let Some(effect) = policy.effects.iter().find(|effect| effect.figure == figure.word()) else { return NONE.into() };
    match effect.difference {
        Difference::Unknown => NONE.into(),
        Difference::None => "no difference shown".into(),
        Difference::Less | Difference::More => changed(effect, figure),
    }
}

/// `-1.8x (-1.9x to -1.7x)`.
pub(super) fn changed(effect: &EffectResult, figure: Figure) -> String {
    let never = if effect.difference == Difference::Less { "ends; the reference never" } else { "never; the reference ends" };
    let signed = |value: Option<f64>| match value {
        None => never.to_string(),
        Some(value) => format!("{}{}", if value < 0.0 { "-" } else { "+" }, short(figure, Some(value.abs()))),
    };
    let (median, low, high) = (signed(effect.median), signed(effect.low), signed(effect.high));
    match (effect.median, effect.low, effect.high) {
        (None, ..) => never.to_string(),
        _ if low == high => median,
        (_, Some(_), Some(_)) => format!("{median} ({low} to {high})"),
        _ => format!("{median}, or {never}"),
    }
}

/// What the ranges of the effects are worth.
fn confidence(candidates: &[PolicyResult], style: &Style) -> Vec<String> {
    let lines = worth(candidates).map(|text| style.wrap(&text, style.width, 3));
    lines.into_iter().flat_map(|lines| lines.into_iter().chain([String::new()])).collect()
}

/// The same in words; none without effects.
pub(super) fn worth(candidates: &[PolicyResult]) -> Option<String> {
    let effects = candidates.iter().flat_map(|policy| &policy.effects);
    let known = effects.filter(|effect| SHOWN.iter().any(|figure| figure.word() == effect.figure));
    let least = known.filter_map(|effect| effect.confidence).min_by(f64::total_cmp)?;
    let percent = (least * 1000.0).floor() / 10.0;
    let few = if least < crate::stats::CONFIDENCE { "; it takes 6 seeds with evidence for 95%" } else { "" };
    let points = SHOWN.iter().any(|figure| figure.unit() == Unit::Share);
    let points = if points { "; of shares in points" } else { "" };
    Some(format!("Medians of paired differences, and where the true one lies with {percent}%{points}{few}."))
}

#[cfg(test)]
mod tests {
    use super::super::layout::columns;
    use super::super::sample;
    use super::*;

    const REPORT: &str = "reports/quickstart/20261130T065512Z-seed1/";

    #[test]
    fn comparisons_look_like_this() {
        let result = sample::comparison();
        sample::golden("compare.txt", &table(&result, &Style::default(), Some(REPORT)));
        sample::golden("compare-few.txt", &table(&sample::comparison_of_few(), &Style { width: 100, ..Style::default() }, None));
    }

    #[test]
    fn a_table_fits_its_width() {
        let mut result = sample::comparison();
        let more: Vec<PolicyResult> = (0..5).map(|_| result.policies[2].clone()).collect();
        result.policies.extend(more);
        for width in [10, 30, 57, 60, 80, 133, 300] {
            let text = table(&result, &Style { width, ..Style::default() }, Some(REPORT));
            let widest = text.lines().filter(|line| !line.starts_with("report")).map(columns).max().unwrap();
            assert!(widest <= width.max(14), "{width}: {widest}\n{text}");
            let named =
                text.lines().filter(|line| line.starts_with("policy")).map(|line| line.matches("backoff").count()).sum::<usize>();
            assert!(width < 57 || named == 6, "{width}: every candidate has its column\n{text}");
        }
    }
}
