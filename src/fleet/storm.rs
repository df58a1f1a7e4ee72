//! Tests of the machine in virtual time: a scripted wire answers, and what comes out is held against the books.

use super::config::{Always, CatchUp};
use super::*;
use crate::config::{At, Place};
use crate::event::{AttemptOutcome, Event, OperationId, OperationOutcome};
use crate::load::{Closed, Constant, Load, Poisson, Ramp, Trigger};
use crate::pace::Pacer;
use crate::policy::backoff::{Exponential, Fixed, Jitter, exponential::Clamp, jitter::Plain};
use crate::policy::budget::{BudgetConfig, Tier};
use crate::policy::hint::Honor;
use crate::policy::{Attempts, Backoff, Budget, Policy, RetryAfter, classify};
use crate::rng::{Key, Purpose};
use crate::time::{Rate, Share, Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the wire does with an attempt: after which time it answers how, with which hint; nothing means silence.
type Script<'a> = &'a dyn Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome, Option<Span>)>;

#[derive(Clone, Copy)]
enum Happening {
    Wake(Token),
    Answer { client: u32, serial: u64, outcome: AttemptOutcome, hint: Option<Span> },
}

/// An engine without time or sockets. It panics where the machine breaks its promises.
struct Wire<'a> {
    devices: Devices,
    script: Script<'a>,
    /// Late by this much in every wake-up: a poor generator.
    lateness: Span,
    agenda: BTreeMap<(Timestamp, u64), Happening>,
    on_wire: BTreeMap<u32, u64>,
    serial: u64,
    out: Output,
    events: Vec<Event>,
    sends: Vec<(Timestamp, Send)>,
    cancels: usize,
}

impl<'a> Wire<'a> {
    fn start(setup: Setup, script: Script<'a>) -> Self {
        let mut wire = Self {
            devices: Devices::new(setup),
            script,
            lateness: Span::ZERO,
            agenda: BTreeMap::new(),
            on_wire: BTreeMap::new(),
            serial: 0,
            out: Output::default(),
            events: Vec::new(),
            sends: Vec::new(),
            cancels: 0,
        };
        wire.devices.start(Timestamp::ZERO, &mut wire.out);
        wire.carry_out(Timestamp::ZERO);
        wire
    }

    fn run_until(&mut self, end: Timestamp) {
        while let Some(entry) = self.agenda.first_entry().filter(|e| e.key().0 <= end) {
            let now = entry.key().0;
            match entry.remove() {
                Happening::Wake(token) => self.devices.wake(now, token, &mut self.out),
                Happening::Answer { client, serial, outcome, hint } => {
                    if self.on_wire.get(&client) == Some(&serial) {
                        self.on_wire.remove(&client);
                        self.devices.ended(now, client, outcome, hint, &mut self.out);
                    }
                }
            }
            self.carry_out(now);
        }
    }

    fn finish(mut self, end: Timestamp) -> Self {
        self.run_until(end);
        let gauges = self.devices.gauges(end);
        assert_eq!(gauges.in_flight as usize, self.on_wire.len());
        self.devices.stop(end, &mut self.out);
        self.carry_out(end);
        assert!(self.on_wire.is_empty(), "what is on the wire at the end is cancelled");
        assert_eq!(self.devices.gauges(end), Gauges::default());
        self.run_until(Timestamp::NEVER);
        let unresolved = self.outcomes(OperationOutcome::Unresolved);
        assert_eq!(unresolved as u64, gauges.backlog, "nothing happens after the end");
        self
    }

    fn carry_out(&mut self, now: Timestamp) {
        for command in self.out.commands.drain(..) {
            self.serial += 1;
            match command {
                Command::Wake { at, token } => {
                    assert!(at >= now, "a wake-up in the past");
                    self.agenda.insert((at + self.lateness, self.serial), Happening::Wake(token));
                }
                Command::Cancel { client } => {
                    self.cancels += 1;
                    assert!(self.on_wire.remove(&client).is_some(), "nothing to cancel");
                }
                Command::Send(send) => {
                    assert!(send.timeout_at > now, "an attempt without time");
                    let serial = self.serial;
                    assert_eq!(self.on_wire.insert(send.client, serial), None, "two attempts on one wire");
                    self.sends.push((now, send));
                    if let Some((after, outcome, hint)) = (self.script)(&send, now) {
                        let answer = Happening::Answer { client: send.client, serial, outcome, hint };
                        self.agenda.insert((now + after, serial), answer);
                    }
                }
            }
        }
        self.events.append(&mut self.out.events);
    }

