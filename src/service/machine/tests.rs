use super::*;
use crate::policy::hint::Said;
use crate::priority::Priority;
use crate::rng::{Key, Purpose};
use crate::service::KeyHash;
use crate::service::change::{RestartChange, ServiceChange};
use crate::service::job::NO_SLOT;
use crate::service::limiter::{LimiterConfig, LimitersConfig, Shared, SlidingLog};
use crate::service::queue::{Bound, QueueConfig};
use crate::service::refusal::RetryAfter;
use crate::service::time::ExponentialTime;
use crate::time::{Share, Span};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

const MS: fn(u64) -> Span = Span::from_millis;

fn config(servers: u32, time: ServiceTime, queue: u32, notices_cancel: bool) -> ServiceConfig {
    let queue = QueueConfig::of(Bound::Limited(queue));
    ServiceConfig { queue, notices_cancel, ..ServiceConfig::new(config::Servers::Limited(servers), time) }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + MS(millis)
}

fn request(id: u64) -> Arrival {
    let key = Key { seed: 11, operation: id, attempt: 1, ..Key::default() };
    Arrival { id, key, destination: 0, before: NO_SLOT, of: Metadata::nothing(Timestamp::ZERO) }
}

/// A service, and the jobs of the requests that it was brought.
struct Tested(Service, BTreeMap<u64, Slot>);

impl Tested {
    fn new(config: &ServiceConfig) -> Self {
        Self(Service::new(config), BTreeMap::new())
    }

    fn that_calls(self) -> Self {
        Self(self.0.that_calls(), self.1)
    }

    fn arrive(&mut self, now: Timestamp, arrival: Arrival, out: &mut Vec<Answer>) {
        let job = self.0.arrive(now, arrival, out);
        self.1.extend(job.map(|job| (arrival.id, job)));
    }

    fn cancel(&mut self, now: Timestamp, id: u64, out: &mut Vec<Answer>) {
        let job = self.1.get(&id).copied().unwrap_or(NO_SLOT);
        self.0.cancel(now, id, job, out);
    }
}

impl Deref for Tested {
    type Target = Service;
    fn deref(&self) -> &Service {
        &self.0
    }
}

impl DerefMut for Tested {
    fn deref_mut(&mut self) -> &mut Service {
        &mut self.0
    }
}

/// One thing that happens to a service.
#[derive(Clone, Copy)]
enum Step {
    Arrive(u64),
    Cancel(u64),
    Advance,
}
use Step::{Advance, Arrive, Cancel};

/// Runs steps at moments in milliseconds; gives the answers as (id, milliseconds, status), and the counts.
fn play(config: &ServiceConfig, steps: &[(u64, Step)]) -> (Vec<(u64, u64, u16)>, Counts) {
    let mut service = Tested::new(config);
    let mut out = Vec::new();
    for (millis, step) in steps {
        match step {
            Arrive(id) => service.arrive(at(*millis), request(*id), &mut out),
            Cancel(id) => service.cancel(at(*millis), *id, &mut out),
            Advance => service.advance(at(*millis), &mut out),
        }
        balance(&service);
    }
    (out.iter().map(|a| (a.id, a.at.as_millis(), a.status)).collect(), service.counts())
}

fn balance(service: &Service) {
    let c = service.counts();
    let ended = c.served + c.refused().iter().map(|(_, count)| count).sum::<u64>() + c.duplicates_suppressed + c.given_up;
    assert_eq!(c.arrived, ended + c.queued + c.in_service, "{c:?}");
}

#[test]
fn requests_are_served_in_the_order_of_arrival_and_a_full_queue_refuses_at_once() {
    let config = config(2, ServiceTime::Constant(MS(10)), 2, false);
    let steps = [(0, Arrive(1)), (1, Arrive(2)), (2, Arrive(3)), (3, Arrive(4)), (4, Arrive(5)), (10, Advance), (40, Advance)];
    let (answers, counts) = play(&config, &steps);
    assert_eq!(answers, [(5, 4, 503), (1, 10, 200), (2, 11, 200), (3, 20, 200), (4, 21, 200)]);
    assert_eq!((counts.served, counts.queue_full, counts.useful, counts.wasted), (4, 1, MS(40), Span::ZERO));
}

