//! Several services, driven by hand.

use super::{CallConfig, CallCounts, FailsConfig, Member, System, SystemConfig};
use crate::config::{At, Place};
use crate::policy::backoff::{Fixed, Jitter, jitter::Plain};
use crate::policy::budget::{BucketConfig, BudgetConfig, ConcurrentConfig, Kind, Tier, WhenSpent};
use crate::policy::hint::Honor;
use crate::policy::{Attempts, Backoff, Policy, RetryAfter};
use crate::rng::{Key, Purpose};
use crate::service::change::RestartChange;
use crate::service::config::Servers;
use crate::service::job::NO_SLOT;
use crate::service::key::name_hash;
use crate::service::time::ExponentialTime;
use crate::service::{Answer, Arrival, BROKEN, Counts, Metadata, ServiceChange, ServiceConfig, ServiceTime};
use crate::time::{Share, Span, Timestamp};

const MS: fn(u64) -> Span = Span::from_millis;
/// One way between two services.
const LATENCY: Span = Span::from_millis(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + MS(millis)
}

fn service(servers: u32, millis: u64) -> ServiceConfig {
    ServiceConfig::new(Servers::Limited(servers), ServiceTime::Constant(MS(millis)))
}

fn policy(attempts: u32) -> Policy {
    Policy::new(Attempts::Limited(attempts), MS(1_000))
}

fn calling(service: ServiceConfig, to: usize, policy: Policy) -> Member {
    let calls = CallConfig { to, policy, latency: LATENCY, on_failure: 503 };
    Member { calls: Some(calls), ..Member::of(service) }
}

/// It fails all that it serves, or that share of it.
fn failing(service: ServiceConfig, share: f64) -> Member {
    Member { fails: Some(FailsConfig { share: Share::new(share).unwrap(), status: 500 }), ..Member::of(service) }
}

/// A front service that calls `db`.
fn pair(front: ServiceConfig, policy: Policy, db: Member) -> SystemConfig {
    SystemConfig { front: calling(front, 0, policy), services: vec![("db".into(), db)] }
}

fn request(id: u64, destination: &str) -> Arrival {
    let destination = if destination.is_empty() { 0 } else { name_hash(destination.as_bytes()) };
    let key = Key { seed: 3, operation: id, attempt: 1, ..Key::default() };
    Arrival { id, key, destination, before: NO_SLOT, of: Metadata::nothing(Timestamp::ZERO) }
}

