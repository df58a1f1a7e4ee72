//! Fleets of workers: the same events on both engines.

use super::check;

#[test]
fn workers_that_hold_requeue_and_are_restarted() {
    check(
        "target: { service: { servers: unlimited, service_time: 5ms, limiter: { sliding_log: { limit: 30, window: 500ms, count_rejected: true } } } }
policies:
  p: { attempts: 4, timeout: 200ms, retry_on: [timeout, 429], backoff: { fixed: { delay: 60ms } } }
  q: { attempts: 4, timeout: 200ms, retry_on: [timeout, 429], backoff: { exponential: { base: 60ms, jitter: full } } }
fleets:
  w:
    workers: 12
    policy: p
    queue: { arrivals: { poisson: { rate: 40/s } }, hold_while_waiting: true, on_give_up: requeue }
timeline:
  - { at: 500ms, for: 600ms, name: out, fault: { hang: {} } }
  - { at: 2s, name: again, action: { restart: { fleet: w, policy: q, stagger: 300ms } } }
length: 4s",
        "success timeout 429 retry cancelled acted",
    );
}

#[test]
fn destinations_lanes_buckets_and_what_the_timeline_does_to_them() {
    check(
        "target: { service: { servers: unlimited, service_time: { exponential: { mean: 15ms } } } }
policies:
  p:
    attempts: 6
    timeout: 100ms
    backoff: { exponential: { base: 50ms, cap: 400ms } }
    on: { 429: { lane: slow }, reset: { retry: false } }
    budget: { bucket: { deposit: 50%, burst: 4 }, tier: client, when_spent: park }
  q: { attempts: 2, timeout: 100ms, backoff: { fixed: { delay: 30ms, jitter: full } } }
fleets:
  w:
    workers: 10
    policy: p
    queue:
      destinations:
        big: { arrivals: { constant: { rate: 60/s } }, backlog: 15 }
        small: { arrivals: { poisson: { rate: 40/s } }, concurrency: 3 }
        thin: { rate: { rate: 15/s, burst: 2 }, arrivals: { constant: { rate: 20/s } } }
      fresh_first: true
      on_give_up: dead_letter
      lanes: { slow: { concurrency: 2, per_destination: true } }
      bound: 60
timeline:
  - { at: 300ms, for: 1500ms, name: refusing, fault: { status: { code: 429 } }, destinations: [big] }
  - { at: 900ms, for: 300ms, name: silent, fault: { blackhole: { share: 60% } }, destinations: [small, thin] }
  - { at: 1s, for: 400ms, name: hold, action: { pause: { fleet: w, destination: big, scope: all } } }
  - { at: 1600ms, name: lane, action: { set_lane: { fleet: w, destination: big, concurrency: 2 } } }
  - { at: 2s, name: fewer, action: { scale: { fleet: w, to: 4 } } }
  - { at: 2200ms, name: faster, action: { set_rate: { fleet: w, factor: 150% } } }
  - { at: 2400ms, name: other, action: { set_policy: { fleet: w, policy: q } } }
  - { at: 2600ms, name: clear, action: { drop_backlog: { fleet: w, destination: thin } } }
  - { at: 2700ms, name: open, action: { set_limit: { fleet: w, destination: thin } } }
length: 3s",
        "success 429 timeout retry budget refused deadlettered dropped acted",
    );
}

#[test]
fn producers_fill_a_queue_and_try_again_where_it_is_full() {
    check(
        "target: { service: { servers: 2, service_time: 30ms, queue: 4 } }
policies:
  p: { attempts: 3, timeout: 200ms, backoff: { fixed: { delay: 40ms } } }
  unguarded: { attempts: 5, timeout: 200ms }
fleets:
  w: { workers: unlimited, policy: p, queue: { destinations: { a: {}, b: { concurrency: 2 } }, bound: 12 } }
  app: { clients: 20, policy: p, load: { poisson: { rate: 60/s } }, into: w, destination: a }
  eager: { clients: 5, policy: unguarded, load: { constant: { rate: 40/s } }, into: w, destination: b }
timeline: [{ at: 1s, for: 800ms, name: out, fault: { hang: {} }, fleets: [w] }]
length: 3s",
        "success 503 timeout retry failed succeeded",
    );
}