#[test]
fn a_late_timer_delays_answers_and_not_the_work() {
    let config = config(1, ServiceTime::Constant(MS(10)), 10, false);
    let arrivals = [(0, Arrive(1)), (0, Arrive(2)), (0, Arrive(3))];
    let punctual = [&arrivals[..], &[(10, Advance), (20, Advance), (30, Advance)]].concat();
    let late = [&arrivals[..], &[(19, Advance), (35, Advance)]].concat();
    assert_eq!(play(&config, &punctual), play(&config, &late));
}

#[test]
fn a_service_that_notices_nothing_works_on_for_clients_that_have_gone() {
    let config = config(1, ServiceTime::Constant(MS(10)), 5, false);
    let steps = [(0, Arrive(1)), (0, Arrive(2)), (0, Arrive(3)), (4, Cancel(1)), (5, Cancel(2)), (5, Cancel(2)), (40, Advance)];
    let (answers, counts) = play(&config, &steps);
    assert_eq!(answers, [(3, 30, 200)], "the third waits for the work of the two that have gone");
    assert_eq!((counts.served, counts.served_for_nobody, counts.cancelled, counts.given_up), (3, 2, 2, 0));
    assert_eq!((counts.useful, counts.wasted, counts.wasted_share()), (MS(10), MS(20), Some(2.0 / 3.0)));
}

#[test]
fn a_service_that_notices_gives_the_work_up() {
    let config = config(1, ServiceTime::Constant(MS(10)), 5, true);
    let steps = [(0, Arrive(1)), (0, Arrive(2)), (0, Arrive(3)), (4, Cancel(1)), (5, Cancel(2)), (40, Advance), (40, Cancel(3))];
    let (answers, counts) = play(&config, &steps);
    assert_eq!(answers, [(3, 15, 200)], "4 ms for the first, 1 ms for the second, 10 for the third");
    assert_eq!((counts.served, counts.served_for_nobody, counts.cancelled, counts.given_up), (1, 0, 2, 2));
    assert_eq!((counts.useful, counts.wasted), (MS(10), MS(5)));
}

#[test]
fn who_leaves_the_queue_makes_room_only_where_that_is_noticed() {
    let steps = [(0, Arrive(1)), (0, Arrive(2)), (1, Cancel(2)), (2, Arrive(3)), (30, Advance)];
    let time = ServiceTime::Constant(MS(10));
    assert_eq!(play(&config(1, time.clone(), 1, true), &steps).0, [(1, 10, 200), (3, 20, 200)]);
    assert_eq!(play(&config(1, time, 1, false), &steps).0, [(3, 2, 503), (1, 10, 200)]);
}

#[test]
fn without_a_service_time_the_answer_comes_with_the_arrival() {
    let config = config(1, ServiceTime::Constant(Span::ZERO), 0, false);
    assert_eq!(play(&config, &[(3, Arrive(1)), (3, Arrive(2))]).0, [(1, 3, 200), (2, 3, 200)]);
}

#[test]
fn the_limiter_refuses_first_and_with_its_own_words() {
    let refusing = Refusing { retry_after: Some(RetryAfter::Constant(MS(3000))), ..Refusing::plain() };
    let limiter = SlidingLog { limit: 1, window: MS(100), shared: Shared { refusing, ..Shared::plain() } };
    let limited = ServiceConfig {
        limiter: Some(LimitersConfig(vec![LimiterConfig::SlidingLog(limiter)])),
        ..config(1, ServiceTime::Constant(MS(10)), 0, false)
    };
    let mut service = Tested::new(&limited);
    let mut out = Vec::new();
    (0..2).for_each(|id| service.arrive(at(0), request(id), &mut out));
    assert_eq!(out, [Answer { id: 1, at: at(0), status: 429, hint: Said::new(Some(MS(3000)), None) }]);
    assert_eq!((service.counts().limited, service.counts().queue_full), (1, 0));
}

