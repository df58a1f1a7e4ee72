//! `result.json`: what a run showed, as one document.
//!
//! Owns the document's shape, its schema and its bytes; how it is made from a run's record stands in `build`.
//! The other reports are made from this document, so that they can be made again from the file. A figure without
//! evidence is `null`, never 0. Numbers are rounded to digits that mean something, so that equal runs give equal bytes.

mod build;
mod destinations;
mod heat;
mod info;
mod json;
mod observed;
mod proxies;
mod quantiles;
mod series;
mod service;
mod timeline;
mod told;

pub use build::result;
pub(super) use build::{class, finding, fine, outcome, outcome_name, stopped, stretch_phases};
pub use destinations::{DestinationResult, DestinationWindow};
pub use heat::{HeatColumn, HeatMap};
pub use info::{PlanInfo, PlanRef};
pub(super) use json::document;
pub use json::json;
pub use proxies::{ProxyResult, ProxyWindow};
pub use series::{AttemptsCount, Distribution, FleetResult, Latency, Percentile, PhaseResult, ShareCount, Stretch, WindowResult};
pub use timeline::{ActionResult, ActionStatus, TapsResult, WaveResult, WaveVerdict, WavesResult};

pub use told::{NoteResult, RuleResult};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What carried the run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Real sockets.
    Live,
    /// Virtual time.
    Sim,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// The run recovered, or did what the plan expects, and every gate passed.
    Pass,
    /// Something did not hold.
    Fail,
    /// No evidence either way. Never a pass.
    Inconclusive,
    /// Ended before its time: a stop condition, a signal, or an error.
    Aborted,
}

/// The recovery class of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RecoveryClass {
    /// Healthy again within the target time, and it held.
    Recovered,
    /// Healthy again, but later than the target.
    RecoveredLate,
    /// Not yet healthy at the end; backlog falling, projected drain within the horizon.
    Recovering,
    /// Fault gone, offered load no more than the baseline carried, goodput still under half of baseline, backlog not falling.
    Stuck,
    /// Between RECOVERED and STUCK: holds some goodput and does not move.
    Degraded,
    /// No evidence either way.
    Inconclusive,
}

/// One execution of a plan, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// The version of this document's shape: it grows when a field goes or changes its meaning, not when one comes.
    #[serde(default = "super::published::first")]
    pub schema_version: u32,
    /// The version of stormwake that wrote this.
    pub stormwake: String,
    /// The plan.
    pub plan: PlanRef,
    /// The engine that ran it.
    pub engine: Engine,
    /// The seed of the run.
    pub seed: u64,
    /// Who ran it; left out where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Why; left out where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When the run started, in milliseconds since the Unix epoch; null in virtual time.
    pub started_unix_ms: Option<u64>,
    /// The outcome.
    pub outcome: RunOutcome,
    /// The exit code of the process.
    pub exit_code: u8,
    /// Whether a failed or inconclusive outcome ends the process with 0 (`--advisory`); left out where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// Why the outcome is what it is, a sentence each.
    pub reasons: Vec<String>,
    /// How long the run was, in milliseconds.
    pub duration_ms: u64,
    /// How long the plan meant it to be, in milliseconds.
    pub length_ms: u64,
    /// How long a window is, in milliseconds.
    pub window_ms: u64,
    /// Why the run ended before its time; null where it did not.
    pub stopped: Option<Stopped>,
    /// Whether every fault was seen to be removed.
    pub cleanup_confirmed: bool,
    /// How the run recovered; null where the plan asks for no recovery.
    pub recovery: Option<RecoveryResult>,
    /// The whole run in figures.
    pub totals: Totals,
    /// The stretch before the first fault that later windows are compared with; null where the plan has none.
    pub baseline: Option<BaselineResult>,
    /// Before, during and after the faults.
    pub stretches: Vec<Stretch>,
    /// The fleets, in the order of the plan.
    pub fleets: Vec<FleetResult>,
    /// The destinations of fleets of workers, by fleet; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<DestinationResult>,
    /// What passed the plan's `proxies`, in the order of the plan; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<ProxyResult>,
    /// The phases: the stretches between two changes of the timeline.
    pub phases: Vec<PhaseResult>,
    /// The faults, in the order of the plan.
    pub faults: Vec<FaultResult>,
    /// What else the timeline did, in the order of its moments; empty in documents of versions before there were actions.
    #[serde(default)]
    pub actions: Vec<ActionResult>,
    /// What somebody noted while it ran; left out where nobody did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteResult>,
    /// What arithmetic says of the plan, and what happened; empty in documents of versions before it was kept.
    #[serde(default)]
    pub rules: Vec<RuleResult>,
    /// Whether the load came back in step; null where nobody looked.
    pub waves: Option<WavesResult>,
    /// One for each gate, in the order of the plan.
    pub findings: Vec<FindingResult>,
    /// How well the load generator kept its times.
    pub generator: Generator,
    /// What the built-in target counted; null for somebody else's.
    pub service: Option<ServiceResult>,
    /// The connects from the proxy to the target that came about; null where there were none, and in virtual time.
    pub connects: Option<ConnectsResult>,
    /// Bounds that were reached, and how often.
    pub limits_reached: Vec<LimitResult>,
    /// Operation latency over time, as a map of counts; null where nothing succeeded.
    #[serde(default)]
    pub heat: Option<HeatMap>,
    /// The series: fixed slices of the run, gapless from its start.
    pub windows: Vec<WindowResult>,
}

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// By what.
    pub by: StoppedBy,
    /// The details.
    pub detail: String,
}

