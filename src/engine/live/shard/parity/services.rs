//! Everything that a service can do with a request, on both engines.

use super::check;

#[test]
fn deduplication_expiry_and_a_backlog_that_is_refused() {
    check(
        "target:
  service:
    servers: 3
    service_time: { p50: 15ms, p99: 90ms }
    slows_with_concurrency: 2%
    cold_cache: { hits: 60%, miss_costs: 3x, warms_after: 60 }
    slow_start: { from: 30%, over: 400ms }
    queue: { bound: 12, order: lifo, expire_after: 120ms, retry_after: backlog }
    deduplicate: { ttl: 500ms }
    reject_backlog: { deeper_than: 6, retry_after: backlog }
    cost_of_refusal: 5%
policies:
  p:
    attempts: 4
    timeout: 100ms
    retry_on: [timeout, reset, connect, 5xx]
    backoff: { fixed: { delay: 30ms, jitter: full } }
    retry_after: { honor: { spread: 40% } }
fleets: { f: { clients: 30, policy: p, load: { poisson: { rate: 100/s } } } }
timeline:
  - { at: 500ms, for: 700ms, name: slow, service: { capacity: 30%, over: 200ms } }
  - { at: 1500ms, name: restart, service: { restart: { down_for: 150ms } } }
length: 2500ms",
        "success timeout 503 reset retry failed expired rejected suppressed lost refusing",
    );
}

#[test]
fn limiters_admission_and_a_service_that_calls_another() {
    check(
        "target:
  service:
    servers: 4
    service_time: { exponential: { mean: 10ms } }
    queue: { bound: 20, codel: { target: 5ms, interval: 20ms }, shed: [priority, attempt, age] }
    limiter:
      - { token_bucket: { rate: 8/s, burst: 4, per: client, penalty_box: { ban: 100ms, cap: 500ms } } }
      - { adaptive_concurrency: { initial: 20, min: 10, baseline: 25ms, reject: 503, retry_after: backlog } }
    admission: { shares: { critical: 100%, normal: 60%, background: 20% }, max_attempt: 3 }
    notices_cancel: true
    memory: 9
    calls:
      service: db
      policy: { attempts: 3, timeout: 60ms, backoff: { fixed: { delay: 10ms, jitter: full } } }
  services:
    db: { servers: 3, service_time: { exponential: { mean: 12ms } }, queue: { bound: 10, order: fresh_first }, fails: { share: 10% } }
policies:
  p: { attempts: 4, timeout: 200ms, backoff: { fixed: { delay: 40ms, jitter: full } }, retry_on: [timeout, reset, 429, 5xx] }
fleets:
  f:
    clients: 20
    policy: p
    load: { poisson: { rate: 90/s } }
    operations: { look: { share: 40%, priority: critical }, sync: { share: 60%, priority: background } }
  hostile: { clients: 2, policy: p, load: { closed: { think: 10ms } } }
timeline:
  - { at: 600ms, for: 500ms, name: slow, service: { capacity: 40% } }
  - { at: 1300ms, name: restart, service: { of: db, restart: { down_for: 200ms } } }
length: 2200ms",
        "success 429 503 retry failed timeout limiter admission codel call given-up memory",
    );
}
