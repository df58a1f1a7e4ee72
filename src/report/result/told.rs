//! What was said of a run: before it by arithmetic, and while it went on by people.

use super::observed::observed;
use super::{PlanInfo, RunResult};
use crate::metrics::RunRecord;
use crate::plan::arithmetic::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What somebody noted while the run went on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoteResult {
    /// When, in milliseconds since the run began.
    pub t_ms: u64,
    /// What.
    pub text: String,
}

/// What a rule of arithmetic says of the plan, and what happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleResult {
    /// The rule's name.
    pub key: String,
    /// Whether it foretells trouble.
    pub danger: bool,
    /// What it says, with the plan's numbers.
    pub sentence: String,
    /// What the run showed of it; null where it cannot show anything.
    pub observed: Option<String>,
}

pub(super) fn notes(record: &RunRecord) -> Vec<NoteResult> {
    record.notes.iter().map(|note| NoteResult { t_ms: note.at.as_millis(), text: note.text.clone() }).collect()
}

/// The rules of a plan beside what a run of it showed.
pub(super) fn rules(plan: &PlanInfo, run: &RunResult) -> Vec<RuleResult> {
    let rule = |rule: &Rule| RuleResult {
        key: rule.key.into(),
        danger: rule.danger,
        sentence: rule.sentence.clone(),
        observed: observed(rule.key, run),
    };
    plan.rules.iter().map(rule).collect()
}
