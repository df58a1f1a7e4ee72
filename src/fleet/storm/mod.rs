//! Tests of the machine in virtual time: a scripted wire answers, and what comes out is held against the books.

mod actions;
mod books;
mod cases;
mod guarded;
mod outboxes;

use super::config::{Always, CatchUp};
use super::*;
use crate::config::{At, Place};
use crate::event::{AttemptOutcome, Event, LateBy, OperationId, OperationOutcome};
use crate::load::{Closed, Constant, Load, Poisson, Ramp, Trigger};
use crate::pace::Pacer;
use crate::policy::backoff::{Exponential, Fixed, Jitter, jitter::Plain};
use crate::policy::budget::{BudgetConfig, Kind, Tier, WhenSpent, WindowConfig};
use crate::policy::hint::{Honor, Spread};
use crate::policy::{Attempts, Backoff, Budget, Hint, Policy, RetryAfter};
use crate::rng::{Key, Purpose};
use crate::time::{Rate, Share, Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the wire does with an attempt: after which time it answers how, with which hint; nothing means silence.
type Script<'a> = &'a dyn Fn(&Send, Timestamp) -> Option<(Span, AttemptOutcome, Hint)>;

#[derive(Clone, Copy)]
enum Happening {
    Wake(Token),
    Answer { connection: u32, serial: u64, outcome: AttemptOutcome, hint: Hint },
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
                Happening::Wake(token) => {
                    self.devices.wake(now, token, &mut self.out);
                }
                Happening::Answer { connection, serial, outcome, hint } => {
                    if self.on_wire.get(&connection) == Some(&serial) {
                        self.on_wire.remove(&connection);
                        self.devices.ended(now, connection, outcome, hint, &mut self.out);
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
        let Gauges { scheduled, .. } = self.devices.gauges(end);
        assert_eq!(self.devices.gauges(end), Gauges { scheduled, ..Gauges::default() });
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
                Command::Cancel { connection } => {
                    self.cancels += 1;
                    assert!(self.on_wire.remove(&connection).is_some(), "nothing to cancel");
                }
                Command::Send(send) => {
                    assert!(send.timeout_at > now, "an attempt without time");
                    let serial = self.serial;
                    assert_eq!(self.on_wire.insert(send.connection, serial), None, "two attempts on one wire");
                    self.sends.push((now, send));
                    if let Some((after, outcome, hint)) = (self.script)(&send, now) {
                        let answer = Happening::Answer { connection: send.connection, serial, outcome, hint };
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
    in_flight: u32,
    refused: bool,
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
                assert!(story.finished.is_none() && (story.in_flight == 0 || policy.hedge.is_some()));
                assert_eq!((attempt, retry), (story.sent + 1, attempt > 1));
                (story.sent, story.in_flight) = (attempt, story.in_flight + 1);
            }
            Event::Ended { operation, attempt, sent, at, .. } => {
                let story = stories.get_mut(&operation).expect("offered before ended");
                assert!(story.in_flight > 0 && attempt <= story.sent && sent <= at);
                assert!(attempt == story.sent || policy.hedge.is_some());
                (story.ended, story.in_flight) = (story.ended + 1, story.in_flight - 1);
            }
            Event::Finished { operation, outcome, attempts, last, offered, at } => {
                let story = stories.get_mut(&operation).expect("offered before finished");
                assert_eq!(story.finished.replace(outcome), None, "finished twice");
                assert_eq!(attempts, story.sent);
                assert!(offered <= at);
                let cut_short = outcome == OperationOutcome::Unresolved;
                assert!(story.ended == story.sent || cut_short);
                assert!(last.is_some() == (story.ended > 0 || story.refused) || policy.hedge.is_some(), "{outcome:?}");
                assert!(policy.attempts.allow(attempts.saturating_sub(1)), "{attempts} attempts");
                let never_sent = matches!(outcome, OperationOutcome::Refused | OperationOutcome::Dropped);
                assert!(!never_sent || attempts == 0);
                let deadline = policy.deadline.map_or(Timestamp::NEVER, |d| (offered + d).round_up(GRAIN));
                assert!(at <= deadline + wire.lateness, "held past its deadline");
            }
            Event::Throttled { operation, .. } => {
                let story = stories.get_mut(&operation).expect("offered before refused");
                assert!(story.finished.is_none() && story.in_flight == 0);
                story.refused = true;
            }
            Event::LateStart { .. } | Event::BudgetRefused { .. } | Event::Acted { .. } => {}
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
    Policy::new(Attempts::Limited(4), Span::from_secs(1))
}

fn exponential(base: u64, cap: u64, jitter: Jitter) -> Backoff {
    Backoff::Exponential(Exponential { cap: Some(ms(cap)), jitter, ..Exponential::new(ms(base)) })
}

fn fixed(delay: u64) -> Backoff {
    Backoff::Fixed(Fixed::new(ms(delay)))
}

fn budget(tier: Tier) -> Option<At<BudgetConfig>> {
    let ratio = Share::new(0.1).unwrap();
    let kind = Kind::Window(WindowConfig { ratio, window: Span::from_secs(10), min_per_second: 0.0 });
    Some(At { value: BudgetConfig { kind, tier, when_spent: WhenSpent::GiveUp }, place: Place::default() })
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
            regions: crate::fleet::Regions::default(),
            link: None,
            when_full: crate::fleet::WhenFull::Refuse,
            operations: crate::fleet::Operations::default(),
            drain_rate: None,
            defer: None,
        },
        clients: 0..clients,
        grain: GRAIN,
        enqueues: false,
        end: at(20_000),
        route_weights: vec![],
        shared: Shared::default(),
        workers: None,
        actions: Vec::new(),
    }
}

fn constant(r: f64) -> Load {
    Load::Constant(Constant { rate: rate(r), each: None })
}
