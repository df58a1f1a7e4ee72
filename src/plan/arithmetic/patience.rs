//! Whether what waits in a queue is still wanted when it is served.

use super::rules::{Rule, rule, span};
use super::{WorstAttempts, capacity, worst_attempts_of};
use crate::fleet::config::IdempotencyKey;
use crate::plan::{Fleet, Plan};
use crate::service::config::{Servers, ServiceConfig};
use crate::service::queue::Order;
use crate::service::queue::config::MAX_QUEUED;
use crate::service::queue::expiry::Expiry;

/// A queue's age against the client's patience.
pub(super) fn patience(plan: &Plan, service: &ServiceConfig) -> Option<Rule> {
    let Servers::Limited(_) = service.servers() else { return None };
    let unlimited = ServiceConfig { limiter: None, ..service.clone() };
    let capacity = capacity(&unlimited)?;
    let fleet =
        plan.senders().filter(|fleet| !is_answered_late(fleet, plan, service)).min_by_key(|fleet| fleet.policy.timeout)?;
    let timeout = fleet.policy.timeout;
    let queue = &service.queue.0;
    let waiting = most_waiting(service);
    let wait = f64::from(waiting) / capacity;
    let age = queue.expire_after.as_ref().map(Expiry::age);
    let refused = service.reject_backlog.as_ref().and_then(|rule| rule.older_than);
    // Whoever came last is served at once, however long the others wait.
    if wait <= timeout.as_secs_f64()
        || [age, refused].into_iter().flatten().any(|age| age < timeout)
        || queue.order == Order::Lifo
    {
        return None;
    }
    let what = match age {
        Some(age) => format!("what waits is served until it is {age} old, no less than"),
        None if waiting == MAX_QUEUED => "a queue without end becomes longer than".to_string(),
        None => format!("a full queue of {waiting} is {} long, more than", span(wait)),
    };
    let work = if service.notices_cancel { "" } else { ": the target then works for clients that have gone" };
    let sentence = format!("{what} the timeout of `{}` ({timeout}){work}", fleet.name);
    Some(rule("queue_age", !service.notices_cancel, sentence))
}

/// Whether a client that has gone and come again is given the answer of what it had asked for before: then no work is wasted.
fn is_answered_late(fleet: &Fleet, plan: &Plan, service: &ServiceConfig) -> bool {
    let comes_again = !matches!(worst_attempts_of(fleet, plan), WorstAttempts::AtMost(attempts) if attempts < 2.0);
    service.deduplicate.is_some() && fleet.config.idempotency_key == IdempotencyKey::Enqueue && comes_again
}

/// The most that wait: the queue's bound, or what a limit on what is in the service, or the rule on its backlog, leaves of it.
fn most_waiting(service: &ServiceConfig) -> u32 {
    let deepest = service.reject_backlog.as_ref().and_then(|rule| rule.deeper_than);
    let bound = service.queue.bound().min(deepest.unwrap_or(MAX_QUEUED));
    let Servers::Limited(servers) = service.servers() else { return bound };
    let inside = service.limiter.as_ref().and_then(|limiters| limiters.inside());
    inside.map_or(bound, |inside| inside.saturating_sub(servers).min(bound))
}

#[cfg(test)]
mod tests {
    use crate::plan::arithmetic::rules;
    use crate::plan::{Source, load};

    #[test]
    fn what_is_wanted_when_it_is_served_is_not_warned_of() {
        for (service, attempts, key, wanted) in [
            ("queue: 2000", 3, "enqueue", Some("a full queue of 2000 is 20s long, more than")),
            ("queue: 2000, deduplicate: {}", 3, "enqueue", None),
            ("queue: 2000, deduplicate: {}", 1, "enqueue", Some("a full queue of 2000")),
            ("queue: 2000, deduplicate: {}", 3, "attempt", Some("a full queue of 2000")),
            ("queue: unlimited, reject_backlog: { older_than: 900ms }", 3, "enqueue", None),
            ("queue: unlimited, reject_backlog: { older_than: 1s }", 3, "enqueue", Some("a queue without end")),
            ("queue: unlimited, reject_backlog: { deeper_than: 99 }", 3, "enqueue", None),
            ("queue: unlimited, reject_backlog: { deeper_than: 300 }", 3, "enqueue", Some("a full queue of 300 is 3s long")),
            ("queue: { bound: 2000, expire_after: 900ms }", 3, "enqueue", None),
        ] {
            let text = format!(
                "version: 1\ntarget: {{ service: {{ rate: 100/s, {service} }} }}\nfleets: {{ a: {{ clients: 9, policy: {{ attempts: {attempts}, \
                 timeout: 1s }}, load: {{ poisson: {{ rate: 10/s }} }}, idempotency_key: {key} }} }}\nlength: 1m\n"
            );
            let loaded = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None });
            let rules = rules(&loaded.unwrap_or_else(|error| panic!("{error}")).plan);
            let said = rules.iter().find(|rule| rule.key == "queue_age").map(|rule| rule.sentence.as_str());
            assert_eq!(said.is_some(), wanted.is_some(), "{service} {attempts} {key}: {said:?}");
            assert!(said.unwrap_or_default().contains(wanted.unwrap_or_default()), "{service}: {said:?}");
        }
    }
}