    fn outcomes(&self, wanted: OperationOutcome) -> usize {
        self.events.iter().filter(|e| matches!(e, Event::Finished { outcome, .. } if *outcome == wanted)).count()
    }

    fn count(&self, matching: fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|e| matching(e)).count()
    }

    fn arrivals(&self) -> Vec<(Timestamp, OperationId)> {
        let offered = |e: &Event| if let Event::Offered { operation, at } = e { Some((*at, *operation)) } else { None };
        let mut all: Vec<_> = self.events.iter().filter_map(offered).collect();
        all.sort_unstable();
        all
    }

    fn lags(&self) -> Vec<Option<Span>> {
        self.events.iter().filter_map(|e| if let Event::Sent { lag, .. } = e { Some(*lag) } else { None }).collect()
    }

    /// When the attempts of one operation were sent, in ms.
    fn sent_at(&self, number: u64) -> Vec<u64> {
        self.sends.iter().filter(|(_, s)| s.operation.number == number).map(|(at, _)| at.as_millis()).collect()
    }
}

/// What the events say of one operation.
#[derive(Default)]
struct Story {
    offered: bool,
    sent: u32,
    ended: u32,
    in_flight: bool,
    finished: Option<OperationOutcome>,
}

/// Every operation is offered once and finished once, its attempts follow each other, none comes after its end.
fn check_books(wire: &Wire, policy: &Policy) {
    let mut stories: BTreeMap<OperationId, Story> = BTreeMap::new();
    for event in &wire.events {
        match *event {
            Event::Offered { operation, .. } => {
                let story = stories.entry(operation).or_default();
                assert!(!std::mem::replace(&mut story.offered, true), "offered twice");
            }
            Event::Sent { operation, attempt, retry, .. } => {
                let story = stories.get_mut(&operation).expect("offered before sent");
                assert!(story.finished.is_none() && !story.in_flight);
                assert_eq!((attempt, retry), (story.sent + 1, attempt > 1));
                (story.sent, story.in_flight) = (attempt, true);
            }
            Event::Ended { operation, attempt, sent, at, .. } => {
                let story = stories.get_mut(&operation).expect("offered before ended");
                assert!(story.in_flight && attempt == story.sent && sent <= at);
                (story.ended, story.in_flight) = (attempt, false);
            }
            Event::Finished { operation, outcome, attempts, last, offered, at } => {
                let story = stories.get_mut(&operation).expect("offered before finished");
                assert_eq!(story.finished.replace(outcome), None, "finished twice");
                assert_eq!(attempts, story.sent);
                assert!(offered <= at);
                let cut_short = outcome == OperationOutcome::Unresolved;
                assert!(story.ended == story.sent || cut_short);
                assert_eq!(last.is_some(), story.ended > 0, "{outcome:?}");
                assert!(policy.attempts.allow(attempts.saturating_sub(1)), "{attempts} attempts");
                let never_sent = matches!(outcome, OperationOutcome::Refused | OperationOutcome::Dropped);
                assert!(!never_sent || attempts == 0);
                let deadline = policy.deadline.map_or(Timestamp::NEVER, |d| (offered + d).round_up(GRAIN));
                assert!(at <= deadline + wire.lateness, "held past its deadline");
            }
            Event::LateStart { .. } | Event::BudgetRefused { .. } => {}
        }
    }
    assert!(stories.values().all(|s| s.offered && s.finished.is_some()), "offered and never finished");
}

const GRAIN: Span = Span::from_micros(250);

fn rate(r: f64) -> Option<Rate> {
    Some(Rate::per_second(r).unwrap())
}

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn at(n: u64) -> Timestamp {
    Timestamp::ZERO + ms(n)
}

fn policy() -> Policy {
    Policy {
        attempts: Attempts::Limited(4),
        timeout: Span::from_secs(1),
        deadline: None,
        max_elapsed: None,
        retry_on: classify::default_classes(),
        backoff: Backoff::none(),
        retry_after: RetryAfter::ignore(),
        budget: None,
    }
}

