//! Exact parity: the live driver, its clock, timers and wires driven through their traits over the simulator's world, and the
//! simulator itself make the same events with the same moments in the same order, and the same windows.

mod requests;
mod services;
mod virtual_time;
mod workers;

use super::driver::Driver;
use super::seams::Seams;
use super::{Control, Message};
use crate::engine::Unobserved;
use crate::engine::shared::{Part, WINDOW, machines, recorder, shared_state};
use crate::engine::sim::{self, Buckets, EventList};
use crate::event::{AttemptOutcome, Event, OperationOutcome};
use crate::fault::Timeline;
use crate::metrics::{RunRecord, Series};
use crate::plan::{Plan, Source, load};
use crate::time::{Span, Timestamp};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use tokio::sync::mpsc;
use virtual_time::{FarSide, Traced, VirtualClock};

/// How many seeds each plan is run with.
const SEEDS: u64 = 200;

/// What one engine made of a plan.
struct Made {
    events: Vec<Event>,
    record: RunRecord,
    ceiling_holds: u64,
}

fn plan(text: &str) -> Plan {
    let text = format!("version: 1\nname: parity\nseed: 1\n{text}");
    let source = Source { file: "parity.yaml", text: &text, overrides: &[], env: &|_| None };
    load(&source).unwrap_or_else(|error| panic!("{error}\n{text}")).plan
}

fn simulated(plan: &Plan) -> Made {
    let ran = sim::run_on::<Buckets, _>(plan, &mut Unobserved, &AtomicI32::new(0), EventList::default());
    let (record, _, EventList(events)) = ran.expect("the plan has a model");
    let holds = record.limits_reached.iter().find(|reached| reached.limit == "max_attempts");
    Made { events, ceiling_holds: holds.map_or(0, |reached| reached.count), record }
}

/// Runs the live driver in virtual time, to the end of the plan or to an earlier one.
fn driven(plan: &Plan, end: Timestamp) -> Made {
    let (clock, events) = (Arc::new(VirtualClock::default()), Rc::new(RefCell::new(Vec::new())));
    let (control, mut commands) = mpsc::unbounded_channel();
    let (messages, mut heard) = mpsc::unbounded_channel();
    let far = FarSide::new(plan, &sim::model(plan).expect("the plan has a model"), clock.clone(), end);
    let phases = Timeline::new(plan.timeline.clone(), plan.seed).phases(plan.length);
    let recorder = recorder(plan, &phases);
    let seams = Seams { wire: far.clone(), timers: far, book: Traced { recorder, events: events.clone() } };
    let machines = machines(plan, &shared_state(plan), Part::ALL);
    control.send(Control::StopAt(end)).expect("the driver listens");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(Driver::new(plan, machines, clock, seams, messages).run(&mut commands)).expect("virtual timers never fail");
    let mut series = Series::new(1, plan.fleets.len(), &phases, WINDOW).with_producers(plan.producers());
    let (mut finished, mut ceiling_holds) = (Vec::new(), 0);
    while let Ok(message) = heard.try_recv() {
        match message {
            Message::Slice(slice) => series.merge(slice),
            Message::Finished { totals, ceiling_holds: holds, .. } => {
                finished.push(*totals);
                ceiling_holds += holds;
            }
            other => panic!("a driver does not say {other:?}"),
        }
    }
    let record = series.finish(finished, RunRecord { ended: end, ..RunRecord::default() });
    Made { events: events.take(), record, ceiling_holds }
}

/// Where two engines differ first; nothing where they do not.
fn difference(live: &Made, sim: &Made) -> Option<String> {
    let longer = live.events.len().max(sim.events.len());
    if let Some(at) = (0..longer).find(|&at| live.events.get(at) != sim.events.get(at)) {
        let around =
            |events: &[Event]| format!("{:#?}", &events[at.saturating_sub(2).min(events.len())..events.len().min(at + 2)]);
        return Some(format!("event {at}: live {}\nsim {}", around(&live.events), around(&sim.events)));
    }
    let (l, s) = (&live.record.windows, &sim.record.windows);
    if let Some(at) = (0..l.len().max(s.len())).find(|&at| format!("{:?}", l.get(at)) != format!("{:?}", s.get(at))) {
        return Some(format!("window {at}: live {:?}\nsim {:?}", l.get(at).map(|w| &w.all), s.get(at).map(|w| &w.all)));
    }
    (live.ceiling_holds != sim.ceiling_holds).then(|| format!("holds: {} and {}", live.ceiling_holds, sim.ceiling_holds))
}

