//! The cases of many seeds of one plan.

use super::{Case, Suite, Suites, class_status, file, named, of_finding, of_itself, place, plain, properties, told_apart};
use crate::report::result::{Engine, GateStatus, RecoveryClass, RunOutcome};
use crate::report::seeds::{GateCount, SeedRow, SeedsResult};
use crate::report::seeds_text::{class_counts, class_word, gate_status, headline, held};

/// What a CI system is told of many seeds.
pub fn of_seeds(result: &SeedsResult) -> Suites {
    let mut cases: Vec<Case> = vec![share_or_recovery(result)].into_iter().flatten().collect();
    cases.extend(result.gates.iter().enumerate().map(|(index, gate)| of_gate(index, gate, result)));
    cases.push(itself(result, &cases));
    let plan = plain(&result.plan.name);
    let mut properties = properties(&result.plan, Engine::Sim, &result.stormwake, (result.outcome, result.exit_code));
    properties.extend(range(&result.seeds).map(|range| ("seeds", range)));
    properties.extend(result.worst.map(|seed| ("worst_seed", seed.to_string())));
    Suites {
        plan: plan.clone(),
        file: file(&result.plan),
        outcome: result.outcome,
        advisory: result.advisory,
        started_unix_ms: None,
        duration_ms: None,
        suites: vec![Suite { name: plan, properties, cases: told_apart(cases) }],
    }
}

/// `1 to 20`.
pub(super) fn range(rows: &[SeedRow]) -> Option<String> {
    let (first, last) = (rows.first()?.seed, rows.last()?.seed);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}

/// A run in a line.
pub(super) fn said(row: &SeedRow) -> String {
    let class = row.class.map_or_else(String::new, |class| format!("{}: ", class_word(class)));
    let why = row.sentence.as_ref().filter(|sentence| !sentence.is_empty()).or(row.reasons.first());
    plain(&format!("seed {}: {class}{}", row.seed, why.map_or("", String::as_str)))
}

/// The gate on the share of seeds, or else the class in every one of them; none where the plan asks for no recovery.
fn share_or_recovery(result: &SeedsResult) -> Option<Case> {
    let wanted = result.plan.expect.unwrap_or(RecoveryClass::Recovered);
    let others = || result.seeds.iter().filter(|row| class_status(row.class, wanted) != GateStatus::Pass).map(said);
    let intervals = headline(&result.recovered, result.plan.expect.is_some());
    if let Some(gate) = &result.share_gate {
        let mut case = of_finding(gate, &result.plan);
        case.details.push(intervals);
        case.details.extend(named(others()));
        return Some(case);
    }
    if result.plan.expect.is_none() && result.seeds.iter().all(|row| row.class.is_none()) {
        return None;
    }
    let any = |status| result.seeds.iter().any(|row| class_status(row.class, wanted) == status);
    let status = match (any(GateStatus::Fail), any(GateStatus::Inconclusive) || result.seeds.is_empty()) {
        (true, _) => GateStatus::Fail,
        (_, true) => GateStatus::Inconclusive,
        _ => GateStatus::Pass,
    };
    let mut details = vec![intervals.clone(), class_counts(&result.classes)];
    details.extend(named(others()));
    let name = format!("recovery is {} in every seed", class_word(wanted));
    Some(Case { name, status, message: intervals, details, line: result.plan.judged_line })
}

fn of_gate(index: usize, gate: &GateCount, result: &SeedsResult) -> Case {
    let status = gate_status(gate);
    let message = format!("{}, wanted in every seed", held(gate));
    let not_held = result.seeds.iter().filter(|row| row.gates.get(index).is_some_and(|&status| status != GateStatus::Pass));
    let word = |row: &SeedRow| if row.gates.get(index) == Some(&GateStatus::Fail) { "fail" } else { "unknown" };
    let mut details = vec![format!("gate: {}", plain(&gate.gate)), message.clone()];
    details.extend(place(&result.plan, gate.line).map(|place| format!("at:   {place}")));
    details.extend(named(not_held.map(|row| format!("seed {}: {}", row.seed, word(row)))));
    Case { name: plain(&gate.gate), status, message, details, line: gate.line }
}

/// What the runs say of themselves.
fn itself(result: &SeedsResult, others: &[Case]) -> Case {
    let done = format!("{} of {} seeds", result.seeds.len(), result.planned);
    let aborted = result.seeds.iter().any(|row| row.outcome == RunOutcome::Aborted);
    let outcome = match result.outcome {
        RunOutcome::Pass if result.exit_code != 0 => RunOutcome::Aborted,
        // A gate that failed does not make up for a run that was broken off.
        RunOutcome::Fail if aborted => RunOutcome::Aborted,
        outcome => outcome,
    };
    let mut details: Vec<String> = result.stopped.iter().map(|by| format!("by {} after {done}", plain(&by.detail))).collect();
    match outcome {
        RunOutcome::Pass => details.clear(),
        _ if result.outcome == RunOutcome::Pass => details.push(format!("ended with exit code {}", result.exit_code)),
        _ => details.extend(named(result.seeds.iter().filter(|row| !is_told(row)).map(reasons))),
    }
    of_itself(outcome, others, &done, details)
}

/// Whether its class and its gates tell why a run did not pass.
fn is_told(row: &SeedRow) -> bool {
    let class = |reason: &String| row.sentence.as_ref().is_some_and(|said| !said.is_empty() && reason.ends_with(said.as_str()));
    let gates = row.gates.iter().filter(|&&status| status != GateStatus::Pass).count();
    let others = row.reasons.iter().filter(|reason| !class(reason)).count();
    row.outcome == RunOutcome::Pass || (row.outcome != RunOutcome::Aborted && others <= gates)
}

fn reasons(row: &SeedRow) -> String {
    plain(&format!("seed {}: {}", row.seed, row.reasons.join("; ")))
}