fn exponential(base: u64, cap: u64, jitter: Jitter) -> Backoff {
    Backoff::Exponential(Exponential {
        base: ms(base),
        cap: Some(ms(cap)),
        multiplier: 2.0,
        jitter,
        first_exponent: 0,
        clamp: Clamp::BeforeJitter,
    })
}

fn fixed(delay: u64) -> Backoff {
    Backoff::Fixed(Fixed { delay: ms(delay), jitter: Jitter::none() })
}

fn budget(tier: Tier) -> Option<At<BudgetConfig>> {
    let ratio = Share::new(0.1).unwrap();
    Some(At { value: BudgetConfig { ratio, window: Span::from_secs(10), min_per_second: 0.0, tier }, place: Place::default() })
}

fn setup(clients: u32, load: Load, policy: Policy) -> Setup {
    Setup {
        seed: 1,
        fleet: 2,
        policy,
        config: FleetConfig {
            clients,
            load,
            connections: Connections::KeepAlive,
            late_starts: LateStarts::Queue(Always {}),
            outbox: 1000,
            priority: None,
            idempotency_key: IdempotencyKey::Enqueue,
        },
        clients: 0..clients,
        grain: GRAIN,
        end: at(20_000),
        route_weights: vec![],
        shared: Shared::default(),
    }
}

fn constant(r: f64) -> Load {
    Load::Constant(Constant { rate: rate(r), each: None })
}

/// Random answers, by the attempt: successes, failures of all kinds, silence.
fn dice(seed: u64) -> impl Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome, Option<Span>)> {
    move |send, _| {
        let OperationId { fleet, client, number } = send.operation;
        let key = Key { seed, fleet: u32::from(fleet), client, operation: number, attempt: send.attempt };
        let mut draws = key.stream(Purpose::ServiceTime);
        let after = ms(1500).scale(draws.unit() * draws.unit());
        let outcome = match (draws.unit() * 10.0) as u32 {
            0..4 => AttemptOutcome::Success,
            4 => AttemptOutcome::Reset,
            5 => AttemptOutcome::Connect,
            6 => AttemptOutcome::Status(503),
            7 => return Some((after, AttemptOutcome::Status(429), Some(Span::from_secs(3)))),
            8 => AttemptOutcome::Status(404),
            _ => return None,
        };
        Some((after, outcome, None))
    }
}

fn policies() -> Vec<Policy> {
    let honor = RetryAfter::Honor(Honor { cap: Span::from_secs(2), spread: Some(Share::new(0.5).unwrap()) });
    let base = policy();
    vec![
        base.clone(),
        Policy { attempts: Attempts::Limited(1), ..base.clone() },
        Policy { deadline: Some(ms(1800)), backoff: fixed(200), ..base.clone() },
        Policy {
            attempts: Attempts::Unlimited,
            max_elapsed: Some(ms(3000)),
            backoff: exponential(100, 800, Jitter::Full(Plain {})),
            ..base.clone()
        },
        Policy { retry_after: honor, backoff: exponential(50, 900, Jitter::Decorrelated(Plain {})), ..base.clone() },
        Policy { budget: budget(Tier::Fleet), ..base.clone() },
        Policy { budget: budget(Tier::Client), deadline: Some(ms(700)), ..base },
    ]
}

fn loads() -> Vec<Load> {
    let rate_of = |r| Rate::per_second(r).unwrap();
    vec![
        constant(40.0),
        Load::Poisson(Poisson { rate: None, each: rate(3.0) }),
        Load::Ramp(Ramp { from: rate_of(0.0), to: rate_of(60.0), over: Span::from_secs(10) }),
        Load::Closed(Closed { think: ms(120) }),
        Load::Closed(Closed { think: Span::ZERO }),
        Load::Trigger(Trigger { at: Span::from_secs(1), spread: ms(50) }),
    ]
}

fn late_policies() -> [LateStarts; 3] {
    [LateStarts::Queue(Always {}), LateStarts::Drop(Always {}), LateStarts::BoundedCatchup(CatchUp { within: ms(400) })]
}

