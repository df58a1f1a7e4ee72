//! Exact parity under faults of requests and answers.

use super::check;

#[test]
fn answers_after_the_work_every_nth_and_the_first_few_of_each_client() {
    check(
        "target:
  service: { servers: 4, service_time: { p50: 10ms, p99: 40ms }, queue: 30 }
  routes: [{ path: /read, weight: 3 }, { path: /pay, method: POST }]
policies:
  p: { attempts: 4, timeout: 200ms, retry_on: [reset, timeout, malformed, 5xx], backoff: { exponential: { base: 20ms, cap: 300ms, jitter: full } } }
fleets:
  f: { clients: 20, policy: p, load: { poisson: { rate: 90/s } } }
  fresh: { clients: 10, policy: p, load: { constant: { rate: 30/s } }, connections: per_attempt }
timeline:
  - { at: 500ms, for: 1s, name: paid, match: { path: /pay*, method: POST }, fault: { status: { code: 503, when: after, retry_after: 1s, share: 70% } } }
  - { at: 600ms, for: 1200ms, name: third, every: 3, fault: { reset: { when: after } } }
  - { at: 700ms, for: 1s, name: first, first: 2, per: client, fault: { status: { code: 500 } } }
  - { at: 800ms, for: 1s, name: opened, first: 1, per: connection, fault: { malformed: {} }, fleets: [fresh] }
  - { at: 1s, for: 800ms, name: lost, fault: { blackhole: { when: after, share: 20% } } }
length: 3s",
        "success 503 500 reset malformed timeout retry failed",
    );
}

#[test]
fn limits_of_what_passes_at_once_flaps_and_ramps() {
    check(
        "target: { service: { servers: 6, service_time: { exponential: { mean: 25ms } } } }
network: { latency: { p50: 1ms, p99: 9ms } }
policies:
  p: { attempts: 3, timeout: 250ms, retry_on: [reset, timeout, 429, 5xx], backoff: { fixed: { delay: 40ms, jitter: full } } }
fleets:
  f: { clients: 40, policy: p, load: { poisson: { rate: 140/s } } }
  c: { clients: 5, policy: p, load: { closed: { think: 30ms } }, connections: per_attempt }
timeline:
  - { at: 400ms, for: 1s, name: limit, fault: { limit_concurrency: { limit: 3, queue: 6, wait: 60ms, status: 429 } } }
  - { at: 600ms, for: 1500ms, name: flaps, flap: { on: 130ms, off: 170ms }, fault: { hang: { release: true } } }
  - { at: 700ms, for: 1400ms, name: slows, ramp: { in: 500ms, out: 700ms }, fault: { latency: { add: 90ms, jitter: 20ms } } }
  - { at: 900ms, for: 1s, name: cuts, ramp: { in: 1s }, fault: { truncate: { share: 60% } } }
  - { at: 1s, for: 200ms, name: drips, repeat: { every: 400ms, times: 3 }, fault: { slow_body: { every: 30ms, share: 50% } } }
length: 3s",
        "success 429 reset timeout retry failed",
    );
}
