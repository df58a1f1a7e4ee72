//! The cases of one run.

use super::{Case, Suite, Suites, class_status, file, of_finding, of_itself, plain, properties, told_apart};
use crate::report::layout::millis;
use crate::report::result::{RecoveryClass, RunOutcome, RunResult};
use crate::report::seeds_text::class_word;
use crate::report::text::gates::unsaid;

/// What a CI system is told of a run.
pub fn of_run(result: &RunResult) -> Suites {
    let mut cases: Vec<Case> = recovery(result).into_iter().collect();
    cases.extend(result.findings.iter().map(|finding| of_finding(finding, &result.plan)));
    cases.push(itself(result, &cases));
    let policies = policies(result);
    let plan = plain(&result.plan.name);
    let mut properties = properties(&result.plan, result.engine, &result.stormwake, (result.outcome, result.exit_code));
    properties.push(("seed", result.seed.to_string()));
    properties.extend(result.fleets.iter().map(|fleet| ("fleet", plain(&format!("{}: {}", fleet.name, fleet.policy)))));
    properties.extend(result.operator.as_ref().map(|operator| ("operator", plain(operator))));
    properties.extend(result.note.as_ref().map(|note| ("note", plain(note))));
    let name = if policies.is_empty() { plan.clone() } else { format!("{plan} ({})", policies.join(", ")) };
    Suites {
        plan,
        file: file(&result.plan),
        outcome: result.outcome,
        advisory: result.advisory,
        started_unix_ms: result.started_unix_ms,
        duration_ms: Some(result.duration_ms),
        suites: vec![Suite { name: plain(&name), properties, cases: told_apart(cases) }],
    }
}

/// The policies of the fleets, each once, in the order of the plan.
fn policies(result: &RunResult) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for policy in result.fleets.iter().map(|fleet| plain(&fleet.policy)).filter(|policy| !policy.is_empty()) {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    policies
}

/// The recovery class against the one that is wanted; none where the plan asks for no recovery.
fn recovery(result: &RunResult) -> Option<Case> {
    let class = result.recovery.as_ref().map(|recovery| recovery.class);
    let expect = result.plan.expect;
    if class.is_none() && expect.is_none() {
        return None;
    }
    let wanted = expect.unwrap_or(RecoveryClass::Recovered);
    let got = class.map_or_else(|| "no class, for the plan has no `recovery`".into(), class_word);
    let why = if expect.is_some() { ", which the plan expects" } else { "" };
    let mut details = vec![format!("observed: {got}"), format!("wanted:   {}{why}", class_word(wanted))];
    if let Some(recovery) = &result.recovery {
        details.push(plain(&recovery.sentence));
        details.extend(recovery.recovery_time_ms.map(|ms| format!("recovery time: {}", millis(Some(ms)))));
        details.extend(recovery.last_clause.as_ref().map(|clause| format!("last to clear: {}", plain(clause))));
    }
    Some(Case {
        name: format!("recovery is {}", class_word(wanted)),
        status: class_status(class, wanted),
        message: format!("got {got}, wanted {}", class_word(wanted)),
        details,
        line: result.plan.judged_line,
    })
}

/// What the run says of itself.
fn itself(result: &RunResult, others: &[Case]) -> Case {
    // That a plan expects what it got is no reason against it.
    let unsaid = || unsaid(result).map(|reason| plain(reason));
    let took = format!("{} of {}", millis(Some(result.duration_ms as f64)), millis(Some(result.length_ms as f64)));
    match result.outcome {
        // A pass whose report is not whole ends with another code.
        RunOutcome::Pass if result.exit_code != 0 => {
            let said = vec![format!("the run passed, but ended with exit code {}", result.exit_code)];
            of_itself(RunOutcome::Aborted, others, &took, said)
        }
        RunOutcome::Pass => of_itself(RunOutcome::Pass, others, &took, Vec::new()),
        outcome => of_itself(outcome, others, &took, unsaid().collect()),
    }
}
