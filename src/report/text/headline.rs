//! The first line of a screen: how it ended, why it did not pass, what became of the target, which run it was, and the exit code.
//!
//! What decides comes first. Class, expectation and gates are told with the same words whatever the outcome: `STUCK`, `STUCK, as expected`,
//! `RECOVERED, expected STUCK`, `recovery unknown`, `2 of 5 gates failed`.

use crate::report::layout::{Colour, Style, columns, millis};
use crate::report::result::{FindingResult, GateStatus, RecoveryClass, RunOutcome, RunResult, StoppedBy};
use crate::report::seeds_text::class_word;

/// Columns that a title is worth on the first line.
const TITLE: usize = 8;
/// The most lines of what does not fit the first.
const MORE: usize = 3;

/// What the process ends with, and whether the outcome has a say in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Ended {
    exit_code: u8,
    /// Whether it is 0 although the outcome is no pass.
    advisory: bool,
}

impl Ended {
    pub(in crate::report) fn of(exit_code: u8, advisory: bool) -> Self {
        Self { exit_code, advisory }
    }
}

/// What a headline says, most important first.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Headline {
    /// Why it did not pass; empty where it did.
    pub(in crate::report) why: Vec<String>,
    /// What else came out.
    pub(in crate::report) said: Vec<String>,
    /// What the plan is called.
    pub(in crate::report) title: String,
    /// Which run of it.
    pub(in crate::report) run: Vec<String>,
}

impl Headline {
    /// The headline of one run.
    pub(super) fn of(result: &RunResult) -> Self {
        let (why, said) = reasons(result);
        let scale = result.plan.time_scale.as_ref().map(|scale| format!("time scale {scale}"));
        let run = std::iter::once(format!("seed {}", result.seed)).chain(scale).collect();
        Self { why, said, title: result.plan.name.clone(), run }
    }

    /// One line, with the exit code at its end; what does not fit follows on others. The title gives way first, in its middle.
    pub(in crate::report) fn lines(&self, outcome: RunOutcome, ended: Ended, style: &Style) -> Vec<String> {
        let (word, colour) = match outcome {
            RunOutcome::Pass => ("PASS", Colour::Green),
            RunOutcome::Fail => ("FAIL", Colour::Red),
            RunOutcome::Inconclusive => ("INCONCLUSIVE", Colour::Yellow),
            RunOutcome::Aborted => ("ABORTED", Colour::Yellow),
        };
        let dot = if style.ascii { " - " } else { " · " };
        let advisory = if ended.advisory { format!("{dot}advisory") } else { String::new() };
        let exit = format!("{advisory}{dot}exit {}", ended.exit_code);
        let exit = style.fit(&exit, style.width.saturating_sub(word.len()));
        let room = style.width.saturating_sub(word.len() + 2 + columns(&exit));
        let parts: Vec<String> = self.parts(room, dot, style).iter().map(|part| style.clean(part)).collect();
        let fits = |n: &usize| columns(&parts[..*n].join(dot)) <= room;
        let kept = (1..=parts.len()).rev().find(fits).unwrap_or(0);
        let lead = match (kept, self.why.is_empty()) {
            (0, _) => "",
            (_, true) => "  ",
            (_, false) => ": ",
        };
        let first = format!("{}{lead}{}{exit}", style.paint(colour, word), parts[..kept].join(dot));
        let more = style.wrap(&parts[kept..].join(dot), style.width.saturating_sub(2), MORE);
        std::iter::once(first).chain(more.into_iter().map(|line| format!("  {line}"))).collect()
    }

    /// The parts in their order, the title as long as it may be.
    fn parts(&self, room: usize, dot: &str, style: &Style) -> Vec<String> {
        let (before, after) = ([&self.why[..], &self.said].concat(), &self.run);
        let others = columns(&[&before[..], after].concat().join(dot)) + columns(dot);
        let left = room.saturating_sub(others);
        let title = style.middle(&self.title, if left >= TITLE { left } else { style.width / 2 });
        let title = Some(title).filter(|title| !title.is_empty());
        before.into_iter().chain(title).chain(after.iter().cloned()).collect()
    }
}