#[test]
fn unlimited_servers_have_a_bound_and_it_is_counted() {
    let unlimited =
        ServiceConfig { servers: Some(config::Servers::Unlimited), ..config(1, ServiceTime::Constant(MS(10)), 1_000_000, false) };
    let mut service = Tested::new(&unlimited);
    let mut out = Vec::new();
    let n = super::super::servers::MAX_IN_SERVICE as u64;
    (0..n + 5).for_each(|id| service.arrive(at(0), request(id), &mut out));
    assert!(out.len() == 5 && out.iter().all(|a| a.status == 503));
    assert_eq!((service.counts().bound_reached, service.counts().in_service, service.counts().queued), (5, n, 0));
    service.advance(at(10), &mut out);
    assert_eq!((service.counts().served, service.due()), (n, None));
}

#[test]
fn time_that_runs_backwards_stands_still() {
    let config = config(1, ServiceTime::Constant(MS(10)), 5, false);
    let (answers, _) = play(&config, &[(20, Arrive(1)), (5, Arrive(2)), (5, Cancel(9)), (50, Advance)]);
    assert_eq!(answers, [(1, 30, 200), (2, 40, 200)]);
}

/// The mean wait in the queue, in service times, of Poisson arrivals at a load of 80% on one server.
fn mean_wait(time: ServiceTime) -> f64 {
    let mean = time.mean();
    let mut service = Tested::new(&config(1, time, 10_000, false));
    let (mut now, mut arrived, mut out, mut total) = (Timestamp::ZERO, Vec::new(), Vec::new(), 0.0);
    let n = 400_000u64;
    for id in 0..n {
        let gap = Key { seed: 2, operation: id, ..Key::default() }.stream(Purpose::Arrival).exponential() / 0.8;
        now += mean.scale(gap);
        arrived.push(now);
        service.arrive(now, request(id), &mut out);
        for answer in out.drain(..) {
            total += answer.at.since(arrived[answer.id as usize]).as_secs_f64();
        }
    }
    let counts = service.counts();
    assert_eq!(counts.queue_full, 0);
    (total - counts.useful.as_secs_f64()) / counts.served as f64 / mean.as_secs_f64()
}

#[test]
fn waits_are_those_of_the_formulas() {
    // Pollaczek and Khinchine at a load of 0.8: 0.8 / 0.2 service times for exponential ones, half of it for constant ones.
    let exponential = mean_wait(ServiceTime::Exponential(ExponentialTime { mean: MS(10) }));
    assert!((exponential / 4.0 - 1.0).abs() < 0.05, "M/M/1: {exponential}");
    let constant = mean_wait(ServiceTime::Constant(MS(10)));
    assert!((constant / 2.0 - 1.0).abs() < 0.05, "M/D/1: {constant}");
}

/// A service as a plan says it.
fn service(text: &str) -> Tested {
    let text = format!(
        "version: 1\ntarget: {{ service: {{ {text} }} }}\nfleets: {{ a: {{ clients: 1, policy: {{ attempts: 1, timeout: 1s }}, load: {{ closed: {{ think: 1s }} }} }} }}\nlength: 1m\n"
    );
    let source = crate::plan::Source { file: "plan.yaml", text: &text, overrides: &[], env: &|_| None };
    let plan = crate::plan::load(&source).unwrap_or_else(|error| panic!("{error}")).plan;
    Tested::new(plan.target.behaviour().unwrap())
}

/// What a request says of itself, for those steps that need it.
fn says(id: u64, of: Metadata) -> Arrival {
    Arrival { of, ..request(id) }
}

/// An operation by its number.
fn of_operation(number: u128) -> Metadata {
    Metadata { idempotency_key: Some(KeyHash::new(number)), ..Metadata::nothing(Timestamp::ZERO) }
}

/// The answers as (id, milliseconds, status).
fn heard(out: &[Answer]) -> Vec<(u64, u64, u16)> {
    out.iter().map(|answer| (answer.id, answer.at.as_millis(), answer.status)).collect()
}

#[test]
fn the_memory_bound_comes_before_everything_else() {
    let mut service = service("servers: 1, service_time: 10ms, queue: 100, memory: 2, limiter: { concurrency: { limit: 1 } }");
    let mut out = Vec::new();
    (1..=3).for_each(|id| service.arrive(at(0), request(id), &mut out));
    assert_eq!(heard(&out), [(2, 0, 429), (3, 0, 429)]);
    let mut service = self::service("servers: 1, service_time: 10ms, queue: 100, memory: 2");
    out.clear();
    (1..=3).for_each(|id| service.arrive(at(0), request(id), &mut out));
    assert_eq!((heard(&out), service.counts().memory_full), (vec![(3, 0, 503)], 1));
}

