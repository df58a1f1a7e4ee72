//! Clients with an outbox and a connection each: the machine that turns a load shape and a policy into attempts.
//!
//! A connection has one attempt on its wire at a time, and a client one connection, unless its policy hedges or sets how many
//! attempts may be out at once. An operation in backoff does not hold the connection, so others of
//! the client go meanwhile; those that are ready go first come first served. What waits for the connection, for a throttle or for
//! the ceiling waits because the plan makes it wait: it is backlog, and has no generator lag.
//!
//! Owns which operations exist, where each is, and the timeouts: an attempt ends when the engine says so or when its
//! wake-up comes, whichever is first. Each operation that is offered leaves by `finish`, `turn_away` or
//! [`Devices::stop`], and so ends exactly once. Leaves to others what follows a failure (`operation`), sockets and timers (an engine).
//!
//! Memory: an operation takes 84 bytes while it lives and a client 40; nothing is allocated once both have
//! reached their peak. What few plans ask for (hedges, parked retries, breakers, priorities, restraint) is kept beside, and only where they do.

mod actions;
mod arrivals;
mod foresee;
mod hedges;
mod outbox;
mod parking;
mod sending;
mod wires;

use super::ceiling::Ceiling;
use super::client::Client;
use super::interface::{Command, Gauges, Output, Reason, Setup, Token};
use super::ranks::Ranks;
use super::restraint::Restraint;
use super::rules::Rules;
use super::slab::{Held, NONE, Place, Slab};
use crate::event::{AttemptOutcome, Event, OperationOutcome};
use crate::operation::{End, Next};
use crate::policy::{Guards, Hint};
use crate::time::{Span, Timestamp};
use actions::Controls;
use hedges::Hedges;
use parking::Parking;
use wires::Wires;

/// The clients of one fleet in one shard.
#[derive(Debug)]
pub struct Devices {
    rules: Rules,
    clients: Vec<Client>,
    held: Slab,
    /// Where the plan gives operations an order of their own.
    ranks: Option<Ranks>,
    /// Where the plan keeps clients from sending.
    restraint: Option<Restraint>,
    ceiling: Option<Ceiling>,
    guards: Guards,
    wires: Wires,
    /// Where the policy hedges.
    hedges: Option<Hedges>,
    parked: Parking,
    controls: Controls,
    in_flight: u64,
    deep_retries: u64,
    scheduled: u64,
    is_stopped: bool,
}

impl Devices {
    /// Clients that have not begun.
    pub fn new(setup: Setup) -> Self {
        let clients = setup.clients.len();
        Self {
            clients: vec![Client::NEW; clients],
            ceiling: setup.shared.ceiling.clone().map(Ceiling::new),
            guards: Guards::new(&setup.policy, clients, &setup.shared.guards),
            wires: Wires::new(clients, setup.policy.concurrency()),
            hedges: setup.policy.hedge.as_ref().map(|hedge| Hedges::new(hedge.value.clone())),
            parked: Parking::default(),
            controls: Controls::new(&setup),
            ranks: outbox::is_ranked(&setup.config).then(Ranks::default),
            restraint: Restraint::new(setup.config.drain_rate, setup.config.defer.clone(), clients),
            rules: Rules::new(setup),
            held: Slab::new(),
            in_flight: 0,
            deep_retries: 0,
            scheduled: 0,
            is_stopped: false,
        }
    }

    /// Begins: asks for the wake-up of each client's first operation. Called once.
    pub fn start(&mut self, now: Timestamp, out: &mut Output) {
        for client in 0..self.clients.len() as u32 {
            self.client(client).next = self.rules.next_start(client, 0, Timestamp::ZERO, None);
        }
        self.plan_actions(now, out);
        (0..self.clients.len() as u32).for_each(|client| self.arm(client, now, out));
    }

    /// A wake-up that was asked for, not before its moment. Whether it was still wanted.
    pub fn wake(&mut self, now: Timestamp, token: Token, out: &mut Output) -> bool {
        if self.is_stopped {
            return false;
        }
        match token.0 {
            // Moved since: another wake-up is for its new moment.
            Reason::Arrival(client) if self.client(client).next > now => return false,
            Reason::Arrival(client) => {
                self.client(client).armed = false;
                self.arrivals(client, now, out);
            }
            Reason::Operation { slot, generation } if self.held.is_current(slot, generation) => self.due(slot, now, out),
            Reason::Operation { .. } => return false,
            Reason::Ceiling => self.ceiling_is_due(now, out),
            Reason::Throttle(client) => {
                self.client(client).in_line = false;
                self.settle(client, now, out);
            }
            Reason::Restraint(client) => {
                self.restraint.iter_mut().for_each(|restraint| restraint.woken(client, now));
                self.settle(client, now, out);
            }
            Reason::Parked => self.look_at_parked(now, out),
            Reason::Action(number) => self.act(number, now, out),
            Reason::Back(client) => self.back(client, now, out),
            Reason::Flight { slot, serial } => return self.flight_timed_out(slot, serial, now, out),
            Reason::Token => return false,
        }
        true
    }

