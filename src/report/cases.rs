//! What a CI system is told of a result: suites of cases, each with what became of it. JUnit and the annotations are made from these, so that they agree.
//!
//! A case is something that was judged: the recovery class, a gate, the share of seeds, and that the runs were carried to their end and are evidence. A suite is a
//! policy's: of a comparison there is one for each policy, since its gates name one each. A run's findings are of the whole run, whatever fleets it has, so that a
//! run, and many seeds of one plan, have one suite, named after the plan and the policies of its fleets.
//!
//! The cases say what the outcome says: all of them held where it is a pass; one failed where it is a fail; one is unknown where it is inconclusive or the run was
//! broken off. What neither the class nor a gate tells (a generator that lagged, a fault that touched nothing, a signal) is the case of the run itself.

mod compare;
mod run;
mod seeds;

pub use compare::of_comparison;
pub use run::of_run;
pub use seeds::of_seeds;

use super::layout::Style;
use super::result::{Engine, FindingResult, GateStatus, PlanRef, RecoveryClass, RunOutcome};
use super::seeds_text::class_word;
use std::collections::BTreeMap;

/// Columns of a name or a sentence; the whole is in the document.
const LONGEST: usize = 400;
/// Runs that a case names.
const NAMED: usize = 10;

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What was judged; the same from run to run, and its own within a suite.
    pub name: String,
    /// What became of it. What was broken off is inconclusive.
    pub status: GateStatus,
    /// What was seen and what was wanted, in a line.
    pub message: String,
    /// More, a line each.
    pub details: Vec<String>,
    /// The line of the plan; none where it is not known.
    pub line: Option<u32>,
}

/// The cases of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// The plan and its policies, or the plan and the policy.
    pub name: String,
    /// What was run, by name.
    pub properties: Vec<(&'static str, String)>,
    /// The cases, that of the run itself last.
    pub cases: Vec<Case>,
}

/// All that a CI system is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suites {
    /// The plan's name.
    pub plan: String,
    /// The plan's file, as given; none where it came from stdin.
    pub file: Option<String>,
    /// The outcome.
    pub outcome: RunOutcome,
    /// Whether a failed or inconclusive outcome ends the process with 0.
    pub advisory: bool,
    /// When it began, in milliseconds since the Unix epoch; none in virtual time.
    pub started_unix_ms: Option<u64>,
    /// How long it took, in milliseconds of its own time; none where that is not known.
    pub duration_ms: Option<u64>,
    /// The suites.
    pub suites: Vec<Suite>,
}

impl Suites {
    /// The cases of all suites.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.suites.iter().flat_map(|suite| &suite.cases)
    }
}

/// One line without control characters, of bounded length.
fn plain(text: &str) -> String {
    Style::default().fit(text, LONGEST)
}

fn outcome_word(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Pass => "pass",
        RunOutcome::Fail => "fail",
        RunOutcome::Inconclusive => "inconclusive",
        RunOutcome::Aborted => "aborted",
    }
}

/// What every suite says of what was run.
fn properties(plan: &PlanRef, engine: Engine, stormwake: &str, ended: (RunOutcome, u8)) -> Vec<(&'static str, String)> {
    let engine = match engine {
        Engine::Live => "live",
        Engine::Sim => "sim",
    };
    let mut properties = vec![
        ("stormwake", plain(stormwake)),
        ("engine", engine.to_string()),
        ("plan", plain(&plan.name)),
        ("plan_path", plain(&plan.path)),
        ("plan_sha256", plain(&plan.sha256)),
    ];
    properties.extend(plan.expect.map(|class| ("expect", class_word(class))));
    properties.extend(plan.time_scale.as_ref().map(|scale| ("time_scale", plain(scale))));
    properties.extend([("outcome", outcome_word(ended.0).to_string()), ("exit_code", ended.1.to_string())]);
    properties
}

fn file(plan: &PlanRef) -> Option<String> {
    (plan.path != "-" && !plan.path.is_empty()).then(|| plan.path.clone())
}

/// `plans/quickstart.yaml:41`.
fn place(plan: &PlanRef, line: Option<u32>) -> Option<String> {
    line.map(|line| format!("{}:{line}", plain(&plan.path)))
}

/// The case of a gate.
fn of_finding(finding: &FindingResult, plan: &PlanRef) -> Case {
    let (observed, wanted) = (plain(&finding.observed), plain(&finding.wanted));
    let seen = if finding.value.is_some() || finding.status == GateStatus::Fail { "got" } else { "unknown:" };
    let mut details = vec![format!("gate:     {}", plain(&finding.gate))];
    details.push(format!("observed: {observed}"));
    details.push(format!("wanted:   {wanted}"));
    details.extend(place(plan, finding.line).map(|place| format!("at:       {place}")));
    Case {
        name: plain(&finding.gate),
        status: finding.status,
        message: format!("{seen} {observed}, wanted {wanted}"),
        details,
        line: finding.line,
    }
}

/// What became of a class that is wanted. An unknown one is never what was wanted.
fn class_status(class: Option<RecoveryClass>, wanted: RecoveryClass) -> GateStatus {
    match class {
        None | Some(RecoveryClass::Inconclusive) => GateStatus::Inconclusive,
        Some(class) if class == wanted => GateStatus::Pass,
        Some(_) => GateStatus::Fail,
    }
}

/// The case of the runs themselves, from what they have to say that no other case does. Where the other cases alone would say less than the outcome, it
/// says the rest.
fn of_itself(outcome: RunOutcome, others: &[Case], message: &str, details: Vec<String>) -> Case {
    let any = |status| others.iter().any(|case| case.status == status);
    let status = match outcome {
        RunOutcome::Aborted => GateStatus::Inconclusive,
        RunOutcome::Fail if !any(GateStatus::Fail) => GateStatus::Fail,
        RunOutcome::Inconclusive if !details.is_empty() || !any(GateStatus::Inconclusive) => GateStatus::Inconclusive,
        _ => GateStatus::Pass,
    };
    let held = status == GateStatus::Pass;
    let said = details.first().cloned().unwrap_or_else(|| outcome_word(outcome).to_string());
    let message = if held { message.to_string() } else { said };
    Case { name: "carried out, and evidence".into(), status, message, details, line: None }
}

/// Gives cases of one name names of their own.
fn told_apart(mut cases: Vec<Case>) -> Vec<Case> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for case in &mut cases {
        let n = seen.entry(case.name.clone()).or_default();
        *n += 1;
        if *n > 1 {
            case.name = format!("{} ({n})", case.name);
        }
    }
    cases
}

/// Lines of so many runs that are worth it, and how many more there are.
fn named(lines: impl Iterator<Item = String>) -> Vec<String> {
    let all: Vec<String> = lines.collect();
    let more = all.len().saturating_sub(NAMED);
    let mut shown: Vec<String> = all.into_iter().take(NAMED).collect();
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown
}

#[cfg(test)]
mod tests;