#[test]
fn an_operation_is_served_once_and_its_newest_waiter_gets_the_answer() {
    let mut service = service("servers: 1, service_time: 10ms, queue: 100, deduplicate: { ttl: 1s }");
    let mut out = Vec::new();
    service.arrive(at(0), says(1, of_operation(7)), &mut out);
    service.arrive(at(0), says(2, of_operation(8)), &mut out);
    service.cancel(at(1), 2, &mut out);
    service.arrive(at(1), says(3, of_operation(8)), &mut out);
    service.arrive(at(2), says(4, of_operation(7)), &mut out);
    service.advance(at(30), &mut out);
    service.arrive(at(40), says(5, of_operation(8)), &mut out);
    service.advance(at(2000), &mut out);
    service.arrive(at(2000), says(6, of_operation(8)), &mut out);
    service.advance(at(2010), &mut out);
    let expected = [(4, 10, 200), (1, 10, 200), (3, 20, 200), (5, 40, 200), (6, 2010, 200)];
    assert_eq!(heard(&out), expected, "the first still waits; the third kept the second's place");
    let counts = service.counts();
    assert_eq!((counts.served, counts.duplicates_suppressed, counts.superseded, counts.duplicates_executed), (3, 3, 1, 1));
    assert_eq!(counts.wasted, Span::ZERO);
    balance(&service);
}

#[test]
fn without_deduplication_each_attempt_is_executed_and_counted() {
    let mut service = service("servers: 1, service_time: 10ms, queue: 100");
    let mut out = Vec::new();
    for (id, operation) in [(1, 7), (2, 7), (3, 8), (4, 7)] {
        service.arrive(at(0), says(id, of_operation(operation)), &mut out);
    }
    service.arrive(at(0), request(5), &mut out);
    service.advance(at(50), &mut out);
    assert_eq!((service.counts().served, service.counts().duplicates_executed), (5, 2));
}

#[test]
fn whoever_waits_too_long_hears_of_it_in_time_or_never() {
    let mut out = Vec::new();
    let mut answered = service("servers: 1, service_time: 10ms, queue: { bound: 9, expire_after: 15ms }");
    (1..=3).for_each(|id| answered.arrive(at(0), request(id), &mut out));
    assert_eq!(answered.due(), Some(at(10)));
    answered.advance(at(40), &mut out);
    assert_eq!((heard(&out), answered.counts().expired), (vec![(1, 10, 200), (3, 15, 503), (2, 20, 200)], 1));
    out.clear();
    let mut silent = service("servers: 1, service_time: 10ms, queue: { bound: 9, expire_after: { age: 15ms, answer: silent } }");
    (1..=3).for_each(|id| silent.arrive(at(0), request(id), &mut out));
    silent.advance(at(40), &mut out);
    assert_eq!((heard(&out), silent.counts().expired), (vec![(1, 10, 200), (2, 20, 200)], 1));
    balance(&silent);
}

#[test]
fn capacity_falls_for_what_is_in_service_too() {
    let mut service = service("servers: 1, service_time: 10ms, queue: 9");
    let mut out = Vec::new();
    (1..=2).for_each(|id| service.arrive(at(0), request(id), &mut out));
    let capacity = |percent: &str| ServiceChange { capacity: Some(Share::parse(percent).unwrap()), ..ServiceChange::nothing() };
    service.change(at(5), &capacity("20%"), &mut out);
    let holding = service.holding();
    assert_eq!((holding.capacity, holding.capacity_goal, holding.changes, holding.is_down), (0.2, 0.2, 1, false));
    assert_eq!(service.due(), Some(at(30)));
    service.change(at(35), &capacity("100%"), &mut out);
    service.advance(at(60), &mut out);
    assert_eq!(heard(&out), [(1, 30, 200), (2, 44, 200)]);
    service.change(at(60), &capacity("0%"), &mut out);
    service.arrive(at(60), request(3), &mut out);
    assert_eq!(service.due(), None, "without capacity nothing ends");
    service.change(at(100), &capacity("100%"), &mut out);
    assert_eq!(service.due(), Some(at(110)));
}