#[derive(Clone, Copy)]
enum Step {
    Arrive(u64),
    To(&'static str, u64),
    Cancel(u64),
}
use Step::{Arrive, Cancel, To};

/// Runs steps at moments in milliseconds and then to the end; gives the answers as (id, milliseconds, status).
fn play(config: &SystemConfig, steps: &[(u64, Step)]) -> (Vec<(u64, u64, u16)>, System) {
    let (mut system, mut out) = (System::new(config), Vec::new());
    for (millis, step) in steps {
        while let Some(due) = system.due().filter(|due| *due < at(*millis)) {
            system.advance(due, &mut out);
        }
        match step {
            Arrive(id) => drop(system.arrive(at(*millis), request(*id, ""), &mut out)),
            To(name, id) => drop(system.arrive(at(*millis), request(*id, name), &mut out)),
            Cancel(id) => system.cancel(at(*millis), *id, NO_SLOT, &mut out),
        }
    }
    while let Some(due) = system.due() {
        system.advance(due, &mut out);
    }
    (out.iter().map(|a| (a.id, a.at.as_millis(), a.status)).collect(), system)
}

fn counts(system: &System, name: &str) -> Counts {
    system.each().into_iter().find(|(known, _)| *known == name).map(|(_, counts)| counts).unwrap()
}

fn edge(system: &System) -> CallCounts {
    system.calls()[0].2
}

#[test]
fn a_request_goes_to_the_service_that_it_names_and_else_to_the_front() {
    let services = vec![("db".to_string(), Member::of(service(1, 5))), ("cache".to_string(), Member::of(service(1, 1)))];
    let config = SystemConfig { front: Member::of(service(1, 10)), services };
    let steps = [(0, Arrive(1)), (0, To("db", 2)), (0, To("cache", 3)), (0, To("db", 4)), (0, To("nobody", 5))];
    let (answers, system) = play(&config, &steps);
    assert_eq!(answers, [(3, 1, 200), (2, 5, 200), (1, 10, 200), (4, 10, 200), (5, 20, 200)]);
    let served: Vec<(&str, u64)> = system.each().into_iter().map(|(name, counts)| (name, counts.served)).collect();
    assert_eq!(served, [("service", 2), ("db", 2), ("cache", 1)]);
    assert_eq!((system.counts().served, system.counts().useful), (2, MS(31)), "the front's own, and the work of all");
}

#[test]
fn a_call_follows_the_own_work_and_keeps_the_server() {
    let config = pair(service(1, 10), policy(1), Member::of(service(1, 5)));
    let (answers, system) = play(&config, &[(0, Arrive(1)), (0, Arrive(2))]);
    assert_eq!(answers, [(1, 17, 200), (2, 34, 200)], "10 of its own, 1 there, 5, 1 back, and then the next");
    let all = CallCounts { calls: 2, attempts: 2, succeeded: 2, ..CallCounts::default() };
    assert_eq!((edge(&system), edge(&system).retries(), edge(&system).amplification()), (all, 0, Some(1.0)));
    assert_eq!(system.calls().iter().map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>(), [("service", "db")]);
}

#[test]
fn retry_layers_multiply() {
    let (front, mid) = (calling(service(1, 1), 0, policy(3)), calling(service(1, 1), 1, policy(3)));
    let services = vec![("mid".to_string(), mid), ("db".to_string(), failing(service(1, 1), 1.0))];
    let config = SystemConfig { front, services };
    // The client's three attempts are the third layer.
    let (answers, system) = play(&config, &[(0, Arrive(1)), (100, Arrive(2)), (200, Arrive(3))]);
    assert!(answers.iter().all(|(.., status)| *status == 503) && answers.len() == 3, "{answers:?}");
    assert_eq!(counts(&system, "db").arrived, 27);
    let seen: Vec<(u64, u64, u64)> = system.calls().iter().map(|(.., c)| (c.calls, c.attempts, c.failed)).collect();
    assert_eq!(seen, [(3, 9, 3), (9, 27, 9)]);
}

#[test]
fn a_callee_that_is_too_slow_is_given_up_and_may_notice() {
    for (notices, given_up, served) in [(true, 2, 0), (false, 0, 2)] {
        let slow = ServiceConfig { notices_cancel: notices, ..service(2, 100) };
        let fixed = Backoff::Fixed(Fixed::new(MS(7)));
        let policy = Policy { timeout: MS(10), backoff: fixed, ..policy(2) };
        let config = pair(service(1, 1), policy, Member::of(slow));
        let (answers, system) = play(&config, &[(0, Arrive(1))]);
        assert_eq!(answers, [(1, 28, 503)], "1 of its own, 10, a wait of 7, 10");
        let db = counts(&system, "db");
        assert_eq!((db.cancelled, db.given_up, db.served_for_nobody), (2, given_up, served), "notices: {notices}");
        assert_eq!((edge(&system).timed_out, edge(&system).failed), (2, 1));
    }
}

#[test]
fn an_answer_that_comes_with_the_timeout_counts() {
    for (timeout, status) in [(12, 200), (11, 503)] {
        let config = pair(service(1, 1), Policy { timeout: MS(timeout), ..policy(1) }, Member::of(service(1, 10)));
        let (answers, _) = play(&config, &[(0, Arrive(1))]);
        assert_eq!(answers, [(1, 1 + timeout, status)]);
    }
}

#[test]
fn who_notices_that_its_client_has_gone_ends_its_call_too() {
    for (notices, wanted) in [(true, (1, 0, 1)), (false, (0, 1, 0))] {
        let front = ServiceConfig { notices_cancel: notices, ..service(1, 1) };
        let db = ServiceConfig { notices_cancel: true, ..service(1, 50) };
        let config = pair(front, policy(3), Member::of(db));
        let (answers, system) = play(&config, &[(0, Arrive(1)), (0, Arrive(2)), (20, Cancel(1)), (20, Cancel(1))]);
        let (calls, db) = (edge(&system), counts(&system, "db"));
        assert_eq!((calls.abandoned, calls.succeeded - 1, db.given_up), wanted, "notices: {notices}");
        // The second waits for the server: it is served by the front from 20 or 53 on, and by db as soon as that has heard.
        let begins = if notices { 20 } else { 53 };
        assert_eq!(answers, [(2, begins + 53, 200)]);
        let front = counts(&system, "service");
        assert_eq!((front.cancelled, front.in_service, front.wasted), (1, 0, MS(1)));
    }
}

#[test]
fn what_ends_while_a_backoff_is_waited_for_is_not_retried() {
    let front = ServiceConfig { notices_cancel: true, ..service(1, 1) };
    let policy = Policy { backoff: Backoff::Fixed(Fixed::new(MS(100))), ..policy(3) };
    let config = pair(front, policy, failing(service(1, 1), 1.0));
    let (answers, system) = play(&config, &[(0, Arrive(1)), (50, Cancel(1))]);
    assert!(answers.is_empty());
    assert_eq!((counts(&system, "db").arrived, edge(&system).abandoned), (1, 1));
}

fn budgeted(attempts: u32, kind: Kind) -> Policy {
    let value = BudgetConfig { kind, tier: Tier::Fleet, when_spent: WhenSpent::GiveUp };
    Policy { budget: Some(At { value, place: Place::default() }), ..policy(attempts) }
}

#[test]
fn a_budget_is_shared_by_the_calls_of_a_service() {
    let bucket = Kind::Bucket(BucketConfig { deposit: Share::default(), burst: 3 });
    let config = pair(service(1, 1), budgeted(3, bucket), failing(service(1, 1), 1.0));
    let (_, system) = play(&config, &[(0, Arrive(1)), (100, Arrive(2)), (200, Arrive(3))]);
    assert_eq!((edge(&system).calls, edge(&system).attempts), (3, 6), "2 retries, 1 and none");
}

#[test]
fn an_abandoned_call_gives_its_budget_back() {
    let one = Kind::Concurrent(ConcurrentConfig { max: Some(1), share: None, at_least: None });
    let front = ServiceConfig { notices_cancel: true, ..service(2, 1) };
    let policy = Policy { backoff: Backoff::Fixed(Fixed::new(MS(100))), ..budgeted(2, one) };
    let config = pair(front, policy, failing(service(1, 1), 1.0));
    let steps = [(0, Arrive(1)), (10, Arrive(2)), (50, Cancel(1)), (60, Arrive(3))];
    let (_, system) = play(&config, &steps);
    assert_eq!(edge(&system).attempts, 4, "the second has no retry, the third has the first one's");
}

#[test]
fn hints_are_honoured_between_services() {
    use crate::service::limiter::shared::Shared;
    use crate::service::limiter::{LimiterConfig, LimitersConfig, SlidingLog};
    use crate::service::refusal::{self, Refusing};
    let refusing = Refusing { retry_after: Some(refusal::RetryAfter::Constant(MS(2_000))), ..Refusing::plain() };
    let log = SlidingLog { limit: 1, window: MS(500), shared: Shared { refusing, ..Shared::plain() } };
    let db = ServiceConfig { limiter: Some(LimitersConfig(vec![LimiterConfig::SlidingLog(log)])), ..service(1, 1) };
    // 1 of its own, 1 there, 1 back, the wait, and 2 or 3 again.
    for (retry_after, answer) in [(RetryAfter::ignore(), (2, 206, 503)), (RetryAfter::Honor(Honor::plain()), (2, 2_206, 200))] {
        let policy = Policy { retry_after, backoff: Backoff::Fixed(Fixed::new(MS(1))), ..policy(2) };
        let config = pair(service(1, 1), policy, Member::of(db.clone()));
        let (answers, _) = play(&config, &[(0, Arrive(1)), (200, Arrive(2))]);
        assert_eq!(answers, [(1, 4, 200), answer]);
    }
}

#[test]
fn unlimited_attempts_without_a_backoff_do_not_stop_the_time() {
    let policy = Policy { attempts: Attempts::Unlimited, deadline: Some(MS(50)), ..policy(1) };
    let mut config = pair(service(1, 0), policy, failing(service(1, 0), 1.0));
    config.front.calls.as_mut().unwrap().latency = Span::ZERO;
    let (mut system, mut out) = (System::new(&config), Vec::new());
    system.arrive(at(0), request(1, ""), &mut out);
    (1..=1_000).for_each(|_| system.advance(system.due().unwrap(), &mut out));
    assert!(system.due().unwrap() > Timestamp::ZERO + Span(900), "{:?}", system.due());
}

#[test]
fn a_change_is_of_the_service_that_it_names_and_a_restart_breaks_calls() {
    let restart = |of: &str| ServiceChange {
        of: (!of.is_empty()).then(|| of.to_string()),
        restart: Some(RestartChange { down_for: MS(5), keeps_queue: false }),
        ..ServiceChange::nothing()
    };
    // 10 of its own, 1 there; restarted at 20, heard at 21, and what comes at 27 is served for 50.
    let retried = (vec![(1, 78, 200)], 2, 1, 0);
    let lost = (vec![(1, 20, BROKEN)], 1, 0, 1);
    let untouched = (vec![(1, 62, 200)], 1, 1, 0);
    for (of, (wanted, attempts, succeeded, abandoned)) in [("db", retried), ("", lost), ("nobody", untouched)] {
        let policy = Policy { backoff: Backoff::Fixed(Fixed::new(MS(5))), ..policy(2) };
        let config = pair(service(1, 10), policy, Member::of(service(1, 50)));
        let (mut system, mut out) = (System::new(&config), Vec::new());
        let names: Vec<&str> = system.holding().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["service", "db"]);
        system.arrive(at(0), request(1, ""), &mut out);
        system.advance(at(19), &mut out);
        system.change(at(20), &restart(of), &mut out);
        system.advance(at(1_000), &mut out);
        assert_eq!(out.iter().map(|a| (a.id, a.at.as_millis(), a.status)).collect::<Vec<_>>(), wanted, "{of}");
        let calls = edge(&system);
        assert_eq!((calls.attempts, calls.succeeded, calls.abandoned), (attempts, succeeded, abandoned), "{of}");
    }
}

