//! What a service counts.

use crate::time::Span;

/// What a service did so far, and what it holds. The books balance: every request that arrived is in exactly one of `served`, `limited`,
/// `queue_full`, `memory_full`, `not_admitted`, `shed`, `expired`, `dropped_by_codel`, `backlog_rejected`, `duplicates_suppressed`, `lost`,
/// `given_up`, `queued` and `in_service`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that came.
    pub arrived: u64,
    /// Requests served to the end, those included whose client had gone by then, and those whose call of another service failed.
    pub served: u64,
    /// Of them, those whose client had gone.
    pub served_for_nobody: u64,
    /// Of them, those that were answered with a failure, because what they called had failed.
    pub failed: u64,
    /// Refused by a limiter.
    pub limited: u64,
    /// Refused because the queue was full, or the bound of the machine itself was reached.
    pub queue_full: u64,
    /// Of them, those refused by the machine's own bounds (see [`MAX_IN_SERVICE`](super::servers::MAX_IN_SERVICE) and
    /// [`MAX_QUEUED`](super::queue::config::MAX_QUEUED)).
    pub bound_reached: u64,
    /// Refused because the memory was full.
    pub memory_full: u64,
    /// Refused for what they said of themselves.
    pub not_admitted: u64,
    /// Thrown out of a full queue for somebody with a better claim.
    pub shed: u64,
    /// Waited too long.
    pub expired: u64,
    /// Dropped by CoDel.
    pub dropped_by_codel: u64,
    /// Refused with the whole backlog.
    pub backlog_rejected: u64,
    /// Lost in a restart, or turned away while the service was down: their connections broke.
    pub lost: u64,
    /// Requests whose client went before the answer.
    pub cancelled: u64,
    /// Of them, those whose work was given up; none where the service does not notice.
    pub given_up: u64,
    /// Requests that were not executed, because their operation was waiting, in service or done already.
    pub duplicates_suppressed: u64,
    /// Executions of an operation beyond its first, among the last million (see [`Executions`](super::executions::Executions)).
    pub duplicates_executed: u64,
    /// Requests that a newer one of the same operation joined while they still waited: both hear the same answer.
    pub superseded: u64,
    /// Service for clients that were still there at its end, booked at its end.
    pub useful: Span,
    /// Service for clients that had gone, and what a restart threw away; booked when it ended or was stopped.
    pub wasted: Span,
    /// Service spent on refusals.
    pub refusing: Span,
    /// Finished keys that deduplication forgot before their time, because there were more than it keeps.
    pub keys_forgotten: u64,
    /// How many times a limit for each client met one that it shares with others, because there were more clients than are told apart.
    pub limits_shared: u64,
    /// Requests that wait.
    pub queued: u64,
    /// Requests in service, those included that wait for a service which they call.
    pub in_service: u64,
}

impl Counts {
    /// Wasted service / all service; none where there was no service. What refusals cost is neither.
    pub fn wasted_share(&self) -> Option<f64> {
        let all = self.useful + self.wasted;
        (!all.is_zero()).then(|| self.wasted.0 as f64 / all.0 as f64)
    }

    /// What was refused, dropped or lost, by cause.
    pub const fn refused(&self) -> [(&'static str, u64); 9] {
        [
            ("limited", self.limited),
            ("queue_full", self.queue_full),
            ("memory_full", self.memory_full),
            ("not_admitted", self.not_admitted),
            ("shed", self.shed),
            ("expired", self.expired),
            ("dropped_by_codel", self.dropped_by_codel),
            ("backlog_rejected", self.backlog_rejected),
            ("lost", self.lost),
        ]
    }
}
