//! Tests of the machine in virtual time: a scripted wire answers, and what comes out is held against the books.

use super::*;
use crate::config::{At, Entry, Place, Table};
use crate::event::{AttemptOutcome, Event, OperationId, OperationOutcome};
use crate::fleet::action::{FleetAction, PauseScope};
use crate::fleet::interface::{Command, Output, Send, Setup, Shared, Token};
use crate::fleet::workers::config::{DispatchRate, LaneConfig, OnGiveUp};
use crate::fleet::{Connections, FleetConfig, IdempotencyKey};
use crate::load::{Constant, Load, Poisson};
use crate::policy::budget::{BucketConfig, BudgetConfig, Kind, Tier, WhenSpent};
use crate::policy::{Attempts, Backoff, Hint, Policy, RetryOn, Treatment, Treatments, backoff};
use crate::rng::{Key, Purpose};
use crate::time::{Rate, Share, Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the wire does with an attempt: after which time it answers how; nothing means silence.
type Script<'a> = &'a dyn Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome)>;

#[derive(Clone, Copy)]
enum Happening {
    Wake(Token),
    Answer { connection: u32, serial: u64, outcome: AttemptOutcome },
}

/// An engine without time or sockets. It panics where the machine breaks its promises.
struct Wire<'a> {
    workers: Workers,
    script: Script<'a>,
    agenda: BTreeMap<(Timestamp, u64), Happening>,
    on_wire: BTreeMap<u32, u64>,
    serial: u64,
    out: Output,
    events: Vec<Event>,
    sends: Vec<(Timestamp, Send)>,
}

impl<'a> Wire<'a> {
    /// Runs a fleet for ten seconds.
    fn run(workers: WorkersConfig, policy: Policy, actions: Vec<(Timestamp, FleetAction)>, script: Script<'a>) -> Self {
        let most = workers.workers.most().min(100);
        let setup = Setup {
            seed: 1,
            fleet: 2,
            policy,
            config: FleetConfig::new(most, constant(1.0)),
            workers: Some(workers.clone()),
            clients: 0..most,
            grain: GRAIN,
            enqueues: false,
            end: at(8_000),
            route_weights: vec![],
            shared: Shared::default(),
            actions,
        };
        let mut wire = Self {
            workers: Workers::new(setup, &workers),
            script,
            agenda: BTreeMap::new(),
            on_wire: BTreeMap::new(),
            serial: 0,
            out: Output::default(),
            events: Vec::new(),
            sends: Vec::new(),
        };
        wire.workers.start(Timestamp::ZERO, &mut wire.out);
        wire.carry_out(Timestamp::ZERO);
        wire.go_on(at(10_000));
        let gauges = wire.workers.gauges(at(10_000));
        assert_eq!(gauges.in_flight as usize, wire.on_wire.len());
        wire.workers.stop(at(10_000), &mut wire.out);
        wire.carry_out(at(10_000));
        assert!(wire.on_wire.is_empty(), "what is on the wire at the end is cancelled");
        assert_eq!(wire.count(OperationOutcome::Unresolved) as u64, gauges.backlog);
        wire
    }