#[test]
fn the_books_balance_whatever_happens() {
    let mut case = 0u64;
    let mut seen = BTreeMap::new();
    for policy in policies() {
        for load in loads() {
            for late_starts in late_policies() {
                for ceiling in [None, Some(Pacer::new(Rate::per_second(30.0).unwrap(), 2))] {
                    case += 1;
                    let mut setup = setup(8, load.clone(), policy.clone());
                    setup.seed = case;
                    setup.config.outbox = 1 + (case % 7) as u32;
                    setup.config.late_starts = late_starts.clone();
                    setup.shared.ceiling = ceiling.map(Arc::new);
                    setup.route_weights = vec![1.0, 2.0];
                    let script = dice(case);
                    let mut wire = Wire::start(setup, &script);
                    wire.lateness = if case.is_multiple_of(5) { ms(7) } else { Span::ZERO };
                    let wire = wire.finish(at(25_000));
                    check_books(&wire, &policy);
                    for event in &wire.events {
                        if let Event::Finished { outcome, .. } = event {
                            *seen.entry(*outcome).or_insert(0u64) += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(case, 252);
    assert!(seen.len() == 5 && seen.values().all(|&n| n > 20), "every outcome was met: {seen:?}");
}

#[test]
fn a_run_repeats_to_the_byte_and_arrivals_do_not_depend_on_the_policy() {
    for load in loads() {
        let script = dice(5);
        let run = |policy: &Policy| Wire::start(setup(20, load.clone(), policy.clone()), &script).finish(at(25_000));
        let all = policies();
        let (one, again) = (run(&all[3]), run(&all[3]));
        assert_eq!(format!("{:?}", one.events), format!("{:?}", again.events));
        assert_eq!(one.sends, again.sends);
        if !load.is_closed() {
            assert_eq!(one.arrivals(), run(&all[5]).arrivals(), "{load:?}");
        }
    }
}

#[test]
fn two_shards_offer_what_one_offers() {
    for load in loads().into_iter().filter(|l| !l.is_closed()) {
        let script = dice(5);
        let run = |clients: std::ops::Range<u32>| {
            Wire::start(Setup { clients, ..setup(21, load.clone(), policy()) }, &script).finish(at(25_000)).arrivals()
        };
        let mut both = [run(0..8), run(8..21)].concat();
        both.sort_unstable();
        assert!(!both.is_empty());
        assert_eq!(run(0..21), both, "{load:?}");
        assert!(both.iter().all(|(at, _)| *at < self::at(20_000)));
    }
}

#[test]
fn a_fleets_budget_caps_the_retries_of_all_its_shards() {
    let config = budget(Tier::Fleet).unwrap().value;
    let shared = Shared { budget: Some(Arc::new(Budget::new(&config))), ceiling: None };
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, None));
    let (mut firsts, mut retries, mut refused) = (0, 0, 0);
    let policy = Policy { budget: budget(Tier::Fleet), ..policy() };
    let shard =
        |clients| Setup { clients, shared: shared.clone(), end: at(9_000), ..setup(100, constant(200.0), policy.clone()) };
    let mut wires = [Wire::start(shard(0..50), &failing), Wire::start(shard(50..100), &failing)];
    for step in 1..=90 {
        wires.iter_mut().for_each(|w| w.run_until(at(step * 100)));
    }
    for wire in &wires {
        firsts += wire.count(|e| matches!(e, Event::Sent { retry: false, .. }));
        retries += wire.count(|e| matches!(e, Event::Sent { retry: true, .. }));
        refused += wire.count(|e| matches!(e, Event::BudgetRefused { .. }));
    }
    assert_eq!((firsts, retries), (1800, 180));
    assert_eq!(refused, 1800, "each operation ends at a refusal");
}

#[test]
fn a_budget_per_client_dilutes() {
    // 0.2 operations per second and client earn 0.2 retries in ten seconds: never one.
    let policy = Policy { budget: budget(Tier::Client), ..policy() };
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, None));
    let load = Load::Constant(Constant { rate: None, each: rate(0.2) });
    let wire = Wire::start(setup(100, load, policy), &failing).finish(at(20_000));
    assert_eq!(wire.count(|e| matches!(e, Event::Sent { retry: true, .. })), 0);
}

/// When, after how many attempts and after what the operations failed that did.
fn failures(wire: &Wire) -> Vec<(u64, u32, Option<AttemptOutcome>)> {
    let failed = |e: &Event| match *e {
        Event::Finished { at, attempts, outcome: OperationOutcome::Failed, last, .. } => Some((at.as_millis(), attempts, last)),
        _ => None,
    };
    wire.events.iter().filter_map(failed).collect()
}

/// One client; operations at 0, 100, 200 … ms.
fn one_client(policy: Policy, end: u64) -> Setup {
    Setup { end: at(end), ..setup(1, constant(10.0), policy) }
}

#[test]
fn a_busy_client_has_backlog_and_no_lag() {
    let slow = |_: &Send, _| Some((ms(250), AttemptOutcome::Success, None));
    let mut wire = Wire::start(one_client(policy(), 300), &slow);
    wire.run_until(at(220));
    let gauges = wire.devices.gauges(at(220));
    assert_eq!((gauges.in_flight, gauges.backlog, gauges.oldest_age), (1, 3, ms(220)));
    wire.run_until(at(2000));
    assert_eq!([0, 1, 2].map(|n| wire.sent_at(n)), [[0], [250], [500]]);
    assert_eq!(wire.lags(), [Some(Span::ZERO), None, None]);
    let late: Vec<_> = wire
        .events
        .iter()
        .filter_map(|e| if let Event::LateStart { late, .. } = e { Some(late.as_millis()) } else { None })
        .collect();
    assert_eq!(late, [150, 300]);
}

#[test]
fn backoff_does_not_hold_the_connection_and_the_ready_go_in_order() {
    // The first fails at 10 ms and wants to be back at 210; its client has sent two others by then.
    let script = |send: &Send, _| match (send.operation.number, send.attempt) {
        (0, 1) => Some((ms(10), AttemptOutcome::Reset, None)),
        (1, _) => Some((ms(130), AttemptOutcome::Success, None)),
        _ => Some((ms(10), AttemptOutcome::Success, None)),
    };
    let policy = Policy { backoff: fixed(200), ..policy() };
    let wire = Wire::start(one_client(policy, 300), &script).finish(at(2000));
    // The second holds the wire until 230; the third was ready at 200, the retry at 210.
    assert_eq!([0, 1, 2].map(|n| wire.sent_at(n)), [vec![0, 240], vec![100], vec![230]]);
    assert_eq!(wire.lags(), [Some(Span::ZERO), Some(Span::ZERO), None, None]);
}

#[test]
fn a_timeout_cancels_and_frees_the_connection() {
    let script = |send: &Send, _| (send.attempt > 1).then_some((ms(5), AttemptOutcome::Success, None));
    let policy = Policy { timeout: ms(50), ..policy() };
    let wire = Wire::start(one_client(policy, 100), &script).finish(at(2000));
    assert_eq!((wire.sent_at(0), wire.cancels), (vec![0, 50], 1));
    assert_eq!(wire.outcomes(OperationOutcome::Succeeded), 1);
    // The answer to an attempt that was given up, should an engine hand one in, is not taken for another's.
    let mut wire = wire;
    wire.devices.ended(at(2001), 0, AttemptOutcome::Success, None, &mut wire.out);
    wire.devices.ended(at(2001), 77, AttemptOutcome::Success, None, &mut wire.out);
    assert!(wire.out.events.is_empty() && wire.out.commands.is_empty());
}

#[test]
fn an_operation_that_waits_fails_at_its_deadline() {
    // The first fails at 10 ms and is ready again at 210, but the second holds the wire until its timeout at 1000.
    let script = |send: &Send, _| (send.operation.number == 0).then_some((ms(10), AttemptOutcome::Reset, None));
    let policy = Policy { timeout: ms(900), deadline: Some(ms(800)), backoff: fixed(200), ..policy() };
    let wire = Wire::start(one_client(policy, 200), &script).finish(at(2000));
    assert_eq!(failures(&wire), [(800, 1, Some(AttemptOutcome::Reset)), (900, 1, Some(AttemptOutcome::Timeout))]);
    let policy = Policy { timeout: ms(900), max_elapsed: Some(ms(500)), backoff: fixed(200), ..self::policy() };
    let wire = Wire::start(one_client(policy, 200), &script).finish(at(2000));
    assert_eq!(failures(&wire), [(500, 1, Some(AttemptOutcome::Reset)), (1000, 1, Some(AttemptOutcome::Timeout))]);
}

#[test]
fn what_was_never_sent_fails_at_its_deadline_too() {
    let silence = |_: &Send, _| None;
    let policy = Policy { timeout: ms(10_000), deadline: Some(ms(300)), ..policy() };
    let mut hold = one_client(policy, 200);
    // A ceiling of one attempt per ten seconds lets the first through and holds the second.
    hold.shared.ceiling = Some(Arc::new(Pacer::new(Rate::per_second(0.1).unwrap(), 1)));
    let wire = Wire::start(hold, &silence).finish(at(2000));
    assert_eq!(failures(&wire), [(300, 1, Some(AttemptOutcome::Timeout)), (400, 0, None)]);
}

#[test]
fn late_starts_are_queued_dropped_or_caught_up() {
    let slow = |_: &Send, _| Some((ms(250), AttemptOutcome::Success, None));
    for (late_starts, sent, dropped_at) in [
        (LateStarts::Queue(Always {}), vec![0, 250, 500, 750, 1000], vec![]),
        (LateStarts::Drop(Always {}), vec![0, 300], vec![100, 200, 400]),
        (LateStarts::BoundedCatchup(CatchUp { within: ms(160) }), vec![0, 250, 500], vec![360, 460]),
    ] {
        let mut setup = one_client(policy(), 500);
        setup.config.late_starts = late_starts.clone();
        let wire = Wire::start(setup, &slow).finish(at(5000));
        assert_eq!(wire.sends.iter().map(|(at, _)| at.as_millis()).collect::<Vec<_>>(), sent, "{late_starts:?}");
        let dropped: Vec<_> = wire
            .events
            .iter()
            .filter_map(|e| match e {
                Event::Finished { at, outcome: OperationOutcome::Dropped, .. } => Some(at.as_millis()),
                _ => None,
            })
            .collect();
        assert_eq!(dropped, dropped_at, "{late_starts:?}");
        let late = wire.count(|e| matches!(e, Event::LateStart { .. }));
        let on_time = if matches!(late_starts, LateStarts::Drop(_)) { 2 } else { 1 };
        assert_eq!(late, 5 - on_time, "each late one is counted once");
    }
}

#[test]
fn a_late_generator_has_lag_and_its_late_starts_are_counted() {
    let quick = |_: &Send, _| Some((ms(1), AttemptOutcome::Success, None));
    for (lateness, late_starts) in [(ms(4), 0), (ms(30), 4)] {
        let mut wire = Wire::start(one_client(policy(), 500), &quick);
        // The first wake-up was asked for before the generator became late.
        wire.lateness = lateness;
        let wire = wire.finish(at(5000));
        assert_eq!(wire.lags()[1..], [Some(lateness); 4]);
        assert_eq!(wire.count(|e| matches!(e, Event::LateStart { .. })), late_starts);
    }
}

#[test]
fn a_full_outbox_refuses() {
    let silence = |_: &Send, _| None;
    let mut setup = one_client(Policy { timeout: Span::from_secs(60), ..policy() }, 500);
    setup.config.outbox = 2;
    let wire = Wire::start(setup, &silence).finish(at(1000));
    assert_eq!(wire.outcomes(OperationOutcome::Refused), 3);
    assert_eq!(wire.outcomes(OperationOutcome::Unresolved), 2);
}

#[test]
fn the_ceiling_spreads_sends_and_keeps_each_clients_order() {
    let quick = |_: &Send, _| Some((Span::from_micros(100), AttemptOutcome::Success, None));
    let mut setup = setup(50, Load::Constant(Constant { rate: rate(4000.0), each: None }), policy());
    setup.end = at(1000);
    setup.shared.ceiling = Some(Arc::new(Pacer::new(Rate::per_second(3000.0).unwrap(), 1)));
    let wire = Wire::start(setup, &quick).finish(at(1300));
    check_books(&wire, &policy());
    // 3000/s is finer than the grain of 250 µs, and still it is kept.
    let in_first_second = wire.sends.iter().filter(|(now, _)| *now < at(1000)).count();
    assert!((2990..=3001).contains(&in_first_second), "{in_first_second}");
    assert!(wire.devices.ceiling_holds() > 900);
    let mut next = [0; 50];
    for (_, send) in &wire.sends {
        let expected = &mut next[send.client as usize];
        assert_eq!(send.operation.number, *expected);
        *expected += 1;
    }
}

#[test]
fn a_deadline_shorter_than_the_line_does_not_waste_the_ceiling() {
    let quick = |_: &Send, _| Some((ms(1), AttemptOutcome::Success, None));
    let policy = Policy { deadline: Some(ms(200)), ..policy() };
    let mut setup = setup(500, constant(500.0), policy.clone());
    setup.end = at(10_000);
    setup.shared.ceiling = Some(Arc::new(Pacer::new(Rate::per_second(100.0).unwrap(), 1)));
    let wire = Wire::start(setup, &quick).finish(at(11_000));
    check_books(&wire, &policy);
    let sent = wire.sends.len();
    assert!((990..=1030).contains(&sent), "{sent} of 1000 that the ceiling allows");
}

#[test]
fn closed_load_has_one_operation_per_client_and_pauses_between() {
    let quick = |_: &Send, _| Some((ms(30), AttemptOutcome::Success, None));
    let mut setup = setup(4, Load::Closed(Closed { think: ms(70) }), policy());
    setup.end = at(10_000);
    let wire = Wire::start(setup, &quick).finish(at(11_000));
    let per_client = wire.sends.iter().filter(|(_, s)| s.client == 2).count();
    assert!((99..=101).contains(&per_client), "{per_client}");
    assert!(wire.lags().iter().all(|lag| lag.is_some_and(|lag| lag <= GRAIN)));
}

#[test]
fn keys_and_routes_belong_to_the_operation() {
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, None));
    for (kind, distinct) in [(IdempotencyKey::Enqueue, 1), (IdempotencyKey::Attempt, 4)] {
        let mut setup = one_client(policy(), 1000);
        setup.config.idempotency_key = kind;
        setup.route_weights = vec![1.0; 3];
        let wire = Wire::start(setup, &failing).finish(at(2000));
        assert_eq!(wire.sends.len(), 40);
        for number in 0..10 {
            let of_one: Vec<_> = wire.sends.iter().map(|(_, s)| s).filter(|s| s.operation.number == number).collect();
            let keys: std::collections::BTreeSet<_> = of_one.iter().map(|s| s.idempotency_key).collect();
            assert_eq!(keys.len(), distinct);
            assert!(of_one.iter().all(|s| s.route == of_one[0].route && s.enqueued_at == at(number * 100)));
        }
        let all: std::collections::BTreeSet<_> = wire.sends.iter().map(|(_, s)| s.idempotency_key).collect();
        assert_eq!(all.len(), 10 * distinct);
    }
}