/// What ended a run before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// A stop condition of the plan.
    StopCondition,
    /// A signal of the user's.
    Signal,
    /// Whoever watched the run.
    Operator,
    /// Something of ours broke.
    Internal,
}

/// How the run recovered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryResult {
    /// The class.
    pub class: RecoveryClass,
    /// The step of the timeline whose end started the clock; null where none took place.
    pub fault: Option<String>,
    /// The proxy at whose tap that was judged; null for our own clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// End of the fault to the start of the first sustained good stretch, in milliseconds; null where there was none.
    pub recovery_time_ms: Option<f64>,
    /// For how long after the fault's end the run was seen not to have recovered, in milliseconds: the recovery time, if any, is no shorter.
    pub unrecovered_for_ms: f64,
    /// First to last window with errors above baseline + 1%, from the fault's start, in milliseconds; null without a baseline.
    pub error_window_ms: Option<f64>,
    /// The error window / the duration of the fault.
    pub error_window_ratio: Option<f64>,
    /// The clause of *healthy* that cleared last; null where none was broken or not all cleared.
    pub last_clause: Option<String>,
    /// Times that health was lost again after recovery: healthy for a hold, then a clause broken for a span.
    pub relapses: u64,
    /// How fast the backlog changes at the end, in operations per second; null without evidence.
    pub backlog_slope: Option<f64>,
    /// How long after the end the backlog will be back at baseline, in milliseconds; null where it does not fall.
    pub projected_drain_ms: Option<f64>,
    /// The class in a sentence, with the numbers behind it.
    pub sentence: String,
}