    fn go_on(&mut self, end: Timestamp) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 < end) {
            let now = entry.key().0;
            match entry.remove() {
                Happening::Wake(token) => {
                    self.workers.wake(now, token, &mut self.out);
                }
                Happening::Answer { connection, serial, outcome } => {
                    if self.on_wire.get(&connection) == Some(&serial) {
                        self.on_wire.remove(&connection);
                        self.workers.ended(now, connection, outcome, Hint::NONE, &mut self.out);
                    }
                }
            }
            self.carry_out(now);
        }
    }

    fn carry_out(&mut self, now: Timestamp) {
        for command in self.out.commands.drain(..) {
            self.serial += 1;
            match command {
                Command::Wake { at, token } => {
                    assert!(at >= now, "a wake-up in the past");
                    self.agenda.insert((at, self.serial), Happening::Wake(token));
                }
                Command::Cancel { connection } => {
                    assert!(self.on_wire.remove(&connection).is_some(), "nothing to cancel");
                }
                Command::Send(send) => {
                    let (connection, serial) = (send.connection, self.serial);
                    assert_eq!(self.on_wire.insert(connection, serial), None, "two attempts of one worker");
                    self.sends.push((now, send));
                    if let Some((after, outcome)) = (self.script)(&send, now) {
                        self.agenda.insert((now + after, serial), Happening::Answer { connection, serial, outcome });
                    }
                }
            }
        }
        self.events.append(&mut self.out.events);
    }

    fn count(&self, wanted: OperationOutcome) -> usize {
        self.events.iter().filter(|e| matches!(e, Event::Finished { outcome, .. } if *outcome == wanted)).count()
    }

    /// Attempts to a destination from one millisecond to another.
    fn sent(&self, destination: u16, from: u64, to: u64) -> usize {
        self.sends.iter().filter(|(now, s)| s.destination == destination && (from..to).contains(&now.as_millis())).count()
    }

    /// Every operation is offered once and finished once, its attempts follow each other, none comes after its end.
    fn check_books(&self) {
        #[derive(Default)]
        struct Story {
            sent: u32,
            ended: u32,
            finished: bool,
        }
        let mut stories: BTreeMap<OperationId, Story> = BTreeMap::new();
        for event in &self.events {
            match *event {
                Event::Offered { operation, .. } => {
                    assert!(stories.insert(operation, Story::default()).is_none(), "offered twice");
                }
                Event::Sent { operation, attempt, .. } => {
                    let story = stories.get_mut(&operation).expect("offered before sent");
                    assert!(!story.finished && story.sent == story.ended && attempt == story.sent + 1);
                    story.sent = attempt;
                }
                Event::Ended { operation, attempt, sent, at, .. } => {
                    let story = stories.get_mut(&operation).expect("offered before ended");
                    assert!(attempt == story.sent && story.ended + 1 == attempt && sent <= at);
                    story.ended = attempt;
                }
                Event::Finished { operation, outcome, attempts, .. } => {
                    let story = stories.get_mut(&operation).expect("offered before finished");
                    assert!(!std::mem::replace(&mut story.finished, true), "finished twice");
                    assert_eq!(attempts, story.sent);
                    assert!(story.ended == story.sent || outcome == OperationOutcome::Unresolved);
                }
                _ => {}
            }
        }
        assert!(stories.values().all(|story| story.finished), "offered and never finished");
    }
}

const GRAIN: Span = Span::from_micros(250);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn at(n: u64) -> Timestamp {
    Timestamp::ZERO + ms(n)
}

fn rate(r: f64) -> Rate {
    Rate::per_second(r).unwrap()
}

fn constant(r: f64) -> Load {
    Load::Constant(Constant { rate: Some(rate(r)), each: None })
}

fn fixed(delay: u64) -> Backoff {
    Backoff::Fixed(backoff::Fixed::new(ms(delay)))
}

fn policy(attempts: u32, delay: u64) -> Policy {
    Policy { backoff: fixed(delay), ..Policy::new(Attempts::Limited(attempts), ms(500)) }
}

fn destination(arrivals: Option<Load>) -> DestinationConfig {
    DestinationConfig { arrivals, backlog: 0, concurrency: None, rate: None }
}

/// So many workers, with streams of so many a second.
fn fleet(workers: u32, streams: &[f64]) -> WorkersConfig {
    let entry =
        |(n, r): (usize, &f64)| Entry { name: format!("d{n}"), place: Place::default(), value: destination(Some(constant(*r))) };
    WorkersConfig {
        workers: WorkerCount::Limited(workers),
        queue: QueueConfig {
            arrivals: None,
            destinations: Table(streams.iter().enumerate().map(entry).collect()),
            hold_while_waiting: false,
            on_give_up: OnGiveUp::Drop,
            fresh_first: false,
            concurrency_each: None,
            lanes: Table::default(),
            rate: None,
            bound: 1_000,
        },
        connections: Connections::KeepAlive,
        priority: None,
        idempotency_key: IdempotencyKey::Enqueue,
    }
}

fn answers(outcome: AttemptOutcome, after: u64) -> impl Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome)> {
    move |_, _| Some((ms(after), outcome))
}

/// The failing destination is the first.
fn first_fails(send: &Send, _: Timestamp) -> Option<(Span, AttemptOutcome)> {
    let outcome = if send.destination == 0 { AttemptOutcome::Status(429) } else { AttemptOutcome::Success };
    Some((ms(20), outcome))
}