#[test]
fn a_restart_breaks_what_it_loses_and_serves_what_it_keeps() {
    for (keeps, expected) in [
        (false, vec![(1, 5, 0), (2, 5, 0), (3, 10, 0), (4, 40, 200)]),
        (true, vec![(1, 5, 0), (3, 10, 0), (2, 35, 200), (4, 45, 200)]),
    ] {
        let mut service = service("servers: 1, service_time: 10ms, queue: 9");
        let mut out = Vec::new();
        (1..=2).for_each(|id| service.arrive(at(0), request(id), &mut out));
        let restart = RestartChange { down_for: MS(20), keeps_queue: keeps };
        service.change(at(5), &ServiceChange { restart: Some(restart), ..ServiceChange::nothing() }, &mut out);
        service.arrive(at(10), request(3), &mut out);
        assert_eq!(service.due(), Some(at(25)));
        service.arrive(at(30), request(4), &mut out);
        service.advance(at(60), &mut out);
        assert_eq!((heard(&out), service.counts().lost), (expected, if keeps { 2 } else { 3 }), "keeps: {keeps}");
        assert_eq!(service.counts().wasted, MS(5));
        balance(&service);
    }
}

#[test]
fn a_refused_backlog_is_told_to_come_back_at_the_pace_of_the_service() {
    let mut service = service(
        "servers: 2, service_time: 1s, queue: 9, reject_backlog: { deeper_than: 3, retry_after: backlog, hint: retry_after_ms }",
    );
    let mut out = Vec::new();
    (1..=6).for_each(|id| service.arrive(at(0), request(id), &mut out));
    let hints: Vec<(u64, Option<Span>)> = out.iter().map(|answer| (answer.id, answer.hint.map(|said| said.wait))).collect();
    assert_eq!(hints, [(3, Some(MS(500))), (4, Some(MS(1000))), (5, Some(MS(1500))), (6, Some(MS(2000)))]);
    assert_eq!((service.counts().backlog_rejected, service.counts().queued), (4, 0));
    let mut old = self::service("servers: 1, service_time: 1s, queue: 9, reject_backlog: { older_than: 300ms }");
    out.clear();
    (1..=2).for_each(|id| old.arrive(at(id * 100), request(id), &mut out));
    assert_eq!(old.due(), Some(at(500)));
    old.advance(at(700), &mut out);
    assert_eq!(heard(&out), [(2, 500, 503)]);
    balance(&old);
}

#[test]
fn a_drain_lets_the_queue_go_at_its_rate_and_whoever_meets_nobody_passes() {
    let mut service = service("servers: 5, service_time: 1ms, queue: 9, drain: 100/s");
    let mut out = Vec::new();
    (1..=8).for_each(|id| service.arrive(at(0), request(id), &mut out));
    service.advance(at(100), &mut out);
    let expected = [(1, 1, 200), (2, 1, 200), (3, 1, 200), (4, 1, 200), (5, 1, 200), (6, 2, 200), (7, 12, 200), (8, 22, 200)];
    assert_eq!(heard(&out), expected);
}

#[test]
fn refusals_cost_what_is_said() {
    let mut service = service(
        "servers: 1, service_time: 100ms, queue: 1, cost_of_refusal: 10%, limiter: { token_bucket: { rate: 1/s, burst: 2 } }",
    );
    let mut out = Vec::new();
    (1..=4).for_each(|id| service.arrive(at(0), request(id), &mut out));
    service.advance(at(500), &mut out);
    assert_eq!(heard(&out), [(3, 0, 429), (4, 0, 429), (1, 100, 200), (2, 220, 200)], "two refusals delay the second by 20 ms");
    service.arrive(at(500), request(5), &mut out);
    assert_eq!((service.due(), service.counts().in_service), (Some(at(510)), 0), "an idle server pays at once");
    service.advance(at(510), &mut out);
    assert_eq!((service.due(), service.counts().refusing), (None, MS(30)));
    balance(&service);
}

