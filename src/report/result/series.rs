//! The parts of `result.json` that come by stretch, fleet, phase or window.

use super::DestinationWindow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Quantiles in milliseconds; null without evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// How many values stand behind the quantiles.
    pub count: u64,
    /// The median.
    pub p50_ms: Option<f64>,
    /// The 90th percentile.
    pub p90_ms: Option<f64>,
    /// The 99th percentile.
    pub p99_ms: Option<f64>,
    /// The 99.9th percentile.
    pub p999_ms: Option<f64>,
    /// The largest.
    pub max_ms: Option<f64>,
}

/// How attempt latency is distributed: enough of it to draw from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// How many values stand behind it.
    pub count: u64,
    /// The mean, in milliseconds; null without values.
    pub mean_ms: Option<f64>,
    /// Percentiles, in rising order, from 0 (the least) to 100 (the greatest); empty without values.
    pub percentiles: Vec<Percentile>,
}

/// One percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentile {
    /// So many of 100 values are no longer.
    pub percent: f64,
    /// That value in milliseconds.
    pub ms: f64,
}

/// How many windows had this retry share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareCount {
    /// Retries / attempts in basis points: 10000 is all.
    pub basis_points: u64,
    /// Windows.
    pub windows: u64,
}

/// How many operations ended after so many attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptsCount {
    /// Attempts, across passes.
    pub attempts: u32,
    /// Operations.
    pub operations: u64,
}

/// A stretch of the run with regard to its faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// `before` the first fault, `during` (first begin to last end), `after` the last; only `before` in a run without faults.
    pub name: String,
    /// When it begins, in milliseconds since the run began.
    pub from_ms: u64,
    /// When it ends, in milliseconds since the run began.
    pub to_ms: u64,
    /// Operation latency from the intended start, of operations that succeeded.
    pub latency: Latency,
    /// The same in full, to draw it; empty in documents of versions before it was kept.
    #[serde(default)]
    pub spectrum: Vec<Percentile>,
}

/// One fleet over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetResult {
    /// Its name.
    pub name: String,
    /// The name of its policy; `inline` where it is spelled out in the fleet, empty in documents of versions before it was kept.
    #[serde(default)]
    pub policy: String,
    /// Operations offered.
    pub operations: u64,
    /// Attempts sent.
    pub attempts: u64,
    /// Of them, retries.
    pub retries: u64,
    /// Operations that succeeded within their deadline.
    pub succeeded: u64,
    /// Operations whose client gave up.
    pub failed: u64,
    /// Operations still held when the run ended.
    pub unresolved: u64,
    /// Operations refused at ingress.
    pub refused: u64,
    /// Operations dropped because they would have started too late, or thrown away by an action.
    pub dropped: u64,
    /// Operations whose place a newer one took.
    pub superseded: u64,
    /// Operations given up and put aside.
    pub dead_lettered: u64,
    /// Attempts / distinct operations attempted; null without attempts.
    pub amplification: Option<f64>,
    /// Retries / attempts, 0 to 1; null without attempts.
    pub retry_share: Option<f64>,
    /// Operation latency from the intended start, of operations that succeeded.
    pub latency: Latency,
}

/// One phase. Counts are those of the windows that begin in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResult {
    /// `steady`, the names of the faults that act joined by `+`, or `after NAME`.
    pub name: String,
    /// When it begins, in milliseconds since the run began.
    pub from_ms: u64,
    /// When it ends, in milliseconds since the run began.
    pub to_ms: u64,
    /// The faults that act, by name.
    pub faults: Vec<String>,
    /// Operations, booked at their intended start.
    pub offered: u64,
    /// Attempts, booked when sent.
    pub attempts: u64,
    /// Of them, retries.
    pub retries: u64,
    /// Operations that succeeded within their deadline, booked at completion.
    pub succeeded: u64,
    /// Operations whose client gave up.
    pub failed: u64,
    /// Operations per second that succeeded within their deadline; null where no window begins in the phase.
    pub goodput: Option<f64>,
    /// Retries / attempts, 0 to 1; null without attempts.
    pub retry_share: Option<f64>,
    /// Operation latency from the intended start, of operations that succeeded.
    pub latency: Latency,
    /// Attempt latency from the send, of attempts that succeeded.
    pub attempt_latency: Latency,
    /// Retry share by window and fleet: one sample a window with attempts.
    pub retry_share_histogram: Vec<ShareCount>,
    /// How many operations ended in it after how many attempts.
    pub attempts_per_operation: Vec<AttemptsCount>,
}

/// One fixed slice of the run's series. Counts are of this window, not per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowResult {
    /// When it begins, in milliseconds since the run began.
    pub t_ms: u64,
    /// Operations, booked at their intended start.
    pub offered: u64,
    /// Attempts, booked when sent.
    pub attempts: u64,
    /// Of them, retries.
    pub retries: u64,
    /// Operations whose moment to be sent came, whether they could be sent or not; 0 in documents of versions before it was kept.
    #[serde(default)]
    pub scheduled: u64,
    /// Requests that reached the proxy; live, the count may be a few milliseconds off. 0 in documents of versions before it was kept.
    #[serde(default)]
    pub arrived: u64,
    /// Connections that clients made to the proxy, those apart that were open when the run began: a connection that is kept counts once, one that a fault or its client closed counts again when it is made again. A connect that was refused does not count here; it is a `connect` of `by_outcome`. Live, the count may be a few milliseconds off. 0 in documents of versions before it was kept.
    #[serde(default)]
    pub connects: u64,
    /// Operations that succeeded within their deadline, booked at completion.
    pub succeeded: u64,
    /// Operations whose client gave up.
    pub failed: u64,
    /// Operations refused at ingress.
    pub refused: u64,
    /// Operations dropped because they would have started too late.
    pub dropped: u64,
    /// Operations whose place a newer one of their client took; left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub superseded: u64,
    /// Operations given up and put aside; left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dead_lettered: u64,
    /// Operations that started later than the plan meant.
    pub late_starts: u64,
    /// Retries that a budget refused.
    pub budget_refused: u64,
    /// Tries that a breaker or a throttle refused.
    pub throttled: u64,
    /// Attempts that ended, by how: `success`, `status_503` and its like, `unexpected`, `connect`, `reset`, `timeout`, `malformed`.
    pub by_outcome: BTreeMap<String, u64>,
    /// Median operation latency from the intended start, of operations that succeeded, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub p99_ms: Option<f64>,
    /// 99th percentile of attempt latency from the send, of all that ended, in milliseconds.
    pub attempt_p99_ms: Option<f64>,
    /// 99th percentile of generator lag, in milliseconds.
    pub lag_p99_ms: Option<f64>,
    /// Retries / attempts, 0 to 1; null without attempts.
    pub retry_share: Option<f64>,
    /// Attempts on the wire at the end of the window.
    pub in_flight: u64,
    /// Operations offered and not finished at the end of the window.
    pub backlog: u64,
    /// Age of the oldest of them, in milliseconds; null where there is none.
    pub oldest_age_ms: Option<f64>,
    /// Of them, those past attempt 3.
    pub deep_retries: u64,
    /// Of them, those past their deadline.
    pub late: u64,
    /// By destination; left out where no fleet has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<DestinationWindow>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