/// Poisson arrivals on two services that call a third, which is slow, bounded and fails some; some clients go. Told the time at every due
/// moment, or at arrivals alone.
fn workload(punctual: bool) -> (Vec<Answer>, String) {
    let exponential = |mean| ServiceTime::Exponential(ExponentialTime { mean: MS(mean) });
    let of = |servers, mean| ServiceConfig::new(Servers::Limited(servers), exponential(mean));
    let jitter = Jitter::Full(Plain {});
    let policy = Policy { timeout: MS(30), backoff: Backoff::Fixed(Fixed { jitter, ..Fixed::new(MS(20)) }), ..policy(3) };
    let front = calling(ServiceConfig { notices_cancel: true, ..of(20, 5) }, 1, policy.clone());
    let other = calling(of(20, 5), 1, policy);
    let services = vec![("other".to_string(), other), ("db".to_string(), failing(of(4, 10), 0.2))];
    let (mut system, mut out) = (System::new(&SystemConfig { front, services }), Vec::new());
    let mut now = Timestamp::ZERO;
    for id in 0..5_000 {
        now += MS(4).scale(Key { seed: 9, operation: id, ..Key::default() }.stream(Purpose::Arrival).exponential());
        while let Some(due) = system.due().filter(|due| punctual && *due <= now) {
            system.advance(due, &mut out);
        }
        match id % 5 {
            0 if id > 20 => system.cancel(now, id - 17, NO_SLOT, &mut out),
            1 => drop(system.arrive(now, request(id, "other"), &mut out)),
            _ => drop(system.arrive(now, request(id, ""), &mut out)),
        }
    }
    while let Some(due) = system.due() {
        system.advance(due, &mut out);
    }
    let books = format!("{:?} {:?}", system.each(), system.calls());
    (out, books)
}

