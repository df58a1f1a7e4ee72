//! From an outbox to a wire, and back: what a client sends when, what its guards refuse, how an attempt ends.

use super::{Devices, Held, NONE, Output, Place, Reason, wake_at};
use crate::event::{AttemptOutcome, Event, LateBy, OperationOutcome};
use crate::fleet::{Command, ceiling};
use crate::operation::Attempt;
use crate::policy::Hint;
use crate::policy::throttle::Admission;
use crate::time::{Span, Timestamp};

impl Devices {
    /// Sends what is first in a client's outbox, as far as connections, guards and the ceiling let it.
    pub(super) fn pump(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        while !self.client(client).in_line && self.can_send(client, now, out) && self.may_send(client, now, out) {
            match self.ceiling.as_mut().map_or(ceiling::Admission::Now, |ceiling| ceiling.admit(client, now)) {
                ceiling::Admission::Now => {
                    self.launch(client, now, out);
                    if self.wires.is_single() && self.guards.is_empty() {
                        return;
                    }
                }
                admission => {
                    self.client(client).in_line = true;
                    if let ceiling::Admission::WaitUntil(at) = admission {
                        wake_at(self.rules.on_grid(at), Reason::Ceiling, out);
                    }
                }
            }
        }
    }

    /// Sends the first operation of a client's outbox that its guards let through; those they refuse leave it. Whether one went.
    pub(super) fn launch(&mut self, client: u32, now: Timestamp, out: &mut Output) -> bool {
        if self.guards.is_empty() {
            self.send(client, now, out);
            return true;
        }
        while self.can_send(client, now, out) {
            let slot = self.first_ready(client);
            let entry = self.held.get(slot);
            let (retry, draw) = (entry.operation.retries_next(), self.rules.throttle_draw(entry));
            match self.guards.admit(client, now, retry, draw) {
                Admission::Now => {
                    self.send(client, now, out);
                    return true;
                }
                Admission::Refused => self.refused(slot, now, out),
                Admission::WaitUntil(at) => {
                    self.client(client).in_line = true;
                    wake_at(self.rules.on_grid(at.max(now + Span(1))), Reason::Throttle(client), out);
                    return false;
                }
            }
        }
        false
    }

    /// A guard refuses the try of an operation in an outbox.
    pub(super) fn refused(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let entry = *self.held.get(slot);
        self.stand_back(slot);
        out.events.push(Event::Throttled { operation: self.rules.id(entry.client, entry.number), at: now });
        let next = self.held.get_mut(slot).operation.refused(now, &self.rules.terms(entry.client, entry.number));
        self.follow(slot, next, now, None, now, out);
    }

    /// Whether a client's connection is free and something is there to be sent. What its deadline has overtaken leaves.
    pub(super) fn can_send(&mut self, client: u32, now: Timestamp, out: &mut Output) -> bool {
        if self.is_full(client) {
            return false;
        }
        loop {
            match self.first_ready(client) {
                NONE => return false,
                first => {
                    if !self.give_up_if_due(first, now, out) {
                        return true;
                    }
                }
            }
        }
    }

    pub(super) fn give_up_if_due(&mut self, slot: u32, now: Timestamp, out: &mut Output) -> bool {
        let entry = *self.held.get(slot);
        let Some((at, outcome)) = self.rules.gives_up(&entry).filter(|(at, _)| *at <= now) else { return false };
        if entry.place == Place::Ready {
            self.stand_back(slot);
        }
        if outcome == OperationOutcome::Dropped {
            let (operation, late) = (self.rules.id(entry.client, entry.number), at.since(entry.operation.intended()));
            out.events.push(Event::LateStart { operation, at, late, by: LateBy::Plan });
        }
        self.finish(slot, at, outcome, out);
        true
    }

    /// Puts the first operation of a client's outbox on its wire.
    pub(super) fn send(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        let slot = self.first_ready(client);
        self.stand_back(slot);
        self.goes(slot);
        let entry = self.held.get_mut(slot);
        let terms = self.rules.terms(client, entry.number);
        let (intended, wanted, held) = (entry.operation.intended(), entry.since, entry.held);
        let attempt = entry.operation.begin(now, &terms);
        let generation = self.held.put(slot, Place::Wire, now);

        if let Some(by) = self.rules.late_start(intended, held, now).filter(|_| attempt.number == 1) {
            let operation = self.rules.id(client, self.held.get(slot).number);
            out.events.push(Event::LateStart { operation, at: now, late: now.since(intended), by });
        }
        let lag = (held == Held::No).then(|| now.since(wanted));
        let wire = self.put_on_wire(slot, attempt, lag, now, out);
        match &mut self.hedges {
            None => wake_at(attempt.timeout_at, Reason::Operation { slot, generation }, out),
            Some(_) => self.watch_flight(slot, generation, wire, attempt, now, out),
        }
        if !attempt.retry && !self.parked.is_empty() {
            self.earned(client, now, out);
        }
    }

    /// Gives an attempt to the engine, on a free connection of its client. Returns which.
    pub(super) fn put_on_wire(
        &mut self,
        slot: u32,
        attempt: Attempt,
        lag: Option<Span>,
        now: Timestamp,
        out: &mut Output,
    ) -> u32 {
        let entry = self.held.get(slot);
        let wire = self.wires.occupy(&mut self.clients, entry.client, slot);
        let connection = self.wires.connection(self.rules.number_of(entry.client), wire);
        let send = self.rules.send(entry, attempt, connection);
        if let Some(restraint) = &mut self.restraint {
            restraint.sent(entry.client, now);
        }
        self.in_flight += 1;
        self.deep_retries += u64::from(attempt.number == 4);
        out.events.push(Event::Sent { operation: send.operation, attempt: attempt.number, retry: attempt.retry, at: now, lag });
        out.commands.push(Command::Send(send));
        wire
    }

    /// The time of the only attempt of an operation is over.
    pub(super) fn timed_out(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let client = self.held.get(slot).client;
        let Some(wire) = self.wires.held_by(&self.clients, client, slot).next() else { return };
        out.commands.push(Command::Cancel { connection: self.wires.connection(self.rules.number_of(client), wire) });
        self.attempt_over(slot, wire, now, AttemptOutcome::Timeout, Hint::NONE, out);
    }

    /// An attempt on a wire has ended: the retry loop says when and how, and what follows. All that follows counts from
    /// that moment and not from when the engine came to it, so that an engine that is behind shows as lag.
    pub(super) fn attempt_over(
        &mut self,
        slot: u32,
        wire: u32,
        now: Timestamp,
        said: AttemptOutcome,
        hint: Hint,
        out: &mut Output,
    ) {
        if self.hedges.is_some() {
            return self.flight_over(slot, wire, now, said, hint, out);
        }
        let entry = self.held.get_mut(slot);
        let (client, number, sent) = (entry.client, entry.number, entry.since);
        let operation = self.rules.id(client, number);
        let terms = self.rules.terms(client, number);
        let (at, outcome) = entry.operation.ending(sent, now, said, &terms);
        let is_timeout = outcome == AttemptOutcome::Timeout;
        let hint = if is_timeout { Hint::NONE } else { hint };
        let next = entry.operation.ended(at, outcome, hint, &terms);
        out.events.push(Event::Ended { operation, attempt: entry.operation.attempts(), sent, at, outcome });
        self.wires.release(&mut self.clients, client, wire);
        self.in_flight -= 1;
        if !self.guards.is_empty() {
            self.guards.ended(client, at, outcome, at.since(sent));
        }
        self.heard(client, at, outcome);
        self.follow(slot, next, at, is_timeout.then_some(at), now, out);
    }
}
