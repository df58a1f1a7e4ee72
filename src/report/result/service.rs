//! What the target counted, as the result has it.

use super::build::{coarse, fine};
use super::{CallResult, ServiceResult};
use crate::metrics::{Calls, ServiceCounts};
use crate::service::Counts;
use crate::service::system::CallCounts;
use std::collections::BTreeMap;

/// Of the front service, of the others by name, and of the calls between them.
pub(super) fn service(service: &ServiceCounts) -> ServiceResult {
    let services = service.others.iter().map(|(name, counts)| (name.clone(), of_service(counts))).collect();
    let calls = service.calls.iter().map(|Calls { from, to, counts }| {
        let CallCounts { calls, attempts, timed_out, succeeded, failed, abandoned } = *counts;
        CallResult { from: from.clone(), to: to.clone(), calls, attempts, timed_out, succeeded, failed, abandoned }
    });
    ServiceResult { services, calls: calls.collect(), ..of_service(&service.of) }
}

fn of_service(counts: &Counts) -> ServiceResult {
    ServiceResult {
        arrived: counts.arrived,
        served: counts.served,
        failed: counts.failed,
        limited: counts.limited,
        queue_full: counts.queue_full,
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
        queued: counts.queued,
        in_service: counts.in_service,
        useful_seconds: coarse(counts.useful.as_secs_f64()).unwrap_or(0.0),
        wasted_seconds: coarse(counts.wasted.as_secs_f64()).unwrap_or(0.0),
        refusing_seconds: coarse(counts.refusing.as_secs_f64()).unwrap_or(0.0),
        wasted_work: counts.wasted_share().and_then(fine),
        services: BTreeMap::new(),
        calls: Vec::new(),
    }
}