/// Random answers, by the attempt: successes, failures, silence.
fn dice(seed: u64) -> impl Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome)> {
    move |send, _| {
        let OperationId { fleet, client, number } = send.operation;
        let key = Key { seed, fleet: u32::from(fleet), client, operation: number, attempt: send.attempt };
        let mut draws = key.stream(Purpose::ServiceTime);
        let after = ms(600).scale(draws.unit() * draws.unit());
        match (draws.unit() * 8.0) as u32 {
            0..3 => Some((after, AttemptOutcome::Success)),
            3 => Some((after, AttemptOutcome::Reset)),
            4 => Some((after, AttemptOutcome::Status(429))),
            5 => Some((after, AttemptOutcome::Status(503))),
            6 => Some((after, AttemptOutcome::Status(404))),
            _ => None,
        }
    }
}

fn every_action() -> Vec<(Timestamp, FleetAction)> {
    let jittered = Arc::new(policy(3, 70));
    vec![
        (at(1_000), FleetAction::Pause { destination: Some(0), scope: PauseScope::All }),
        (at(1_500), FleetAction::Pause { destination: Some(1), scope: PauseScope::Ingress }),
        (at(2_000), FleetAction::Resume { destination: None }),
        (at(2_500), FleetAction::SetLane { destination: Some(0), concurrency: Some(2) }),
        (at(3_000), FleetAction::Restart { policy: Some(jittered.clone()), stagger: ms(400) }),
        (at(4_000), FleetAction::SetRate { destination: None, rate: Some(rate(30.0)), burst: 3 }),
        (at(4_500), FleetAction::SetArrivals { factor: 3.0 }),
        (at(5_000), FleetAction::Scale { to: 2 }),
        (at(5_500), FleetAction::DropBacklog { destination: Some(0) }),
        (at(6_000), FleetAction::SetPolicy { policy: jittered }),
        (at(6_500), FleetAction::Scale { to: 6 }),
        (at(6_700), FleetAction::SetRate { destination: None, rate: None, burst: 1 }),
        (at(7_000), FleetAction::SetLane { destination: None, concurrency: None }),
    ]
}

fn bucket(tier: Tier, when_spent: WhenSpent) -> Option<At<BudgetConfig>> {
    let kind = Kind::Bucket(BucketConfig { deposit: Share::new(0.2).unwrap(), burst: 2 });
    Some(At { value: BudgetConfig { kind, tier, when_spent }, place: Place::default() })
}

#[test]
fn the_books_balance_whatever_happens() {
    let (mut case, mut seen) = (0, BTreeMap::new());
    let policies = [
        policy(1, 0),
        Policy { backoff: Backoff::none(), ..policy(4, 0) },
        Policy { deadline: Some(ms(900)), ..policy(6, 60) },
        Policy { max_elapsed: Some(ms(400)), ..policy(6, 90) },
        Policy { budget: bucket(Tier::Client, WhenSpent::Park), ..policy(5, 30) },
        Policy { budget: bucket(Tier::Fleet, WhenSpent::GiveUp), ..policy(5, 30) },
    ];
    for policy in policies {
        for on_give_up in [OnGiveUp::Requeue, OnGiveUp::Drop, OnGiveUp::DeadLetter] {
            for hold in [false, true] {
                case += 1;
                let mut workers = fleet(6, &[20.0, 15.0]);
                workers.queue.destinations.0[1].value.arrivals =
                    Some(Load::Poisson(Poisson { rate: Some(rate(15.0)), each: None }));
                workers.queue.destinations.0[1].value.backlog = 3;
                workers.queue.hold_while_waiting = hold;
                workers.queue.on_give_up = on_give_up;
                workers.queue.fresh_first = case % 2 == 0;
                workers.queue.bound = 10 + case % 3 * 20;
                let script = dice(u64::from(case));
                let wire = Wire::run(workers, policy.clone(), every_action(), &script);
                wire.check_books();
                for event in &wire.events {
                    if let Event::Finished { outcome, .. } = event {
                        *seen.entry(*outcome).or_insert(0u64) += 1;
                    }
                }
                let acted = wire.events.iter().filter(|e| matches!(e, Event::Acted { .. })).count();
                assert_eq!(acted, every_action().len());
            }
        }
    }
    use OperationOutcome::{DeadLettered, Dropped, Failed, Refused, Succeeded, Unresolved};
    for outcome in [Succeeded, Failed, Unresolved, Refused, Dropped, DeadLettered] {
        assert!(seen.get(&outcome).is_some_and(|&n| n > 10), "{outcome:?}: {seen:?}");
    }
}