/// What a plan is there to show, as a word for each thing that happened in it.
fn signs(made: &Made) -> BTreeSet<String> {
    let of = |event: &Event| match event {
        Event::Ended { outcome: AttemptOutcome::Status(status), .. } => Some(format!("{status}")),
        Event::Ended { outcome, .. } => Some(format!("{outcome:?}").to_lowercase()),
        Event::Finished { outcome: OperationOutcome::Unresolved, .. } => None,
        Event::Finished { outcome, .. } => Some(format!("{outcome:?}").to_lowercase()),
        Event::Sent { retry: true, .. } => Some("retry".into()),
        Event::BudgetRefused { .. } => Some("budget".into()),
        Event::Throttled { .. } => Some("throttled".into()),
        Event::Acted { .. } => Some("acted".into()),
        Event::LateStart { .. } => Some("late".into()),
        Event::Offered { .. } | Event::Sent { .. } => None,
    };
    let held = (made.ceiling_holds > 0).then(|| "ceiling".to_string());
    made.events.iter().filter_map(of).chain(held).chain(parts_of_the_service(made)).collect()
}

/// What the service did with requests, beside serving them.
fn parts_of_the_service(made: &Made) -> impl Iterator<Item = String> {
    let of = made.record.service.as_ref().map(|service| service.of).unwrap_or_default();
    let counts = [
        ("limiter", of.limited),
        ("admission", of.not_admitted),
        ("full", of.queue_full),
        ("shed", of.shed),
        ("expired", of.expired),
        ("codel", of.dropped_by_codel),
        ("rejected", of.backlog_rejected),
        ("suppressed", of.duplicates_suppressed),
        ("lost", of.lost),
        ("memory", of.memory_full),
        ("given-up", of.given_up),
        ("refusing", of.refusing.0),
        ("call", of.failed),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name.to_string())
}

/// Runs a plan with every seed on both engines. `shows` is what must happen in it, over all seeds, so that equal is not empty.
fn check(text: &str, shows: &str) {
    let mut plan = plan(text);
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        plan.seed = seed;
        let sim = simulated(&plan);
        let live = driven(&plan, Timestamp::ZERO + plan.length);
        if let Some(difference) = difference(&live, &sim) {
            panic!("seed {seed}: {difference}\n{text}");
        }
        seen.extend(signs(&sim));
    }
    let missing: Vec<&str> = shows.split(' ').filter(|sign| !seen.contains(*sign)).collect();
    assert!(missing.is_empty(), "{missing:?} did not happen, only {seen:?}\n{text}");
}

const SERVICE: &str = "target: { service: { servers: 3, service_time: { p50: 15ms, p99: 60ms }, queue: 8 } }";

#[test]
fn no_retry_and_a_blackhole() {
    check(
        &format!(
            "{SERVICE}
policies: {{ p: {{ attempts: 1, timeout: 300ms }} }}
fleets: {{ f: {{ clients: 20, policy: p, load: {{ poisson: {{ rate: 90/s }} }} }} }}
timeline: [{{ at: 1s, for: 1s, name: out, fault: {{ blackhole: {{ share: 70% }} }} }}]
length: 3s"
        ),
        "success timeout succeeded failed",
    );
}

#[test]
fn full_jitter_with_a_budget_and_a_hang_that_lets_go() {
    check(
        &format!(
            "{SERVICE}
policies:
  p:
    attempts: 5
    timeout: 200ms
    backoff: {{ exponential: {{ base: 20ms, cap: 400ms, jitter: full }} }}
    budget: {{ ratio: 20%, window: 2s, tier: fleet }}
fleets: {{ f: {{ clients: 30, policy: p, load: {{ constant: {{ rate: 100/s }} }} }} }}
timeline: [{{ at: 800ms, for: 900ms, name: stuck, fault: {{ hang: {{ release: true }} }} }}]
length: 3s"
        ),
        "success timeout retry budget failed 503",
    );
}

#[test]
fn fixed_waits_with_a_deadline_and_a_target_that_is_gone() {
    check(
        "target: { service: { servers: 2, service_time: 20ms, queue: 20, notices_cancel: true } }
policies:
  p: { attempts: unlimited, timeout: 100ms, deadline: 600ms, backoff: { fixed: { delay: 50ms } } }
fleets: { f: { clients: 25, policy: p, load: { poisson: { each: 3/s } }, connections: per_attempt } }
timeline: [{ at: 1s, for: 500ms, name: gone, fault: { refuse: {} } }]
length: 3s",
        "success connect reset retry failed",
    );
}