/// The whole run in figures. offered = succeeded + failed + unresolved + refused + dropped + superseded + dead_lettered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Operations offered.
    pub operations: u64,
    /// Attempts sent.
    pub attempts: u64,
    /// Of them, retries: attempt 2 or later of a pass.
    pub retries: u64,
    /// Operations that succeeded within their deadline.
    pub succeeded: u64,
    /// Operations whose client gave up.
    pub failed: u64,
    /// Operations still held when the run ended.
    pub unresolved: u64,
    /// Operations that failed, and that nobody holds any more.
    pub lost: u64,
    /// Operations refused at ingress: the client's outbox was full.
    pub refused: u64,
    /// Operations dropped because they would have started too late.
    pub dropped: u64,
    /// Operations whose place a newer one of their client took.
    pub superseded: u64,
    /// Operations given up and put aside.
    pub dead_lettered: u64,
    /// Retries that a budget refused.
    pub budget_refused: u64,
    /// Tries that a breaker or a throttle refused: nothing went on the wire.
    pub throttled: u64,
    /// Attempts that ended, by how: `success`, `status_503` and its like, `unexpected`, `connect`, `reset`, `timeout`, `malformed`.
    pub by_outcome: BTreeMap<String, u64>,
    /// Attempts / distinct operations attempted, across passes; null without attempts.
    pub amplification: Option<f64>,
    /// Retries / attempts, 0 to 1; null without attempts.
    pub retry_share: Option<f64>,
    /// amplification − 1/(1 − retry share): retries that a requeue made look like first attempts; above 0.2 is worth a warning.
    pub laundered_retries: Option<f64>,
    /// Succeeded / operations that ended (all but the unresolved), 0 to 1; null where none ended.
    pub success: Option<f64>,
    /// Attempts that failed / attempts that ended, 0 to 1; null where none ended.
    pub errors: Option<f64>,
    /// Attempts per second in the window with the most; null without windows.
    pub peak_attempts: Option<f64>,
    /// Operations offered and not finished at the end of the last window; null without windows.
    pub backlog: Option<u64>,
    /// Operation latency from the intended start, of operations that succeeded.
    pub latency: Latency,
    /// Retry share by window: one sample a window with attempts.
    pub retry_share_histogram: Vec<ShareCount>,
    /// How many operations ended after how many attempts.
    pub attempts_per_operation: Vec<AttemptsCount>,
}

/// The baseline, in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineResult {
    /// When it begins, in milliseconds since the run began.
    pub from_ms: u64,
    /// When it ends, in milliseconds since the run began.
    pub to_ms: u64,
    /// Operations that succeeded / operations that ended, 0 to 1.
    pub success: Option<f64>,
    /// Attempts that failed / attempts that ended, 0 to 1.
    pub errors: Option<f64>,
    /// Operations per second that succeeded within their deadline.
    pub goodput: Option<f64>,
    /// Operations per second offered.
    pub offered: Option<f64>,
    /// Attempts per second.
    pub attempts: Option<f64>,
    /// Retries / attempts, 0 to 1.
    pub retry_share: Option<f64>,
    /// Median operation latency from the intended start, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub p99_ms: Option<f64>,
    /// The largest backlog, in operations.
    pub backlog: Option<f64>,
    /// Attempt latency from the send, of all attempts that ended in it; null in documents of versions before it was kept.
    pub attempt_latency: Option<Distribution>,
}

/// What a fault did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultResult {
    /// Its name.
    pub name: String,
    /// Its kind, as in the plan.
    pub kind: String,
    /// When it really began, in milliseconds since the run began.
    pub from_ms: u64,
    /// When it really ended, in milliseconds since the run began.
    pub to_ms: u64,
    /// How many requests and connects it touched; null where it did not happen as the plan has it, and nobody could count.
    pub touched: Option<u64>,
    /// Whether somebody ended it by hand, before the plan would have; left out where nobody did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_early: bool,
    /// Why it did not happen as the plan has it; left out where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What came of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateStatus {
    /// It held.
    Pass,
    /// It did not.
    Fail,
    /// Too little evidence.
    Inconclusive,
}

/// One gate's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingResult {
    /// The gate as text: figure, comparison, stretch.
    pub gate: String,
    /// What came of it.
    pub status: GateStatus,
    /// What was seen, in the form that a plan writes it; where nothing was, why.
    pub observed: String,
    /// What was wanted, multiples of the baseline worked out.
    pub wanted: String,
    /// What was seen as a number in the figure's unit: shares 0 to 1, times in seconds, rates per second; null without evidence.
    pub value: Option<f64>,
    /// The bound in the same unit; null where it hangs on a baseline that cannot be used.
    pub bound: Option<f64>,
    /// The gate's line in the plan; null where it was given on the command line.
    pub line: Option<u32>,
}

