//! `summary.md`: a result in Markdown, for a job's summary, a merge request, a chat.
//!
//! Says what the verdict on a terminal says, in its words: the line, the sentence, the gates, the figures. What comes from a plan is text wherever it is shown
//! (see `escape`), nothing links anywhere, and the whole is bounded: far less than the 1 MiB that GitHub takes of a step.

mod compare;
mod escape;
mod run;
mod seeds;

pub use compare::of_comparison;
pub use run::of_run;
pub use seeds::of_seeds;

use super::layout::Style;
use super::result::{FindingResult, GateStatus, PlanRef, RunOutcome};
use escape::{cell, code, text};

/// Columns of a sentence.
const SENTENCE: usize = 600;
/// Columns of a cell.
const CELL: usize = 200;
/// Rows of a table; what is left out is counted.
const ROWS: usize = 100;

/// How the verdict's own words are laid out: in one line, whatever its length.
fn wide() -> Style {
    Style { width: SENTENCE, ..Style::default() }
}

/// The first line of a verdict as a heading: the outcome's sign before its word.
fn heading(outcome: RunOutcome, header: &str) -> String {
    let sign = match outcome {
        RunOutcome::Pass => "✓",
        RunOutcome::Fail => "✗",
        RunOutcome::Inconclusive => "?",
        RunOutcome::Aborted => "■",
    };
    // Two spaces part the outcome from the rest on a terminal.
    let said = header.split_once("  ").map_or(header.to_string(), |(outcome, rest)| format!("{outcome} · {rest}"));
    format!("### {sign} {}\n", text(&said, SENTENCE))
}

fn sign(status: GateStatus) -> &'static str {
    match status {
        GateStatus::Pass => "✓ pass",
        GateStatus::Fail => "✗ **fail**",
        GateStatus::Inconclusive => "? **unknown**",
    }
}

/// A table, its cells already escaped; none without rows.
fn table(head: &[&str], rows: &[Vec<String>]) -> Option<String> {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|name| name.to_string()).collect();
    let rule: Vec<String> = head.iter().map(|_| "---".to_string()).collect();
    let all = [line(&head), line(&rule)].into_iter().chain(rows.iter().take(ROWS).map(|row| line(row)));
    let more = rows.len().saturating_sub(ROWS);
    let more = if more > 0 { format!("\nand {more} more rows, see the report\n") } else { String::new() };
    (!rows.is_empty()).then(|| all.collect::<String>() + &more)
}

/// The gates, those that did not hold first.
fn findings(findings: &[FindingResult]) -> Option<String> {
    let mut sorted: Vec<&FindingResult> = findings.iter().collect();
    sorted.sort_by_key(|finding| urgency(finding.status));
    let row = |finding: &&FindingResult| {
        vec![
            sign(finding.status).to_string(),
            cell(&finding.gate, CELL),
            cell(&finding.wanted, CELL),
            if finding.value.is_some() { cell(&finding.observed, CELL) } else { text(&finding.observed, CELL) },
            line_cell(finding.line),
        ]
    };
    let rows: Vec<Vec<String>> = sorted.iter().map(row).collect();
    table(&["", "gate", "wanted", "observed", "line"], &rows)
}

fn urgency(status: GateStatus) -> u8 {
    match status {
        GateStatus::Fail => 0,
        GateStatus::Inconclusive => 1,
        GateStatus::Pass => 2,
    }
}

fn line_cell(line: Option<u32>) -> String {
    line.map_or_else(String::new, |line| line.to_string())
}

/// What it was made from: of the plan's hash enough to tell two plans apart.
fn foot(plan: &PlanRef, engine: &str, stormwake: &str) -> String {
    let hash: String = plan.sha256.chars().take(12).collect();
    format!("plan {} ({}), {engine}, stormwake {}\n", code(&plan.path, CELL), code(&hash, CELL), text(stormwake, 40))
}

/// Parts with an empty line between them.
fn joined(parts: impl IntoIterator<Item = String>) -> Vec<u8> {
    parts.into_iter().collect::<Vec<_>>().join("\n").into_bytes()
}

#[cfg(test)]
mod tests;
