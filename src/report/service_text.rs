//! A service of a plan in one line: what it can do, and its parts.

use super::plan_text::number;
use crate::config::At;
use crate::plan::arithmetic;
use crate::plan::fleet::PolicyRef;
use crate::plan::service::{RawCall, RawService};
use crate::policy::Attempts;
use crate::service::config::Servers;
use crate::service::limiter::{LimiterConfig, Per};
use crate::service::queue::{Bound, Order};
use crate::service::{ServiceConfig, ServiceTime};

/// A service and what it calls: `16 servers, p50 20ms p99 200ms: 490/s; queue 200; token_bucket 5/s per client`.
pub(super) fn service(service: &RawService) -> String {
    let call = service.calls.as_ref();
    let alone = call.map_or(String::new(), |call| format!(" without waiting for {}", call.service.value));
    let parts = [vec![capacity(&service.service) + &alone], parts(&service.service), call.and_then(calls).into_iter().collect()];
    parts.concat().join("; ")
}

fn calls(call: &RawCall) -> Option<String> {
    let RawCall { service, policy: At { value: PolicyRef::Inline(policy), .. }, .. } = call else { return None };
    let attempts = match policy.attempts {
        Attempts::Limited(1) => "1 attempt".to_string(),
        Attempts::Limited(n) => format!("up to {n} attempts"),
        Attempts::Unlimited => "unlimited attempts".to_string(),
    };
    Some(format!("calls {} with {attempts}", service.value))
}

/// What its servers can do, whatever else limits it.
fn capacity(service: &ServiceConfig) -> String {
    let servers = match service.servers() {
        Servers::Limited(1) => "1 server".into(),
        Servers::Limited(n) => format!("{n} servers"),
        Servers::Unlimited => "unlimited servers".into(),
    };
    let time = match &service.time() {
        ServiceTime::Constant(span) => format!("{} each", span.about()),
        ServiceTime::Uniform(u) => format!("{} to {} each", u.from, u.to),
        ServiceTime::Exponential(e) => format!("exponential mean {}", e.mean),
        ServiceTime::Lognormal(l) => format!("p50 {} p99 {}", l.p50, l.p99),
        ServiceTime::Percentiles(p) => format!("measured mean {}", p.mean().about()),
    };
    let unlimited = ServiceConfig { limiter: None, ..service.clone() };
    let most = arithmetic::capacity(&unlimited).map_or("no limit".into(), |capacity| format!("{}/s", number(capacity)));
    format!("{servers}, {time}: {most}")
}

/// What else it has, by the keys of the plan.
fn parts(service: &ServiceConfig) -> Vec<String> {
    let limiters = service.limiter.iter().flat_map(|limiters| &limiters.0).map(limiter);
    let there = |key: &str, is_there: bool| is_there.then(|| key.to_string());
    let others = [
        there("admission", service.admission.is_some()),
        there("deduplicate", service.deduplicate.is_some()),
        there("reject_backlog", service.reject_backlog.is_some()),
        service.drain.map(|rate| format!("drain {}/s", number(rate.get()))),
        service.memory.map(|memory| format!("memory {memory}")),
    ];
    std::iter::once(queue(service)).chain(limiters).chain(others.into_iter().flatten()).collect()
}

/// `queue unlimited, priority, codel`.
fn queue(service: &ServiceConfig) -> String {
    let queue = &service.queue.0;
    let bound = match queue.bound {
        Bound::Limited(bound) => bound.to_string(),
        Bound::Unlimited => "unlimited".into(),
    };
    let parts = [
        Some(format!("queue {bound}")),
        (queue.order != Order::Fifo).then(|| queue.order.word().to_string()),
        queue.expire_after.as_ref().map(|expiry| format!("expire_after {}", expiry.age())),
        queue.codel.as_ref().map(|_| "codel".to_string()),
        queue.shed.as_ref().map(|_| "shed".to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `token_bucket 5/s per client`.
fn limiter(limiter: &LimiterConfig) -> String {
    let limit = match limiter {
        LimiterConfig::TokenBucket(bucket) => format!("{}/s", number(bucket.rate.get())),
        LimiterConfig::FixedWindow(fixed) => format!("{} in {}", fixed.limit, fixed.window),
        LimiterConfig::SlidingLog(log) => format!("{} in {}", log.limit, log.window),
        LimiterConfig::Concurrency(concurrency) => concurrency.limit.to_string(),
        LimiterConfig::AdaptiveConcurrency(adaptive) => format!("{} to {}", adaptive.min, adaptive.max),
    };
    let per = match limiter.shared().per {
        Per::Global => "",
        Per::Client => " per client",
        Per::Fleet => " per fleet",
    };
    format!("{} {limit}{per}", limiter.key())
}

#[cfg(test)]
mod tests {
    use crate::plan::{Source, load};

    #[test]
    fn the_capacity_comes_first_and_every_part_says_whose_limit_it_is() {
        for (service, wanted) in [
            (
                "servers: 16, service_time: { p50: 20ms, p99: 200ms }, queue: 200, limiter: { token_bucket: { rate: 5/s, per: client } }, \
                 deduplicate: {}",
                "16 servers, p50 20ms p99 200ms: 490/s; queue 200; token_bucket 5/s per client; deduplicate",
            ),
            ("rate: 30/s, queue: { bound: unlimited, order: priority }", "1 server, 33ms each: 30/s; queue unlimited, priority"),
            (
                "servers: 5000, service_time: 1ms, queue: { expire_after: 4s }, limiter: [concurrency: { limit: 9 }, fixed_window: { limit: 7 }]",
                "5000 servers, 1ms each: 5M/s; queue 1000, expire_after 4s; concurrency 9; fixed_window 7 in 1s",
            ),
            (
                "rate: 100/s, queue: 9, drain: 50/s, memory: 99, calls: { service: db, policy: { attempts: 3, timeout: 1s } }",
                "1 server, 10ms each: 100/s without waiting for db; queue 9; drain 50/s; memory 99; calls db with up to 3 attempts",
            ),
        ] {
            let text = format!(
                "version: 1\ntarget: {{ service: {{ {service} }}, services: {{ db: {{ rate: 9/s }} }} }}\nfleets: {{ a: {{ clients: 9, policy: {{ \
                 attempts: 3, timeout: 1s }}, load: {{ poisson: {{ rate: 10/s }} }} }} }}\nlength: 1m\n"
            );
            let loaded = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None });
            let plan = loaded.unwrap_or_else(|error| panic!("{error}")).plan;
            assert_eq!(super::service(plan.target.front().expect("it has one")), wanted);
        }
    }
}
