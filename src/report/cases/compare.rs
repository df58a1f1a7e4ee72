//! The cases of a comparison: a suite for each policy.

use super::seeds::{range, said};
use super::{Case, Suite, Suites, file, named, of_finding, of_itself, plain, properties, told_apart};
use crate::report::compare::{CompareResult, PolicyResult};
use crate::report::result::RunOutcome;
use crate::report::seeds_text::{class_counts, headline};

/// What a CI system is told of a comparison.
pub fn of_comparison(result: &CompareResult) -> Suites {
    let plan = plain(&result.plan.name);
    let suites = (0..result.policies.len()).map(|index| suite(index, result)).collect();
    Suites {
        file: file(&result.plan),
        outcome: result.outcome,
        advisory: result.advisory,
        started_unix_ms: result.started_unix_ms,
        duration_ms: None,
        suites: if result.policies.is_empty() { vec![nobody(result, &plan)] } else { suites },
        plan,
    }
}

/// A comparison of nobody is no empty suite.
fn nobody(result: &CompareResult, plan: &str) -> Suite {
    let properties = properties(&result.plan, result.engine, &result.stormwake, (result.outcome, result.exit_code));
    let case = of_itself(RunOutcome::Aborted, &[], "", vec!["no policy was run".into()]);
    Suite { name: plan.to_string(), properties, cases: vec![case] }
}

fn suite(index: usize, result: &CompareResult) -> Suite {
    let policy = &result.policies[index];
    let own = result.gates.iter().filter(|finding| policy_of(&finding.gate, result) == index);
    let mut cases: Vec<Case> = own.map(|finding| of_finding(finding, &result.plan)).collect();
    cases.push(itself(index, result, &cases));
    let mut properties = properties(&result.plan, result.engine, &result.stormwake, (result.outcome, result.exit_code));
    properties.push(("fleet", plain(&result.fleet)));
    properties.push(("policy", plain(&policy.name)));
    properties.push(("role", if policy.reference { "reference" } else { "candidate" }.to_string()));
    properties.extend(range(&policy.seeds).map(|range| ("seeds", range)));
    let name = plain(&format!("{} ({})", result.plan.name, policy.name));
    Suite { name, properties, cases: told_apart(cases) }
}

/// Whose gate it is: its text begins with the policy's name. One that nobody owns is the first's, so that it is not lost.
fn policy_of(gate: &str, result: &CompareResult) -> usize {
    let owns = |policy: &PolicyResult| gate.strip_prefix(policy.name.as_str()).is_some_and(|rest| rest.starts_with(": "));
    let owners = result.policies.iter().enumerate().filter(|(_, policy)| owns(policy));
    owners.max_by_key(|(_, policy)| policy.name.len()).map_or(0, |(index, _)| index)
}

/// What the policy's runs say of themselves: that they were made, and, where no gate decides, that each of them is evidence.
fn itself(index: usize, result: &CompareResult, others: &[Case]) -> Case {
    let policy = &result.policies[index];
    let silent = |outcome: RunOutcome| matches!(outcome, RunOutcome::Inconclusive | RunOutcome::Aborted);
    let missing = (policy.seeds.len() as u64) < result.planned;
    let broken = policy.seeds.iter().any(|row| row.outcome == RunOutcome::Aborted);
    // Somebody has to say it where no policy alone can.
    let anyone = |of: &PolicyResult| {
        (of.seeds.len() as u64) < result.planned || of.seeds.iter().any(|row| row.outcome == RunOutcome::Aborted)
    };
    let first = index == 0 && !result.policies.iter().any(anyone);
    let ours = match result.outcome {
        RunOutcome::Pass if result.exit_code != 0 => RunOutcome::Aborted,
        RunOutcome::Aborted if missing || broken || first => RunOutcome::Aborted,
        RunOutcome::Inconclusive if result.gates.is_empty() && policy.seeds.iter().any(|row| silent(row.outcome)) => {
            RunOutcome::Inconclusive
        }
        RunOutcome::Inconclusive if result.gates.is_empty() && missing => RunOutcome::Inconclusive,
        _ => RunOutcome::Pass,
    };
    let done = format!("{} of {} runs", policy.seeds.len(), result.planned);
    let mut details: Vec<String> = Vec::new();
    if ours != RunOutcome::Pass {
        details.extend(result.stopped.iter().map(|by| format!("by {} after {done}", plain(&by.detail))));
        details.extend((result.outcome == RunOutcome::Pass).then(|| format!("ended with exit code {}", result.exit_code)));
        details.extend(named(policy.seeds.iter().filter(|row| silent(row.outcome)).map(said)));
        details.extend(details.is_empty().then(|| done.clone()));
    }
    let recovered = format!("{done}; {}; {}", headline(&policy.recovered, false), class_counts(&policy.classes));
    of_itself(ours, others, &recovered, details)
}