/// Why a run did not pass, and what else is to be said of it.
fn reasons(result: &RunResult) -> (Vec<String>, Vec<String>) {
    let (wrong, class) = class(result);
    let gates = gates(&result.findings);
    // Whatever else came out: something may still be broken.
    let mut why: Vec<String> = (!result.cleanup_confirmed).then(|| "CLEANUP NOT CONFIRMED".into()).into_iter().collect();
    match result.outcome {
        RunOutcome::Pass if class.is_none() && !result.findings.is_empty() => {
            return (why, vec![format!("{} held", number_of(result.findings.len()))]);
        }
        RunOutcome::Pass => return (why, class.into_iter().collect()),
        RunOutcome::Aborted => why.extend(aborted(result)),
        RunOutcome::Fail | RunOutcome::Inconclusive => {}
    }
    // What the class is matters to why it failed only where it is not what was wanted.
    let mut said: Vec<String> = Vec::new();
    if wrong && result.outcome != RunOutcome::Aborted {
        why.extend(class)
    } else {
        said.extend(class)
    }
    if result.outcome == RunOutcome::Aborted {
        said.extend(gates)
    } else {
        why.extend(gates)
    }
    if why.is_empty() && result.outcome == RunOutcome::Inconclusive {
        why.push("evidence is missing".into());
    }
    // A gate that failed decides; a recovery of which nothing is known does not.
    let unknown = result.recovery.as_ref().is_some_and(|recovery| recovery.class == RecoveryClass::Inconclusive);
    if result.outcome == RunOutcome::Fail && unknown && why.len() > 1 {
        why.rotate_left(1);
    }
    (why, said)
}

/// Whether the class is not what was wanted, and its words; none where no recovery was asked for.
pub(in crate::report) fn class(result: &RunResult) -> (bool, Option<String>) {
    let Some(recovery) = &result.recovery else { return (false, None) };
    let word = |class: RecoveryClass| class_word(class);
    let (got, wanted) = (recovery.class, result.plan.expect);
    let name = if got == RecoveryClass::Inconclusive { "recovery unknown".to_string() } else { word(got) };
    match wanted {
        // What is not known is no pass, whoever expects it.
        _ if got == RecoveryClass::Inconclusive && wanted.is_none_or(|wanted| wanted == got) => (true, Some(name)),
        Some(wanted) if wanted == got => (false, Some(format!("{name}, as expected"))),
        Some(wanted) => (true, Some(format!("{name}, expected {}", word(wanted)))),
        None => (got != RecoveryClass::Recovered, Some(name)),
    }
}

/// `2 of 5 gates failed, 1 without evidence`; none where all held.
fn gates(findings: &[FindingResult]) -> Option<String> {
    let of = |status| findings.iter().filter(|finding| finding.status == status).count();
    gates_in_words(findings.len(), of(GateStatus::Fail), of(GateStatus::Inconclusive))
}

/// The same of so many gates.
pub(in crate::report) fn gates_in_words(all: usize, failed: usize, unknown: usize) -> Option<String> {
    let of = |n: usize| if n == 1 && all == 1 { "the gate".to_string() } else { format!("{n} of {}", number_of(all)) };
    match (failed, unknown) {
        (0, 0) => None,
        (0, unknown) => Some(format!("{} without evidence", of(unknown))),
        (failed, 0) => Some(format!("{} failed", of(failed))),
        (failed, unknown) => Some(format!("{} failed, {unknown} without evidence", of(failed))),
    }
}

fn number_of(gates: usize) -> String {
    if gates == 1 { "1 gate".into() } else { format!("{gates} gates") }
}

/// What broke it off.
fn aborted(result: &RunResult) -> Option<String> {
    let stopped = result.stopped.as_ref()?;
    let by = match stopped.by {
        StoppedBy::StopCondition => "stop condition",
        StoppedBy::Signal | StoppedBy::Operator => stopped.detail.as_str(),
        StoppedBy::Internal => "an error",
    };
    Some(format!("by {by} after {} of {}", millis(Some(result.duration_ms as f64)), millis(Some(result.length_ms as f64))))
}