#[test]
fn hints_are_honoured_alike() {
    check(
        "target:
  service: { servers: 4, service_time: 10ms, limiter: { token_bucket: { rate: 60/s, burst: 5, retry_after: 1s } } }
policies:
  p: { attempts: 4, timeout: 1s, backoff: { fixed: { delay: 30ms, jitter: equal } }, retry_after: { honor: { spread: 40% } } }
fleets: { f: { clients: 20, policy: p, load: { poisson: { rate: 60/s } } } }
timeline: [{ at: 1s, for: 700ms, name: sick, fault: { status: { code: 503, retry_after: 1s, share: 50% } } }]
length: 4s",
        "success 429 503 retry",
    );
}

#[test]
fn closed_load_under_a_reset_share_and_latency() {
    check(
        "target: { service: { servers: 6, service_time: { exponential: { mean: 20ms } } }, success: { within: 80ms } }
policies:
  p: { attempts: 3, timeout: 250ms, retry_on: [reset, unexpected, timeout], backoff: { exponential: { base: 10ms, jitter: decorrelated, cap: 300ms } } }
fleets:
  f: { clients: 30, policy: p, load: { closed: { think: 200ms } } }
  eager: { clients: 2, policy: p, load: closed }
timeline:
  - { at: 500ms, for: 1s, name: cut, fault: { reset: { share: 30% } } }
  - { at: 900ms, for: 1200ms, name: slow, fault: { latency: { add: 70ms, jitter: 50ms, share: 60% } } }
length: 3s",
        "success reset unexpected timeout retry failed",
    );
}

#[test]
fn late_starts_that_are_dropped_and_full_outboxes() {
    check(
        "target: { service: { servers: 2, service_time: 30ms } }
policies: { p: { attempts: 2, timeout: 150ms } }
fleets:
  drops: { clients: 10, policy: p, load: { constant: { rate: 60/s } }, late_starts: drop }
  bounded: { clients: 10, policy: p, load: { poisson: { rate: 60/s } }, late_starts: { bounded_catchup: { within: 40ms } } }
  full: { clients: 5, policy: p, load: { ramp: { from: 5/s, to: 60/s, over: 2s } }, outbox: 2 }
timeline: [{ at: 1s, for: 600ms, name: out, fault: { blackhole: {} }, fleets: [bounded, full] }]
length: 3s",
        "success timeout retry dropped refused late",
    );
}

#[test]
fn a_ceiling_on_attempts_and_a_limited_rate() {
    check(
        "target: { service: { servers: unlimited, service_time: 5ms }, max_attempts: 80/s }
policies:
  p: { attempts: 6, timeout: 200ms, deadline: 1s, backoff: none }
fleets:
  f: { clients: 40, policy: p, load: { poisson: { rate: 60/s } } }
  all: { clients: 25, policy: p, load: { trigger: { at: 1500ms } } }
timeline: [{ at: 500ms, for: 1500ms, name: limit, fault: { rate_limit: { rate: 30/s, burst: 3, retry_after: 1s } } }]
length: 3s",
        "success 429 retry failed ceiling",
    );
}

#[test]
fn a_wide_network_that_resets_and_budgets_of_clients() {
    check(
        "target: { service: { servers: 5, service_time: 10ms } }
network:
  latency: { p50: 20ms, p99: 70ms }
  upstream: { uniform: { from: 1ms, to: 3ms } }
  connect: { exponential: { mean: 30ms } }
  reset: 3%
policies:
  p:
    attempts: 4
    timeout: 150ms
    max_elapsed: 700ms
    backoff: { exponential: { base: 20ms, jitter: { proportional: { share: 30% } } } }
    budget: { ratio: 50%, window: 1s, min_per_second: 1, tier: client }
fleets:
  kept: { clients: 20, policy: p, load: { poisson: { rate: 80/s } } }
  fresh: { clients: 15, policy: p, load: { constant: { each: 2/s } }, connections: per_attempt, idempotency_key: attempt }
timeline: [{ at: 1s, for: 700ms, name: out, fault: { blackhole: { share: 50%, release: true } } }]
length: 3s",
        "success reset timeout retry budget failed",
    );
}