/// How well the load generator kept its times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Median of actual minus intended send, of attempts that nothing of the plan held back, in milliseconds.
    pub lag_p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub lag_p99_ms: Option<f64>,
    /// The largest of the same.
    pub lag_max_ms: Option<f64>,
    /// Operations that started late although nothing of the plan held them back. What waits for a busy client is not
    /// among them: that is in the windows' `late_starts`.
    pub late: u64,
    /// Operations that were dropped because they would have started too late.
    pub dropped: u64,
}

/// What the built-in target counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceResult {
    /// Requests that came.
    pub arrived: u64,
    /// Requests served to the end.
    pub served: u64,
    /// Of those that were served, those answered with a failure, because what they called had failed.
    #[serde(default)]
    pub failed: u64,
    /// Requests refused by the limiter.
    pub limited: u64,
    /// Requests refused because the queue was full.
    pub queue_full: u64,
    /// Refused because the memory was full.
    #[serde(default)]
    pub memory_full: u64,
    /// Refused by the admission control.
    #[serde(default)]
    pub not_admitted: u64,
    /// Taken out of the queue for one that goes before it.
    #[serde(default)]
    pub shed: u64,
    /// Refused because they had waited too long.
    #[serde(default)]
    pub expired: u64,
    /// Dropped by CoDel.
    #[serde(default)]
    pub dropped_by_codel: u64,
    /// Refused together with all that waited.
    #[serde(default)]
    pub backlog_rejected: u64,
    /// Requests that a newer one of their operation joined while they waited: both heard the same answer.
    #[serde(default)]
    pub superseded: u64,
    /// Lost in a restart.
    #[serde(default)]
    pub lost: u64,
    /// Operations that were served again.
    #[serde(default)]
    pub duplicates_executed: u64,
    /// Requests that were answered by what another attempt of their operation came to.
    #[serde(default)]
    pub duplicates_suppressed: u64,
    /// Requests whose client went before the answer.
    pub cancelled: u64,
    /// Of them, those whose work was given up.
    #[serde(default)]
    pub given_up: u64,
    /// Requests that waited when the run ended.
    #[serde(default)]
    pub queued: u64,
    /// Requests in service when the run ended.
    #[serde(default)]
    pub in_service: u64,
    /// Seconds of service for clients that were still there at the end.
    pub useful_seconds: f64,
    /// Seconds of service for clients that had gone.
    pub wasted_seconds: f64,
    /// Seconds of service spent on refusals.
    #[serde(default)]
    pub refusing_seconds: f64,
    /// Service work for requests whose client had gone / all service work, 0 to 1; null without any.
    pub wasted_work: Option<f64>,
    /// Where there are several services: the same of each of the others, by name. Useful and wasted work above are of all of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, ServiceResult>,
    /// The calls between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallResult>,
}

/// The calls that one service made of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallResult {
    /// Who called.
    pub from: String,
    /// Whom.
    pub to: String,
    /// Calls begun: one for each request whose own service was done.
    pub calls: u64,
    /// Attempts sent.
    pub attempts: u64,
    /// Of them, those that timed out.
    pub timed_out: u64,
    /// Calls that succeeded.
    pub succeeded: u64,
    /// Calls that were given up by their policy.
    pub failed: u64,
    /// Calls that ended with the request that they were made for.
    pub abandoned: u64,
}

/// Connects from the proxy to the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectsResult {
    /// How many came about.
    pub count: u64,
    /// How long the fastest took, TLS apart, in milliseconds: once there and back, where nothing waited.
    pub fastest_ms: f64,
}

/// A bound that was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitResult {
    /// Which.
    pub limit: String,
    /// How often.
    pub count: u64,
}