#[test]
fn a_worker_that_holds_sleeps_through_the_waits_and_requeues_at_once() {
    let mut workers = fleet(1, &[1.0]);
    workers.queue.hold_while_waiting = true;
    workers.queue.on_give_up = OnGiveUp::Requeue;
    let fails = answers(AttemptOutcome::Status(429), 10);
    let wire = Wire::run(workers, policy(3, 100), Vec::new(), &fails);
    // The first operation comes at 0, the second at 1 s; each pass takes 230 ms, and whoever stands in front is next.
    let first: Vec<(u64, u64, u32)> =
        wire.sends.iter().take(8).map(|(at, s)| (at.as_millis(), s.operation.number, s.attempt)).collect();
    assert_eq!(first, [(0, 0, 1), (110, 0, 2), (220, 0, 3), (230, 0, 4), (340, 0, 5), (450, 0, 6), (460, 0, 7), (570, 0, 8)]);
    let numbers: Vec<u64> =
        wire.sends.iter().filter(|(at, _)| at.as_millis() >= 1_150).map(|(_, s)| s.operation.number).collect();
    assert_eq!(numbers[..6], [1, 1, 1, 0, 0, 0], "the one that gave up stands behind");
    let retries = wire.events.iter().filter(|e| matches!(e, Event::Sent { retry: true, .. })).count();
    assert_eq!(wire.sends.len() - retries, wire.sends.len().div_ceil(3), "each pass has its first attempt");
}

#[test]
fn first_attempts_go_before_retries_where_the_plan_says_so() {
    let delays = |fresh_first: bool| {
        let mut workers = fleet(2, &[100.0, 10.0]);
        workers.queue.fresh_first = fresh_first;
        let wire = Wire::run(workers, policy(1_000, 30), Vec::new(), &first_fails);
        let healthy = wire.events.iter().filter_map(|event| match *event {
            Event::Finished { operation, offered, at, outcome: OperationOutcome::Succeeded, .. } if operation.client == 1 => {
                Some(at.since(offered))
            }
            _ => None,
        });
        healthy.max().unwrap_or(Span::ZERO)
    };
    // 110 first attempts a second are more than two workers make in 20 ms each: with them in front, they wait for each other alone.
    assert!(delays(false) > ms(3_000), "{}", delays(false));
    assert!(delays(true) < ms(2_000), "{}", delays(true));
}

#[test]
fn a_lane_of_two_leaves_the_rest_to_the_others() {
    let to_lane = Treatment { retry: true, backoff: None, retry_after: None, cost: None, lane: Some("slow".into()) };
    let by_class = Policy { on: Treatments::new(vec![(RetryOn::Status(429), to_lane)]), ..policy(1_000, 30) };
    let lane =
        Entry { name: "slow".into(), place: Place::default(), value: LaneConfig { concurrency: 2, per_destination: true } };
    let mut workers = fleet(4, &[50.0, 50.0]);
    workers.queue.lanes = Table(vec![lane]);
    let wire = Wire::run(workers, by_class, Vec::new(), &first_fails);
    // Two workers make 100 retries a second, in 20 ms each; first attempts are 50 a second.
    let retries = wire.sends.iter().filter(|(now, s)| s.attempt > 1 && (4_000..5_000).contains(&now.as_millis())).count();
    assert!((98..=101).contains(&retries), "{retries}");
    assert_eq!(wire.count(OperationOutcome::Succeeded), 400, "the healthy ones have room");

    // Switched in mid-run: what stands ready stays, the rest goes to the lane.
    let switch = vec![(at(2_000), FleetAction::SetLane { destination: Some(0), concurrency: Some(1) })];
    let wire = Wire::run(fleet(4, &[100.0, 20.0]), policy(1_000, 30), switch, &first_fails);
    let to_big = |from, to| wire.sent(0, from, to);
    assert!(to_big(1_500, 2_000) > 80, "{}", to_big(1_500, 2_000));
    assert!(to_big(2_000, 2_500) > 70, "what stood ready is worked off: {}", to_big(2_000, 2_500));
    assert!((49..=51).contains(&to_big(6_000, 7_000)), "one worker, 20 ms each: {}", to_big(6_000, 7_000));
    assert_eq!(wire.sent(1, 6_000, 7_000), 20);
}

