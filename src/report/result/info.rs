//! What is known of a run beside its record, and what of that its document says.

use super::{Engine, RecoveryClass};
use crate::config::Source;
use crate::plan::Loaded;
use crate::plan::arithmetic::{Rule, rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is known of a run beside its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanInfo {
    /// The plan's name.
    pub name: String,
    /// The plan's file, as given.
    pub path: String,
    /// SHA-256 of the effective plan, in hexadecimal.
    pub sha256: String,
    /// The engine that ran it.
    pub engine: Engine,
    /// The seed of the run.
    pub seed: u64,
    /// The exit code, from the one table of exit codes.
    pub exit_code: u8,
    /// Whether a failed or inconclusive outcome ends the process with 0.
    pub advisory: bool,
    /// When the run started, in milliseconds since the Unix epoch; none in virtual time.
    pub started_unix_ms: Option<u64>,
    /// The class that the plan expects.
    pub expect: Option<crate::gate::Class>,
    /// The line of the plan's file at which it says what its recovery is to be.
    pub judged_line: Option<u32>,
    /// At which speed the plan was run, such as `1/20`; none where that is its own.
    pub time_scale: Option<String>,
    /// By fleet, in the order of the plan, the name of its policy; `inline` where it is spelled out there.
    pub policies: Vec<String>,
    /// What arithmetic says of the plan.
    pub rules: Vec<Rule>,
    /// Who runs it.
    pub operator: Option<String>,
    /// Why.
    pub note: Option<String>,
}

impl PlanInfo {
    /// What is known of a run of this plan from this file before it begins. Nobody has said yet who runs it, and when.
    pub fn of(loaded: &Loaded, path: &str, engine: Engine) -> Self {
        let plan = &loaded.plan;
        Self {
            name: plan.name.clone(),
            path: path.to_string(),
            sha256: loaded.sha256.clone(),
            engine,
            seed: plan.seed,
            exit_code: 0,
            advisory: false,
            started_unix_ms: None,
            expect: plan.expect.as_ref().map(|expect| expect.class),
            judged_line: plan.judged_at.filter(|at| at.source == Source::File && at.line > 0).map(|at| at.line),
            time_scale: plan.time_scale.map(|scale| scale.to_string()),
            policies: plan.fleets.iter().map(|fleet| fleet.policy_name.clone()).collect(),
            rules: rules(plan),
            operator: None,
            note: None,
        }
    }
}

/// The plan that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRef {
    /// Its name.
    pub name: String,
    /// Its file, as given.
    pub path: String,
    /// SHA-256 of the effective plan (after variables and overrides), in hexadecimal.
    pub sha256: String,
    /// The recovery class that it expects; null where it expects none.
    pub expect: Option<RecoveryClass>,
    /// The line of its file at which it says what its recovery is to be, at `expect` or else at `recovery`; left out where it says nothing there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_line: Option<u32>,
    /// At which speed it was run, such as `1/20`: every duration multiplied by that, every rate divided; null where that is its own.
    pub time_scale: Option<String>,
}
