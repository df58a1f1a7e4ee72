//! The gates as lines. A gate that failed, or of which nothing is known, is told whole, however long its name; of many that held, how many.

use super::lines::{LABEL, label_line};
use crate::report::layout::{Colour, Style, columns};
use crate::report::result::{FindingResult, GateStatus, RunResult};

/// Gates that held have a line each, up to so many.
const LISTED: usize = 12;
/// The most lines of a gate's name, and of what was seen of it.
const LONGEST: usize = 10;
/// The most lines of a reason.
const REASON: usize = 6;

/// Those that failed, those without evidence, those that held.
pub(super) fn gates(result: &RunResult, style: &Style) -> Vec<String> {
    let of = |status| result.findings.iter().filter(move |finding| finding.status == status);
    let lines = |finding: &FindingResult| finding_lines(finding, LABEL, style);
    let urgent = of(GateStatus::Fail).chain(of(GateStatus::Inconclusive)).flat_map(lines);
    let held = of(GateStatus::Pass).count();
    let counted = || vec![signed(GateStatus::Pass, LABEL, style) + &held_words(held, "result.json")];
    let held = if held > LISTED { counted() } else { of(GateStatus::Pass).flat_map(lines).collect() };
    urgent.chain(held).collect()
}

/// `27 gates, each in result.json`.
pub(in crate::report) fn held_words(held: usize, file: &str) -> String {
    format!("{held} gates, each in {file}")
}

/// Whether so many gates that held are only counted.
pub(in crate::report) fn are_counted(held: usize) -> bool {
    held > LISTED
}

/// A sign and a word for what became of a gate.
pub(in crate::report) fn signed(status: GateStatus, label: usize, style: &Style) -> String {
    let (sign, plain, word, colour) = match status {
        GateStatus::Pass => ("✓", "+", "pass", Colour::Green),
        GateStatus::Fail => ("✗", "x", "fail", Colour::Red),
        GateStatus::Inconclusive => ("?", "?", "unknown", Colour::Yellow),
    };
    style.paint(colour, &style.pad(&format!("{} {word}", if style.ascii { plain } else { sign }), label.min(style.width)))
}

/// One finding: what became of it, the gate, what was seen, where it stands.
pub(in crate::report) fn finding_lines(finding: &FindingResult, label: usize, style: &Style) -> Vec<String> {
    let observed = if finding.value.is_some() { "got " } else { "" }.to_string() + &finding.observed;
    // The gate names its bound; where that is a multiple of the baseline, `wanted` adds what it came to.
    let bound = finding.wanted.find('(').map_or(String::new(), |at| format!(" {}", &finding.wanted[at..]));
    let lines = |gate: &str| gate_lines(finding.status, gate, &observed, finding.line, label, style);
    let whole = lines(&(finding.gate.clone() + &bound));
    // What a bound came to matters less where it was kept.
    if whole.len() > 1 && finding.status == GateStatus::Pass { lines(&finding.gate) } else { whole }
}

/// A gate and what was seen of it in one line, or, where that is too short, beneath each other.
pub(in crate::report) fn gate_lines(
    status: GateStatus,
    gate: &str,
    seen: &str,
    line: Option<u32>,
    label: usize,
    style: &Style,
) -> Vec<String> {
    let sign = signed(status, label, style);
    let room = style.width.saturating_sub(label);
    let line = line.map_or(String::new(), |line| format!("  line {line}"));
    let (gate, seen) = (style.clean(gate), style.clean(seen));
    let whole = format!("{gate}  {seen}{line}");
    if columns(&whole) <= room {
        return vec![sign + &whole];
    }
    let mut lines = style.wrap(&gate, room, LONGEST);
    let mut below = style.wrap(&seen, room.saturating_sub(2), LONGEST);
    let last = below.last().map_or(0, |last| columns(last));
    match below.last_mut() {
        Some(last_line) if last + columns(&line) + 2 <= room => last_line.push_str(&line),
        _ => below.push(line.trim().to_string()),
    }
    lines.extend(below.into_iter().filter(|line| !line.is_empty()).map(|line| format!("  {line}")));
    let blank = " ".repeat(label.min(style.width));
    lines
        .iter()
        .enumerate()
        .map(|(n, line)| format!("{}{}", if n == 0 { &sign } else { &blank }, style.fit(line, room)))
        .collect()
}

/// The reasons that neither the sentence nor a gate gives already.
pub(in crate::report) fn unsaid(result: &RunResult) -> impl Iterator<Item = &String> {
    let said = result.recovery.as_ref().map(|recovery| recovery.sentence.as_str());
    let by_sentence = move |reason: &str| said.is_some_and(|said| !said.is_empty() && reason.ends_with(said));
    let by_gate = |reason: &str| result.findings.iter().any(|finding| reason.starts_with(&format!("{}: ", finding.gate)));
    result.reasons.iter().filter(move |reason| !by_sentence(reason) && !by_gate(reason))
}

/// Why the outcome is what it is, as far as neither the sentence above nor the gates say it.
pub(super) fn why(result: &RunResult, style: &Style) -> Vec<String> {
    let mut reasons: Vec<&String> = unsaid(result).collect();
    let more = reasons.len().saturating_sub(super::REASONS);
    reasons.truncate(super::REASONS);
    let mut lines: Vec<String> =
        reasons.into_iter().flat_map(|reason| super::lines::wrapped("because", reason, REASON, style)).collect();
    lines.extend((more > 0).then(|| label_line("", &format!("and {more} reasons more, see result.json"), style)));
    lines
}