#[test]
fn a_late_timer_changes_nothing_and_a_run_repeats() {
    let punctual = workload(true);
    assert_eq!(punctual, workload(true));
    assert_eq!(punctual, workload(false));
    let (answers, books) = punctual;
    assert!(answers.windows(2).all(|pair| pair[0].at <= pair[1].at), "in the order of time");
    assert!(answers.len() > 3_000 && answers.iter().any(|answer| answer.status == 503), "{books}");
}

#[test]
fn the_books_of_calls_balance_and_nothing_is_left_behind() {
    let config = pair(service(3, 2), Policy { timeout: MS(9), ..policy(3) }, failing(service(2, 5), 0.3));
    let steps: Vec<(u64, Step)> = (0..400).map(|id| (id, Arrive(id))).collect();
    let (answers, system) = play(&config, &steps);
    let CallCounts { calls, attempts, timed_out, succeeded, failed, abandoned } = edge(&system);
    assert_eq!((calls, abandoned), (400, 0));
    assert_eq!(calls, succeeded + failed + abandoned);
    assert_eq!(answers.iter().filter(|(.., status)| *status == 200).count() as u64, succeeded);
    assert!(timed_out > 0 && attempts > calls && attempts <= 3 * calls);
    assert_eq!(counts(&system, "db").arrived, attempts);
    let super::Kind::Mesh(mesh) = &system.0 else { panic!("two services") };
    assert!(mesh.is_idle(), "{mesh:?}");
}

#[test]
fn one_service_that_calls_nothing_is_itself() {
    assert!(matches!(System::new(&SystemConfig::of(service(1, 1))).0, super::Kind::Alone(_)));
    let failing = SystemConfig { front: failing(service(1, 1), 0.25), services: Vec::new() };
    let (answers, _) = play(&failing, &(0..4_000).map(|id| (2 * id, Arrive(id))).collect::<Vec<_>>());
    let failed = answers.iter().filter(|(.., status)| *status == 500).count();
    assert!((900..1_100).contains(&failed), "{failed}");
}