#[test]
fn hedges_breakers_and_parked_retries() {
    check(
        &format!(
            "{SERVICE}
policies:
  hedged: {{ attempts: 4, timeout: 400ms, hedge: {{ after: 40ms, at_most: 2 }}, on: {{ 503: {{ backoff: {{ fixed: {{ delay: 90ms, jitter: full }} }} }} }} }}
  broken:
    attempts: 3
    timeout: 120ms
    retry_on: [refused, 5xx, timeout]
    backoff: {{ fixed: {{ delay: 30ms, jitter: full }} }}
    breaker: {{ rate: 50%, calls: 20, open_for: 300ms, probes: 2, tier: fleet }}
  parked:
    attempts: 3
    timeout: 120ms
    budget: {{ bucket: {{ deposit: 20%, burst: 2 }}, tier: fleet, when_spent: park }}
  careful: {{ attempts: 2, timeout: 200ms, throttle: {{ aimd: {{ slow_after: 60ms, increase: 1.0, max: 3.0 }} }} }}
fleets:
  a: {{ clients: 12, policy: hedged, load: {{ poisson: {{ rate: 40/s }} }} }}
  b: {{ clients: 10, policy: broken, load: {{ constant: {{ rate: 40/s }} }} }}
  c: {{ clients: 10, policy: parked, load: {{ poisson: {{ rate: 30/s }} }} }}
  d: {{ clients: 4, policy: careful, load: {{ closed: {{ think: 20ms }} }} }}
timeline: [{{ at: 1s, for: 900ms, name: out, fault: {{ blackhole: {{ share: 80% }} }} }}]
length: 3s"
        ),
        "success timeout 503 cancelled throttled budget retry succeeded failed",
    );
}

#[test]
fn throttles_that_refuse_and_that_wait() {
    check(
        "target:
  service: { servers: 4, service_time: 10ms, limiter: { token_bucket: { rate: 60/s, burst: 5 } } }
policies:
  sre: { attempts: 2, timeout: 1s, throttle: { sre: { tier: client } } }
  aws: { attempts: 3, timeout: 1s, backoff: { fixed: { delay: 30ms, jitter: equal } }, throttle: { adaptive: { tier: fleet } } }
fleets:
  a: { clients: 4, policy: sre, load: { poisson: { rate: 60/s } } }
  b: { clients: 8, policy: aws, load: { poisson: { rate: 60/s } } }
length: 4s",
        "success 429 throttled retry",
    );
}

/// Everything falls on the grain: answers and wake-ups, faults and the borders of windows come at the same moments.
#[test]
fn a_coarse_grain_on_which_everything_meets() {
    check(
        "timer_grain: 10ms
network: { latency: 2500us, upstream: 2500us, connect: 10ms }
target: { service: { servers: 2, service_time: 10ms, queue: 18 }, success: { status: [200, 429] } }
policies: { p: { attempts: 3, timeout: 100ms, backoff: { fixed: { delay: 35ms, jitter: { additive: { range: 40ms } } } } } }
fleets: { f: { clients: 50, policy: p, load: { constant: { rate: 300/s } } } }
timeline:
  - { at: 0s, for: 500ms, name: first, fault: { status: { code: 500, share: 40% } } }
  - { at: 1s, for: 1s, name: second, fault: { hang: {} } }
  - { at: 2s, for: 1s, name: third, fault: { reset: {} } }
length: 3s",
        "success 500 503 timeout reset retry failed",
    );
}

/// Devices: regions, poor links, rich outboxes, and every way to come.
#[test]
fn regions_poor_links_and_the_ways_that_devices_come() {
    check(
        "target: { service: { servers: 4, service_time: 10ms } }
network: { latency: 2100us, connect: 5100us }
policies: { p: { attempts: unlimited, timeout: 400ms, backoff: { exponential: { base: 50ms, cap: 1s, jitter: full } } } }
fleets:
  app:
    clients: 40
    policy: p
    load: { day_curve: { points: [{ at: 0s, rate: 20/s }, { at: 2s, rate: 60/s }] } }
    regions: { eu: 40%, us: 60% }
    link: { latency: { uniform: { from: 5ms, to: 60ms } }, loss: 10%, share: 50% }
  people:
    clients: 20
    policy: p
    load: { foreground: { each: 0.3/s, operations: 3, within: 500ms, first: { at: 200ms, spread: 1s } } }
    connections: per_attempt
    regions: { us: 50%, eu: 50% }
    link: { latency: 20ms }
    operations: { look: { share: 60%, priority: critical }, sync: { share: 40%, replaces: key, keys: 2 } }
    outbox: 4
    when_full: evict
    drain_rate: 8/s
    defer: { after: 2, probe_every: 150ms }
  back: { clients: 20, policy: p, load: { on_reconnect: { after: cut, spread: 300ms } }, regions: { eu: 50%, us: 50% } }
  timed: { clients: 10, policy: p, load: { schedule: { every: 700ms, spread: 100ms } } }
timeline:
  - { at: 1s, for: 700ms, name: cut, fault: { refuse: {} }, fleets: [app, people, back], regions: [eu] }
  - { at: 2200ms, for: 400ms, name: rst, fault: { reset: {} }, regions: [us] }
length: 3s",
        "success connect reset timeout retry superseded refused",
    );
}