    /// The attempt on a connection has ended. `hint` is what the server asked for. Ignored where nothing is on that wire.
    pub fn ended(&mut self, now: Timestamp, connection: u32, outcome: AttemptOutcome, hint: Hint, out: &mut Output) {
        let (client, wire) = self.wires.client_of(connection);
        let client = self.rules.place_of(client);
        let Some(slot) = self.wires.occupant(&self.clients, client, wire) else { return };
        if slot != NONE && !self.is_stopped {
            self.attempt_over(slot, wire, now, outcome, hint, out);
            self.settle(client, now, out);
        }
    }

    /// The end of the run: attempts on the wire are cancelled, everything still held is unresolved. Later calls do nothing.
    pub fn stop(&mut self, now: Timestamp, out: &mut Output) {
        for (slot, entry) in self.held.in_order() {
            if entry.place == Place::Wire {
                let client = self.rules.number_of(entry.client);
                let wires = self.wires.held_by(&self.clients, entry.client, slot);
                out.commands.extend(wires.map(|wire| Command::Cancel { connection: self.wires.connection(client, wire) }));
            }
            out.events.push(Event::Finished {
                operation: self.rules.id(entry.client, entry.number),
                offered: entry.operation.intended(),
                at: now,
                outcome: OperationOutcome::Unresolved,
                attempts: entry.operation.attempts(),
                last: entry.operation.last(),
            });
        }
        self.held = Slab::new();
        self.ranks.iter_mut().for_each(|ranks| *ranks = Ranks::default());
        self.clients.fill(Client::NEW);
        self.parked = Parking::default();
        (self.in_flight, self.deep_retries, self.scheduled, self.is_stopped) = (0, 0, 0, true);
    }

    /// What is held now. Its cost does not depend on how much that is, but for operations past their deadline, which are
    /// few because they are ended there.
    pub fn gauges(&self, now: Timestamp) -> Gauges {
        let oldest = self.held.in_order().next();
        let is_late = |slot: u32| {
            let entry = self.held.get(slot);
            let deadline = entry.operation.deadline(&self.rules.terms(entry.client, entry.number));
            deadline.is_some_and(|deadline| deadline < now)
        };
        Gauges {
            in_flight: self.in_flight,
            backlog: self.held.len(),
            oldest_age: oldest.map_or(Span::ZERO, |(_, entry)| now.since(entry.operation.intended())),
            deep_retries: self.deep_retries,
            late: self.held.in_order().take_while(|(slot, _)| is_late(*slot)).count() as u64,
            scheduled: self.scheduled,
            // Only the engine knows.
            arrived: 0,
            connected: 0,
        }
    }

    /// How often the ceiling on attempts held a send back.
    pub fn ceiling_holds(&self) -> u64 {
        self.ceiling.as_ref().map_or(0, Ceiling::holds)
    }

    /// Something that an operation waited for has come: its retry, its timeout, or the end of its patience.
    fn due(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let entry = *self.held.get(slot);
        match entry.place {
            Place::Backoff => self.make_ready(slot, Some(entry.since), now, out),
            Place::Owing => self.owed(slot, now, out),
            Place::Wire if self.hedges.is_some() => self.hedge(slot, now, out),
            Place::Wire => self.timed_out(slot, now, out),
            Place::Ready | Place::Parked => {
                self.give_up_if_due(slot, now, out);
            }
            Place::Free => {}
        }
        self.settle(entry.client, now, out);
    }

    /// An operation may be sent: at once, or when the connection and the ceiling let it. `wanted` is the moment that
    /// the plan wants, against which lag is measured; none where it is this very one by nature.
    fn make_ready(&mut self, slot: u32, wanted: Option<Timestamp>, now: Timestamp, out: &mut Output) {
        let generation = self.held.put(slot, Place::Ready, wanted.unwrap_or(now));
        let entry = self.held.get_mut(slot);
        entry.held = if wanted.is_some() { Held::No } else { Held::AtOnce };
        let client = entry.client;
        let is_busy = self.is_busy(client);
        self.scheduled += 1;
        self.stand_ready(slot);
        self.pump(client, now, out);
        if self.held.is_current(slot, generation) {
            self.held.get_mut(slot).held = if is_busy { Held::Busy } else { Held::Ceiling };
            // A generator that is late may bring an operation here after its deadline.
            if self.give_up_if_due(slot, now, out) {
                return;
            }
            if let Some((at, _)) = self.rules.gives_up(self.held.get(slot)) {
                wake_at(at, Reason::Operation { slot, generation }, out);
            }
        }
    }

