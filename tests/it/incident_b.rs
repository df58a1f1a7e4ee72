//! Webhook waves: the example's rows at a twentieth of the account's size, and what stops scheduled work and what does not.

#[path = "../../examples/incident_b/model.rs"]
mod model;

use crate::support::shared;
use model::{Pipeline, Row, rows};
use std::sync::atomic::AtomicI32;
use stormwake::engine::{Unobserved, sim};
use stormwake::event::AttemptOutcome;
use stormwake::metrics::Counts;
use stormwake::plan::{Source, load};

#[test]
fn one_destination_takes_the_queue_and_a_lane_gives_it_back() {
    let _machine = shared();
    let rows = rows(20, 4).expect("a plan with a service can be simulated");
    let told = |row: &Row| format!("{}: {} of {:?}", row.name, row.value, row.accept);
    let wrong: Vec<String> = rows.iter().filter(|row| !row.met()).map(told).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows.len(), 11);
}

#[test]
fn a_pause_of_ingress_leaves_scheduled_retries_firing_and_one_of_all_stops_them() {
    let _machine = shared();
    let steps = "  - { at: 3m, for: 1m, name: half, action: { pause: { fleet: hooks, destination: big, scope: ingress } } }\n\
                 \x20 - { at: 5m, for: 1m, name: whole, action: { pause: { fleet: hooks, destination: big, scope: all } } }\n";
    let seen = Pipeline { steps, length: 7, ..Pipeline::of(20, 300) }.run().expect("it can be simulated");
    let refused = |from: usize, to: usize| seen.record.windows[from..to].iter().map(|window| window.all.refused).sum::<u64>();
    let before = seen.attempts(120, 180);
    assert!(seen.attempts(181, 240) * 2 > before, "retries fire: {} in the minute, {before} before", seen.attempts(180, 240));
    assert_eq!((refused(181, 239), refused(241, 419)), (58 * 30, 0), "only new deliveries are refused");
    assert_eq!(seen.attempts(301, 360), 0, "within a window nothing of it is dispatched");
    assert!(seen.attempts(361, 420) > before, "it goes on where it stopped");
    let healthy = |from, to| seen.healthy(from, to);
    assert!(healthy(310, 360) < 0.06, "the others have the workers for themselves: {} s", healthy(310, 360));
}

/// A queue that is full refuses enqueues; the producers' own policy tries again.
#[test]
fn a_full_queue_refuses_its_producers() {
    let _machine = shared();
    let text = "version: 1\nname: full\n\
        target: { service: { servers: unlimited, service_time: 0s } }\n\
        network: { latency: 25ms, upstream: 0s, connect: 0s }\n\
        policies:\n  hooks: { attempts: unlimited, timeout: 5s, retry_on: [429], backoff: { exponential: { base: 2s, cap: 60s } } }\n  \
        app: { attempts: 3, timeout: 1s, retry_on: [5xx], backoff: { fixed: { delay: 1s } } }\n\
        fleets:\n  hooks: { workers: 30, policy: hooks, queue: { destinations: { big: {}, healthy: {} }, bound: 4000 } }\n  \
        app: { clients: 100, policy: app, load: { constant: { rate: 60/s } }, into: hooks, destination: big }\n  \
        other: { clients: 50, policy: app, load: { constant: { rate: 30/s } }, into: hooks, destination: healthy }\n\
        timeline: [{ at: 30s, name: refusing, fault: { status: { code: 429 } }, destinations: [big] }]\n\
        gates: [{ success: '>= 0%' }]\nlength: 4m\n";
    let plan =
        load(&Source { file: "full", text, overrides: &[], env: &|_| None }).unwrap_or_else(|error| panic!("{error}")).plan;
    let record = sim::run(&plan, &mut Unobserved, &AtomicI32::new(0)).expect("it can be simulated");
    let sum =
        |fleet: usize, of: &dyn Fn(&Counts) -> u64| record.windows.iter().map(|window| of(&window.fleets[fleet])).sum::<u64>();
    let refused = |fleet| sum(fleet, &|c| c.by_outcome.get(&AttemptOutcome::Status(503)).copied().unwrap_or(0));
    let (app, other) = (refused(1), refused(2));
    // 4000 are full after 67 s; then the queue takes what it lets go, which are the healthy ones.
    assert!(app > 5_000 && other > 1_000, "{app} and {other} enqueues were refused");
    assert!(sum(1, &|c| c.retries) > 3_000, "and tried again: {}", sum(1, &|c| c.retries));
    let (enqueued, offered) = (sum(1, &|c| c.succeeded) + sum(2, &|c| c.succeeded), sum(0, &|c| c.offered));
    assert_eq!(
        enqueued, offered,
        "an enqueue that is taken is an operation of the workers' fleet, and one that is refused is none"
    );
    assert_eq!(sum(0, &|c| c.refused), 0);
    assert!(sum(1, &|c| c.failed) > 1_000, "a producer gives up, too");
    let most = record.windows.iter().map(|window| window.fleets[0].backlog).max().unwrap_or(0);
    assert!((4_000..=4_030).contains(&most), "the bound, and what workers have: {most}");
}