/// The comparison must be able to fail: a grain, a moment of the end or a seed that differs shows.
#[test]
fn what_differs_is_seen() {
    let text = format!(
        "{SERVICE}
policies: {{ p: {{ attempts: 3, timeout: 300ms, backoff: {{ fixed: {{ delay: 30ms, jitter: full }} }} }} }}
fleets: {{ f: {{ clients: 20, policy: p, load: {{ poisson: {{ rate: 60/s }} }} }} }}
timeline: [{{ at: 1s, for: 500ms, name: out, fault: {{ blackhole: {{}} }} }}]
length: 2s"
    );
    let plan = plan(&text);
    let end = Timestamp::ZERO + plan.length;
    let sim = simulated(&plan);
    assert_eq!(difference(&driven(&plan, end), &sim), None);
    let off = |plan: &Plan, end| difference(&driven(plan, end), &sim).is_some();
    assert!(off(&Plan { timer_grain: plan.timer_grain + Span(1_000), ..plan.clone() }, end), "a grain");
    assert!(off(&Plan { seed: 2, ..plan.clone() }, end), "a seed");
    assert!(off(&plan, end - Span::from_millis(1)), "an end");
}

#[test]
fn what_the_timeline_does_to_clients() {
    check(
        &format!(
            "{SERVICE}
policies:
  p: {{ attempts: 3, timeout: 200ms, backoff: {{ fixed: {{ delay: 50ms }} }} }}
  q: {{ attempts: 5, timeout: 150ms, backoff: {{ exponential: {{ base: 20ms, jitter: full }} }}, budget: {{ ratio: 30%, tier: fleet }} }}
fleets:
  f: {{ clients: 20, policy: p, load: {{ poisson: {{ rate: 90/s }} }} }}
  c: {{ clients: 5, policy: p, load: {{ closed: {{ think: 30ms }} }} }}
timeline:
  - {{ at: 200ms, for: 300ms, action: {{ pause: {{ fleet: f, scope: ingress }} }} }}
  - {{ at: 600ms, for: 300ms, action: {{ pause: {{ fleet: c }} }} }}
  - {{ at: 700ms, for: 600ms, name: out, fault: {{ blackhole: {{ share: 70% }} }} }}
  - {{ at: 900ms, action: {{ set_rate: {{ fleet: f, factor: 150% }} }} }}
  - {{ at: 1100ms, action: {{ restart: {{ fleet: f, policy: q, stagger: 200ms }} }} }}
  - {{ at: 1200ms, action: {{ scale: {{ fleet: c, to: 2 }} }} }}
  - {{ at: 1600ms, action: {{ set_policy: {{ fleet: c, policy: q }} }} }}
  - {{ at: 1700ms, action: {{ drop_backlog: {{ fleet: f }} }} }}
length: 2500ms"
        ),
        "success timeout cancelled retry refused dropped acted",
    );
}

#[test]
fn what_the_timeline_does_to_the_service() {
    check(
        "target: { service: { servers: 3, service_time: { p50: 15ms, p99: 60ms }, queue: 8, cold_cache: { hits: 50%, miss_costs: 2x, warms_after: 20 } } }
policies: { p: { attempts: 3, timeout: 200ms, backoff: { fixed: { delay: 50ms, jitter: equal } }, retry_on: [timeout, 429, 5xx] } }
fleets: { f: { clients: 20, policy: p, load: { poisson: { rate: 90/s } } } }
timeline:
  - { at: 500ms, for: 500ms, name: slow, service: { capacity: 30%, over: 100ms } }
  - { at: 1s, for: 500ms, name: limited, service: { limiter: { token_bucket: { rate: 20/s } } } }
  - { at: 1600ms, name: restart, service: { restart: { down_for: 100ms } } }
  - { at: 1800ms, for: 200ms, name: out, fault: { blackhole: { share: 50% } } }
  - { at: 2s, name: gone, service: { reject_backlog: {}, cache: cold } }
length: 2500ms",
        "success timeout 429 retry",
    );
}