#[test]
fn a_server_is_taken_until_what_is_called_answers() {
    let mut service = service("servers: 1, service_time: 10ms, queue: 9, notices_cancel: true").that_calls();
    let (mut out, mut calls, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
    (1..=3).for_each(|id| service.arrive(at(0), request(id), &mut out));
    service.advance(at(10), &mut out);
    service.take_calls(&mut calls);
    assert_eq!((calls.len(), calls[0].at, service.due(), service.counts().in_service), (1, at(10), None, 1));
    service.returned(at(50), calls[0].job, 503, &mut out);
    service.advance(at(60), &mut out);
    calls.clear();
    service.take_calls(&mut calls);
    service.cancel(at(70), 2, &mut out);
    service.take_given_up(&mut given_up);
    assert_eq!((given_up, heard(&out)), (vec![calls[0].job], vec![(1, 50, 503)]));
    assert_eq!((service.due(), service.counts().failed, service.counts().wasted), (Some(at(80)), 1, MS(10)));
    balance(&service);
}

#[test]
fn whatever_happens_the_books_balance_and_time_does_not_stand_still() {
    let configs = [
        "servers: 2, service_time: { exponential: { mean: 10ms } }, queue: { bound: 5, order: lifo, expire_after: 30ms }",
        "servers: 3, service_time: 7ms, queue: { bound: 8, order: priority, shed: [priority, attempt] }, notices_cancel: true, deduplicate: { ttl: 50ms }",
        "servers: 1, service_time: 3ms, queue: { bound: 9, codel: { target: 1ms, interval: 10ms } }, cost_of_refusal: 50%, memory: 6",
        "servers: 2, service_time: 5ms, queue: 30, drain: 150/s, reject_backlog: { older_than: 80ms }, limiter: [{ concurrency: { limit: 9 } }, { token_bucket: { rate: 300/s, burst: 5, per: client } }]",
        "servers: unlimited, service_time: 20ms, slows_with_concurrency: 10%, cold_cache: { hits: 90%, miss_costs: 10x, warms_after: 50 }, slow_start: { from: 10%, over: 100ms }",
        "servers: 2, service_time: 5ms, queue: { bound: 20, order: adaptive_lifo, expire_after: { age: 40ms, answer: silent } }, admission: { shares: { background: 50%, best_effort: 20% }, max_attempt: 5 }",
    ];
    for (number, text) in configs.iter().enumerate() {
        let mut service = service(text);
        let mut out = Vec::new();
        let mut draws = Key { seed: 5, operation: number as u64, ..Key::default() }.stream(Purpose::Arrival);
        let (mut now, mut ids) = (Timestamp::ZERO, Vec::new());
        for id in 0..20_000u64 {
            now += Span::from_micros(draws.bits() % 6_000);
            let of = Metadata {
                idempotency_key: Some(KeyHash::new(u128::from(draws.bits() % 64 + 1))),
                enqueued: now,
                client: draws.bits() % 3,
                fleet: 0,
                attempt: 1 + (draws.bits() % 8) as u32,
                priority: Priority::ALL[(draws.bits() % 4) as usize],
            };
            service.arrive(now, says(id, of), &mut out);
            if draws.bits().is_multiple_of(4) {
                service.cancel(now, id.saturating_sub(draws.bits() % 10), &mut out);
            }
            let change = match draws.bits() % 400 {
                0 => ServiceChange {
                    restart: Some(RestartChange { down_for: MS(draws.bits() % 50), keeps_queue: id % 2 == 0 }),
                    ..ServiceChange::nothing()
                },
                1 => ServiceChange {
                    capacity: Some(Share::new(draws.unit()).unwrap()),
                    over: MS(draws.bits() % 100),
                    ..ServiceChange::nothing()
                },
                2 => ServiceChange { capacity: Some(Share::ALL), ..ServiceChange::nothing() },
                3 => ServiceChange { reject_backlog: Some(Refusing::plain()), ..ServiceChange::nothing() },
                _ => ServiceChange::nothing(),
            };
            service.change(now, &change, &mut out);
            assert!(out.iter().all(|answer| answer.at <= now), "{text}");
            ids.extend(out.drain(..).map(|answer| answer.id));
            let due = service.due();
            assert!(due.is_none_or(|due| due > now), "{text}: {due:?} at {now:?}");
            balance(&service);
        }
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{text}: an id is answered once");
        let counts = service.counts();
        assert!(counts.served > 100 && counts.lost > 0, "{text}: {counts:?}");
    }
}
