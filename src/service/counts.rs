//! What a service counts.

use crate::time::Span;

/// What a service did so far, and what it holds. The books balance: `arrived` is the sum of `served`, of everything refused or lost (`limited`,
/// `queue_full`, `memory_full`, `not_admitted`, `shed`, `expired`, `dropped_by_codel`, `backlog_rejected`, `superseded`, `lost`), of
/// `duplicates_suppressed`, `given_up`, `queued` and `in_service`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that came.
    pub arrived: u64,
    /// Requests served to the end, those included whose client had gone by then.
    pub served: u64,
    /// Of them, those whose client had gone.
    pub served_for_nobody: u64,
    /// Refused by the limiter.
    pub limited: u64,
    /// Refused because the queue was full, or the bound of the machine itself was reached.
    pub queue_full: u64,
    /// Of them, those refused by the machine's own bound (see [`MAX_IN_SERVICE`](super::servers::MAX_IN_SERVICE)).
    pub bound_reached: u64,
    /// Refused because the memory was full.
    pub memory_full: u64,
    /// Refused by the admission control, by what the request says of itself.
    pub not_admitted: u64,
    /// Taken out of the queue for one that goes before it.
    pub shed: u64,
    /// Refused because they had waited too long.
    pub expired: u64,
    /// Dropped by CoDel.
    pub dropped_by_codel: u64,
    /// Refused together with all that waited.
    pub backlog_rejected: u64,
    /// Given up because a later attempt of the same operation waits in their place.
    pub superseded: u64,
    /// Lost in a restart: their connections broke.
    pub lost: u64,
    /// Operations that were served again.
    pub duplicates_executed: u64,
    /// Requests that were answered by what another attempt of their operation came to.
    pub duplicates_suppressed: u64,
    /// Service spent on refusals.
    pub refusing: Span,
    /// Requests whose client went before the answer.
    pub cancelled: u64,
    /// Of them, those whose work was given up; none where the service does not notice.
    pub given_up: u64,
    /// Service for clients that were still there at its end, booked at its end.
    pub useful: Span,
    /// Service for clients that had gone, booked when it ended or was stopped.
    pub wasted: Span,
    /// Requests that wait.
    pub queued: u64,
    /// Requests in service.
    pub in_service: u64,
}

impl Counts {
    /// Wasted service / all service; none where there was no service.
    pub fn wasted_share(&self) -> Option<f64> {
        let all = self.useful + self.wasted;
        (!all.is_zero()).then(|| self.wasted.0 as f64 / all.0 as f64)
    }
}