#[test]
fn a_pause_of_ingress_leaves_retries_firing_and_one_of_all_does_not() {
    for (scope, retries) in [(PauseScope::Ingress, true), (PauseScope::All, false)] {
        let pause = vec![
            (at(2_000), FleetAction::Pause { destination: Some(0), scope }),
            (at(6_000), FleetAction::Resume { destination: Some(0) }),
        ];
        let wire = Wire::run(fleet(50, &[20.0, 20.0]), policy(1_000, 200), pause, &first_fails);
        let during = wire.sent(0, 2_000, 6_000);
        assert_eq!(during > 500, retries, "{scope:?}: {during}");
        assert!(retries || during == 0);
        assert_eq!(wire.sent(1, 2_000, 6_000), 80, "nobody else is held up");
        let refused = wire.count(OperationOutcome::Refused);
        assert_eq!(refused, if scope == PauseScope::Ingress { 80 } else { 0 });
        assert!(wire.sent(0, 6_000, 6_500) > 50, "and it goes on");
    }
}

#[test]
fn a_bucket_bounds_what_is_dispatched_to_its_destination() {
    let mut workers = fleet(20, &[100.0, 30.0]);
    workers.queue.destinations.0[0].value.rate = Some(DispatchRate { rate: rate(10.0), burst: 5 });
    let script = answers(AttemptOutcome::Success, 20);
    let wire = Wire::run(workers, policy(1, 0), Vec::new(), &script);
    assert_eq!(wire.sent(0, 0, 50), 5, "its burst");
    assert!((39..=41).contains(&wire.sent(0, 4_000, 8_000)), "{}", wire.sent(0, 4_000, 8_000));
    assert_eq!(wire.sent(1, 4_000, 8_000), 120);
}

#[test]
fn a_queue_holds_what_it_may_and_refuses_the_rest() {
    let mut workers = fleet(1, &[100.0]);
    workers.queue.bound = 30;
    let silent = |_: &Send, _: Timestamp| None;
    let wire = Wire::run(workers, policy(1_000, 0), Vec::new(), &silent);
    // One on the wire, thirty wait; retries that time out come back into the queue whatever its bound.
    assert_eq!(wire.count(OperationOutcome::Unresolved), 31);
    assert_eq!(wire.count(OperationOutcome::Refused), 800 - 31);
}

#[test]
fn workers_come_back_one_after_the_other() {
    let restart = vec![(at(4_000), FleetAction::Restart { policy: None, stagger: ms(1_000) })];
    let mut workers = fleet(10, &[200.0]);
    workers.queue.hold_while_waiting = true;
    let script = answers(AttemptOutcome::Success, 100);
    let wire = Wire::run(workers, policy(1, 0), restart, &script);
    let first: Vec<u64> = (0..10)
        .filter_map(|worker| wire.sends.iter().find(|(now, s)| s.connection == worker && *now >= at(4_000)))
        .map(|(now, _)| now.as_millis())
        .collect();
    assert_eq!(first, [4_000, 4_100, 4_200, 4_300, 4_400, 4_500, 4_600, 4_700, 4_800, 4_900]);
    let cancelled = wire.events.iter().filter(|e| matches!(e, Event::Ended { outcome: AttemptOutcome::Cancelled, .. })).count();
    assert_eq!(cancelled, 10, "what each had on the wire");
    let acted = wire.events.iter().find_map(|e| if let Event::Acted { affected, .. } = e { Some(*affected) } else { None });
    assert_eq!(acted, Some(10));
}

#[test]
fn parked_retries_wait_without_a_worker() {
    let parked = Policy { budget: bucket(Tier::Fleet, WhenSpent::Park), ..policy(10, 10) };
    let mut workers = fleet(2, &[50.0]);
    workers.queue.hold_while_waiting = true;
    let script = |send: &Send, _: Timestamp| {
        let fails = send.attempt == 1 && send.operation.number < 40;
        Some((ms(5), if fails { AttemptOutcome::Reset } else { AttemptOutcome::Success }))
    };
    let wire = Wire::run(workers, parked, Vec::new(), &script);
    assert_eq!(wire.count(OperationOutcome::Succeeded), 400, "all of them, in the end");
    let retries: Vec<u64> = wire.sends.iter().filter(|(_, s)| s.attempt == 2).map(|(now, _)| now.as_millis()).collect();
    // Two stand in the bucket; after that a fifth of 50 first attempts a second is earned.
    assert_eq!(retries.len(), 40);
    let last = retries[39];
    assert!((3_500..4_200).contains(&last), "{last}");
}