    /// Does what the retry loop says after an attempt that ended, or a try that was refused, at `at`. A retry at once is wanted at
    /// `at_once`, where that is a moment that the engine can be behind.
    fn follow(&mut self, slot: u32, next: Next, at: Timestamp, at_once: Option<Timestamp>, now: Timestamp, out: &mut Output) {
        match next {
            Next::Send | Next::Wait { .. } | Next::Park { .. } if !self.comes_back(slot) => {
                self.finish(slot, at, OperationOutcome::Superseded, out);
            }
            Next::Send => self.make_ready(slot, at_once, now, out),
            Next::Wait { wanted, until } => {
                let generation = self.held.put(slot, Place::Backoff, wanted);
                wake_at(until.max(now), Reason::Operation { slot, generation }, out);
            }
            Next::Park { wanted, until } => {
                self.budget_refused(slot, at, out);
                let generation = self.held.put(slot, Place::Owing, wanted);
                wake_at(until.max(now), Reason::Operation { slot, generation }, out);
            }
            Next::Finished(end) => {
                if end == End::Budget {
                    self.budget_refused(slot, at, out);
                }
                self.finish(slot, at, end.outcome(), out);
            }
        }
    }

    fn budget_refused(&mut self, slot: u32, at: Timestamp, out: &mut Output) {
        let entry = self.held.get(slot);
        out.events.push(Event::BudgetRefused { operation: self.rules.id(entry.client, entry.number), at });
    }

    /// The end of an operation that is held, and is in no outbox and on no wire any more.
    fn finish(&mut self, slot: u32, at: Timestamp, outcome: OperationOutcome, out: &mut Output) {
        let entry = self.held.get_mut(slot);
        entry.operation.leave(&self.rules.terms(entry.client, entry.number));
        let entry = *entry;
        let (operation, attempts) = (self.rules.id(entry.client, entry.number), entry.operation.attempts());
        let (offered, last) = (entry.operation.intended(), entry.operation.last());
        out.events.push(Event::Finished { operation, offered, at, outcome, attempts, last });
        self.deep_retries -= u64::from(attempts > 3);
        self.strike_out(slot);
        self.held.remove(slot);
        self.client(entry.client).held -= 1;
        self.schedule_after_end(entry.client, at);
    }

    /// After anything that happened to a client: its connection may be free for the next operation in its outbox, and
    /// under closed load its next operation may be due.
    fn settle(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        self.pump(client, now, out);
        if self.rules.is_closed() {
            self.arrivals(client, now, out);
        }
    }

    fn ceiling_is_due(&mut self, now: Timestamp, out: &mut Output) {
        while let Some(client) = self.ceiling.as_mut().and_then(|ceiling| ceiling.next(now)) {
            self.client(client).in_line = false;
            if self.can_send(client, now, out) && self.launch(client, now, out) {
                let next = self.ceiling.as_mut().and_then(|ceiling| ceiling.used(now));
                if let Some(at) = next.filter(|at| *at > now) {
                    wake_at(self.rules.on_grid(at), Reason::Ceiling, out);
                }
            }
            self.settle(client, now, out);
        }
    }

    /// Whether a client has as many attempts out as it may.
    fn is_full(&mut self, client: u32) -> bool {
        if self.controls.holds(client) {
            return true;
        }
        let out = self.wires.busy(&self.clients, client);
        if self.wires.is_single() {
            return out > 0;
        }
        out > 0 && out >= self.guards.concurrency(client).unwrap_or(1)
    }

    /// Whether an operation that becomes ready now has to wait for others of its client.
    fn is_busy(&mut self, client: u32) -> bool {
        self.first_ready(client) != NONE || self.is_full(client)
    }

    fn client(&mut self, client: u32) -> &mut Client {
        &mut self.clients[client as usize]
    }
}

/// Asks for a wake-up, unless it would never come.
fn wake_at(at: Timestamp, reason: Reason, out: &mut Output) {
    if at != Timestamp::NEVER {
        out.commands.push(Command::Wake { at, token: Token(reason) });
    }
}