#[test]
fn gauges_count_deep_retries() {
    let failing = |_: &Send, _| Some((ms(1), AttemptOutcome::Reset, None));
    let policy = Policy { attempts: Attempts::Limited(6), backoff: fixed(20), ..policy() };
    let mut wire = Wire::start(Setup { end: at(1), ..one_client(policy, 1) }, &failing);
    let mut deep = Vec::new();
    for step in 0..7 {
        wire.run_until(at(step * 21));
        deep.push(wire.devices.gauges(at(step * 21)).deep_retries);
    }
    assert_eq!(deep, [0, 0, 0, 1, 1, 1, 0]);
}

#[test]
fn a_million_arrivals_behind_are_offered_in_bounded_steps() {
    let silence = |_: &Send, _| None;
    let mut setup = one_client(Policy { timeout: Span::from_secs(3600), ..policy() }, 1000);
    setup.config.load = constant(1_000_000.0);
    setup.config.outbox = 1;
    let mut devices = Wire::start(setup, &silence).devices;
    let mut out = Output::default();
    devices.wake(at(0), Token(interface::Reason::Arrival(0)), &mut out);
    out.commands.clear();
    out.events.clear();
    devices.wake(at(1000), Token(interface::Reason::Arrival(0)), &mut out);
    assert!(out.events.len() <= 2 * 256, "{}", out.events.len());
    assert!(matches!(out.commands[..], [Command::Wake { at, .. }] if at == self::at(1000)), "{:?}", out.commands);
}
