//! What the child and its parent say to each other, as lines of JSON; `GET /stormwake/stats` answers the same.

use crate::metrics::Calls;
use crate::metrics::record::ServiceCounts;
use crate::service::Counts;
use crate::service::change::FRONT;
use crate::service::system::CallCounts;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The line after the plan on the child's stdin: YAML's own end of a document.
pub const PLAN_END: &str = "...";

/// The child's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Where it listens.
    pub ready: SocketAddr,
}

/// A line on the child's stdin after the plan: a change of the service, as the plan says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Which of the plan's actions, by its place.
    pub change: usize,
}

/// What the child says once it has made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Which of the plan's actions.
    pub changed: usize,
}

/// The child's other lines, one a second and one at the end: totals since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Requests that came.
    pub arrived: u64,
    /// Requests served to the end, for clients there or gone.
    pub served: u64,
    /// Of them, those whose client had gone.
    pub served_for_nobody: u64,
    /// Of those that were served, those whose answer was a failure.
    pub failed: u64,
    /// Refused by the limiter.
    pub limited: u64,
    /// Refused because the queue was full.
    pub queue_full: u64,
    /// Of them, those refused by the program's own bound on requests in service.
    pub bound_reached: u64,
    /// Refused because the memory was full.
    pub memory_full: u64,
    /// Refused by the admission control.
    pub not_admitted: u64,
    /// Taken out of the queue for one that goes before it.
    pub shed: u64,
    /// Refused because they had waited too long.
    pub expired: u64,
    /// Dropped by CoDel.
    pub dropped_by_codel: u64,
    /// Refused together with all that waited.
    pub backlog_rejected: u64,
    /// Requests that a newer one of their operation took the place of while they still waited.
    pub superseded: u64,
    /// Lost in a restart.
    pub lost: u64,
    /// Operations that were served again.
    pub duplicates_executed: u64,
    /// Requests that were answered by what another attempt of their operation came to.
    pub duplicates_suppressed: u64,
    /// Requests whose client went before the answer.
    pub cancelled: u64,
    /// Of them, those whose work was given up.
    pub given_up: u64,
    /// Seconds of service for clients that were still there at its end.
    pub useful_seconds: f64,
    /// Seconds of service for clients that had gone.
    pub wasted_seconds: f64,
    /// Seconds of service spent on refusals.
    pub refusing_seconds: f64,
    /// Finished keys that deduplication forgot before their time.
    pub keys_forgotten: u64,
    /// How many times a limit for each client met one that it shares with others.
    pub limits_shared: u64,
    /// Requests that wait.
    pub queued: u64,
    /// Requests in service.
    pub in_service: u64,
    /// Open connections.
    pub connections: u64,
    /// Connections that could not be accepted at once, mostly for want of file descriptors.
    pub accept_errors: u64,
}

impl Stats {
    /// The counts of a service and of its server.
    pub fn new(counts: &Counts, connections: u64, accept_errors: u64) -> Self {
        Self {
            arrived: counts.arrived,
            served: counts.served,
            served_for_nobody: counts.served_for_nobody,
            failed: counts.failed,
            limited: counts.limited,
            queue_full: counts.queue_full,
            bound_reached: counts.bound_reached,
            memory_full: counts.memory_full,
            not_admitted: counts.not_admitted,
            shed: counts.shed,
            expired: counts.expired,
            dropped_by_codel: counts.dropped_by_codel,
            backlog_rejected: counts.backlog_rejected,
            superseded: counts.superseded,
            lost: counts.lost,
            duplicates_executed: counts.duplicates_executed,
            duplicates_suppressed: counts.duplicates_suppressed,
            cancelled: counts.cancelled,
            given_up: counts.given_up,
            useful_seconds: counts.useful.as_secs_f64(),
            wasted_seconds: counts.wasted.as_secs_f64(),
            refusing_seconds: counts.refusing.as_secs_f64(),
            keys_forgotten: counts.keys_forgotten,
            limits_shared: counts.limits_shared,
            queued: counts.queued,
            in_service: counts.in_service,
            connections,
            accept_errors,
        }
    }
}

impl Stats {
    /// What was refused, dropped or lost, by cause.
    pub fn refused(&self) -> [(&'static str, u64); 9] {
        Counts::from(*self).refused()
    }
}

impl From<Stats> for Counts {
    fn from(stats: Stats) -> Self {
        Self {
            arrived: stats.arrived,
            served: stats.served,
            served_for_nobody: stats.served_for_nobody,
            failed: stats.failed,
            limited: stats.limited,
            queue_full: stats.queue_full,
            bound_reached: stats.bound_reached,
            memory_full: stats.memory_full,
            not_admitted: stats.not_admitted,
            shed: stats.shed,
            expired: stats.expired,
            dropped_by_codel: stats.dropped_by_codel,
            backlog_rejected: stats.backlog_rejected,
            lost: stats.lost,
            cancelled: stats.cancelled,
            given_up: stats.given_up,
            duplicates_suppressed: stats.duplicates_suppressed,
            duplicates_executed: stats.duplicates_executed,
            superseded: stats.superseded,
            useful: Span::from_secs_f64(stats.useful_seconds),
            wasted: Span::from_secs_f64(stats.wasted_seconds),
            refusing: Span::from_secs_f64(stats.refusing_seconds),
            keys_forgotten: stats.keys_forgotten,
            limits_shared: stats.limits_shared,
            queued: stats.queued,
            in_service: stats.in_service,
        }
    }
}

/// The counts of a whole target: of its front service, of the others by name, and of the calls between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetStats {
    /// Of the service that most requests reach, and of the server.
    #[serde(flatten)]
    pub front: Stats,
    /// Of each service, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, Stats>,
    /// Of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallStats>,
}

/// The calls that one service made of another: totals since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStats {
    /// Who called.
    pub from: String,
    /// Whom.
    pub to: String,
    /// Calls begun.
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

impl CallStats {
    /// What came of the calls.
    pub fn new(from: &str, to: &str, counts: &CallCounts) -> Self {
        let CallCounts { calls, attempts, timed_out, succeeded, failed, abandoned } = *counts;
        Self { from: from.to_string(), to: to.to_string(), calls, attempts, timed_out, succeeded, failed, abandoned }
    }
}

impl From<CallStats> for Calls {
    fn from(stats: CallStats) -> Self {
        let CallStats { from, to, calls, attempts, timed_out, succeeded, failed, abandoned } = stats;
        Self { from, to, counts: CallCounts { calls, attempts, timed_out, succeeded, failed, abandoned } }
    }
}

impl From<TargetStats> for ServiceCounts {
    fn from(stats: TargetStats) -> Self {
        // The front one stands there already.
        let others =
            stats.services.into_iter().filter(|(name, _)| name != FRONT).map(|(name, stats)| (name, stats.into())).collect();
        let calls = stats.calls.into_iter().map(Into::into).collect();
        Self { of: stats.front.into(), accept_errors: stats.front.accept_errors, others, calls }
    }
}
