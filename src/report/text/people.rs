//! What people said and did, as lines of the text verdict: who ran it and why, which faults they ended by hand, what they noted.

use super::lines::{label_line, parts_lines};
use crate::report::layout::{Style, millis};
use crate::report::result::{FaultResult, NoteResult, RunResult};

/// The lines; none of a run that nobody had anything to say of.
pub(super) fn people(result: &RunResult, style: &Style, tight: bool) -> Vec<String> {
    let said = [result.operator.as_deref(), result.note.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let label = if result.operator.is_some() { "operator" } else { "why" };
    let mut lines: Vec<String> = (!said.is_empty()).then(|| label_line(label, &said, style)).into_iter().collect();
    let at = |ms: u64| millis(Some(ms as f64));
    let ended = |fault: &FaultResult| format!("{} ended at {}", fault.name, at(fault.to_ms));
    let by_hand: Vec<String> = result.faults.iter().filter(|fault| fault.ended_early).map(ended).collect();
    if !by_hand.is_empty() {
        lines.extend(parts_lines("by hand", &by_hand, 1, style));
    }
    let noted = |note: &NoteResult| format!("{} {}", at(note.t_ms), note.text);
    let notes: Vec<String> = result.notes.iter().map(noted).collect();
    if !notes.is_empty() {
        lines.extend(parts_lines("notes", &notes, if tight { 1 } else { 2 }, style));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_people_said_and_did_is_told_and_nothing_where_they_did_not() {
        let style = Style::default();
        let mut result = sample::pass();
        assert!(people(&result, &style, false).is_empty());
        result.note = Some("monthly game day".into());
        assert_eq!(people(&result, &style, false), ["why         monthly game day"]);
        result.operator = Some("ada".into());
        result.faults[0].ended_early = true;
        (result.faults[0].name, result.faults[0].to_ms) = ("outage".into(), 17_209);
        let note = |t_ms, text: &str| NoteResult { t_ms, text: text.into() };
        result.notes = vec![note(16_368, "pager fired"), note(61_000, "it\u{1b}[2J is \u{202e}over")];
        let wanted = [
            "operator    ada: monthly game day",
            "by hand     outage ended at 17.2s",
            "notes       16.4s pager fired  1m01s it?[2J is ?over",
        ];
        assert_eq!(people(&result, &style, false), wanted);
    }
}