/// The JSON Schema of `result.json`.
pub fn schema() -> Value {
    super::published::RESULT.schema::<RunResult>()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_document_validates_against_its_schema_and_reads_back() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for result in [sample::pass(), sample::stuck(), sample::inconclusive(), sample::aborted()] {
            let bytes = json(&result);
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
            assert_eq!(serde_json::from_value::<RunResult>(value).unwrap(), result);
        }
        let mut wrong = serde_json::to_value(sample::pass()).unwrap();
        wrong["outcome"] = "maybe".into();
        assert!(!validator.is_valid(&wrong));
    }

    #[test]
    fn every_field_of_the_schema_says_what_it_is() {
        fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                if !field["description"].is_string() {
                    found.push(format!("{path}.{name}"));
                }
            }
        }
        let schema = schema();
        let mut found = Vec::new();
        undescribed("result", &schema, &mut found);
        let definitions = schema["$defs"].as_object().unwrap();
        definitions.iter().for_each(|(name, definition)| undescribed(name, definition, &mut found));
        assert!(found.is_empty(), "{found:?}");
        assert!(definitions.len() > 10);
    }

    #[test]
    fn equal_runs_give_equal_bytes() {
        assert_eq!(json(&sample::stuck()), json(&sample::stuck()));
        let text = String::from_utf8(json(&sample::stuck())).unwrap();
        assert!(text.starts_with("{\n  \"schema_version\": 1,\n  \"stormwake\": "), "{}", &text[..80]);
        assert_eq!(text.lines().filter(|line| line.starts_with("    {\"t_ms\":")).count(), 60);
    }

    #[test]
    fn figures_come_from_the_record() {
        let result = sample::stuck();
        let totals = &result.totals;
        assert_eq!(totals.operations, 24_000);
        let over = totals.succeeded + totals.failed + totals.refused + totals.dropped + totals.superseded + totals.dead_lettered;
        assert_eq!(totals.operations, over + totals.unresolved);
        let share = totals.retries as f64 / totals.attempts as f64;
        assert!((totals.retry_share.unwrap() - share).abs() < 1e-6);
        assert_eq!(totals.peak_attempts, Some(1_610.0));
        assert_eq!(result.stretches.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["before", "during", "after"]);
        assert_eq!(result.stretches[1].latency, Latency::default());
        assert_eq!(result.phases[1].faults, ["blackhole"]);
        assert_eq!(result.phases[0].retry_share_histogram, [ShareCount { basis_points: 0, windows: 15 }]);
        assert_eq!(result.service.as_ref().unwrap().wasted_work, Some(0.75));
        assert_eq!(result.findings[0].line, Some(38));
        assert_eq!(result.baseline.as_ref().unwrap().p99_ms, Some(31.0));
        let window = &result.windows[20];
        assert_eq!((window.p99_ms, window.retry_share.is_some(), window.by_outcome["timeout"]), (None, true, 1_150));
    }

    #[test]
    fn phases_name_their_own_faults_and_those_never_reached_are_left_out() {
        use crate::fault::{Timeline, timeline::tests};
        let step = |name, from, to| tests::step(name, from, to, tests::fault("hang"));
        let timeline = Timeline::new(vec![step("later", 20, 30), step("sooner", 3, 8)], 1);
        let mut record = sample::record();
        record.phases = timeline.phases(record.length);
        record.faults.iter_mut().for_each(|fault| fault.name = "sooner".into());
        record.ended = tests::at(6);
        let result = result(&record, &sample::verdict_of_nothing(), &sample::plan());
        let phases: Vec<_> = result.phases.iter().map(|phase| (phase.name.as_str(), phase.faults.join("+"))).collect();
        assert_eq!(phases, [("steady", String::new()), ("sooner", "sooner".to_string())]);
    }

    #[test]
    fn no_evidence_is_null_and_never_zero() {
        let empty = result(&Default::default(), &sample::verdict_of_nothing(), &sample::plan());
        let totals = &empty.totals;
        let figures = [
            totals.amplification,
            totals.retry_share,
            totals.laundered_retries,
            totals.success,
            totals.errors,
            totals.peak_attempts,
        ];
        assert_eq!(figures, [None; 6]);
        assert_eq!((empty.generator.lag_p99_ms, totals.latency.p99_ms, totals.backlog), (None, None, None));
        assert!(empty.stretches.is_empty() && empty.windows.is_empty());
    }
}
