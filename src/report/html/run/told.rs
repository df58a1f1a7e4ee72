//! What was said before and meanwhile: rules of arithmetic, gates, faults, actions, notes.

use super::super::super::layout::{count, millis};
use super::super::super::result::{ActionStatus, FaultResult, GateStatus, RunResult};
use super::super::frame::{Section, Tone};
use super::super::table::{Cell, Table, paragraph};
use super::super::words::{UNKNOWN, known};

/// What arithmetic says of the plan, beside what was seen.
pub fn rules(result: &RunResult) -> Section {
    let lead = "What needs no run to be known, and what this one showed of it.";
    let section = Section::new("rules", "Rules of arithmetic", lead);
    if result.rules.is_empty() {
        return section.with(paragraph("No rule applies to this plan."));
    }
    let mut table = Table::new("Rules", &["rule", "foretells", "what it says", "what happened"]);
    for rule in &result.rules {
        let foretold =
            if rule.danger { Cell::Status(Tone::Warning, "trouble".into()) } else { Cell::Status(Tone::Good, "no harm".into()) };
        let observed = rule.observed.clone().unwrap_or_else(|| UNKNOWN.into());
        table.row(vec![
            Cell::text(rule.key.replace('_', " ")),
            foretold,
            Cell::sentence(&rule.sentence),
            Cell::sentence(observed),
        ]);
    }
    section.with(table.html())
}

/// The gates.
pub fn gates(result: &RunResult) -> Section {
    let section =
        Section::new("gates", "Gates", "What the plan asks for. A gate without evidence is inconclusive, and never a pass.");
    if result.findings.is_empty() {
        return section.with(paragraph("The plan has no gates."));
    }
    let mut table = Table::new("Findings", &["gate", "status", "wanted", "observed", "#plan line"]);
    let mut findings: Vec<_> = result.findings.iter().collect();
    // What did not pass comes first, and is not among those that are counted only.
    findings.sort_by_key(|finding| match finding.status {
        GateStatus::Fail => 0,
        GateStatus::Inconclusive => 1,
        GateStatus::Pass => 2,
    });
    for finding in findings {
        let status = match finding.status {
            GateStatus::Pass => Cell::Status(Tone::Good, "pass".into()),
            GateStatus::Fail => Cell::Status(Tone::Bad, "fail".into()),
            GateStatus::Inconclusive => Cell::Status(Tone::Unsure, "inconclusive".into()),
        };
        let line = finding.line.map_or_else(|| "command line".to_string(), |line| line.to_string());
        let (wanted, observed) = (Cell::sentence(&finding.wanted), Cell::sentence(&finding.observed));
        table.row(vec![Cell::text(&finding.gate), status, wanted, observed, Cell::figure(line)]);
    }
    section.with(table.html())
}

/// Faults, actions and notes.
pub fn happened(result: &RunResult) -> Section {
    let section = Section::new("happened", "Faults, actions and notes", "");
    let mut faults = Table::new("Faults", &["fault", "kind", "#from", "#to", "#touched", "remark"]);
    result.faults.iter().for_each(|fault| faults.row(fault_row(fault)));
    let mut section = section.with(if faults.is_empty() { paragraph("There was no fault.") } else { faults.html() });
    if !result.actions.is_empty() {
        section = section.with(actions(result));
    }
    if !result.notes.is_empty() {
        let mut notes = Table::new("Notes", &["mark", "#at", "note"]);
        for (number, note) in result.notes.iter().enumerate() {
            let mark = format!("N{}", number + 1);
            notes.row(vec![Cell::text(mark), Cell::figure(moment(note.t_ms)), Cell::sentence(&note.text)]);
        }
        section = section.with(notes.html());
    }
    section
}

fn moment(ms: u64) -> String {
    super::super::chart::moment(ms)
}

fn fault_row(fault: &FaultResult) -> Vec<Cell> {
    let by_hand = fault.ended_early.then(|| format!("ended by hand at {}, before the plan would have", moment(fault.to_ms)));
    let other = match (&fault.failed, fault.touched) {
        (Some(failed), _) => Some(failed.clone()),
        (None, Some(0)) => Some("touched nothing: no evidence".into()),
        _ => None,
    };
    let remark = by_hand.into_iter().chain(other).collect::<Vec<_>>().join("; ");
    vec![
        Cell::text(&fault.name),
        Cell::text(&fault.kind),
        Cell::figure(moment(fault.from_ms)),
        Cell::figure(moment(fault.to_ms)),
        Cell::figure(known(fault.touched, count)),
        Cell::sentence(remark),
    ]
}

fn actions(result: &RunResult) -> String {
    let mut table = Table::new("Actions", &["mark", "#at", "action", "kind", "fleet", "outcome", "#changed", "undone", "detail"]);
    for (number, action) in result.actions.iter().enumerate() {
        let outcome = match action.outcome {
            ActionStatus::Done => Cell::Status(Tone::Good, "done".into()),
            ActionStatus::Failed => Cell::Status(Tone::Bad, "failed".into()),
            ActionStatus::Skipped => Cell::Status(Tone::Muted, "not tried".into()),
        };
        let undone = match action.undone {
            Some(true) => Cell::text("yes"),
            Some(false) => Cell::Status(Tone::Bad, "NO".into()),
            None => Cell::text(""),
        };
        table.row(vec![
            Cell::text(format!("A{}", number + 1)),
            Cell::figure(millis(Some(action.at_ms as f64))),
            Cell::text(&action.name),
            Cell::text(&action.kind),
            Cell::text(action.fleet.clone().unwrap_or_default()),
            outcome,
            Cell::figure(known(action.affected, count)),
            undone,
            Cell::sentence(&action.detail),
        ]);
    }
    table.html()
}
