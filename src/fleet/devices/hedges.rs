//! Several attempts of one operation at once: which are out, and what becomes of the others when one is answered.
//!
//! The first success wins, and so does the first failure that the policy does not retry; the others are cancelled then, and end as
//! `cancelled`. A failure that it would retry ends that attempt alone, and calls the next hedge at once; the last one out
//! is a failure like any other, and the retry loop says what follows.

use super::{Devices, Hint, Output, Place, Reason, wake_at};
use crate::event::{AttemptOutcome, Event};
use crate::fleet::Command;
use crate::operation::Attempt;
use crate::policy::HedgeConfig;
use crate::policy::throttle::Admission;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// The attempts that are out, by operation.
#[derive(Debug)]
pub(super) struct Hedges {
    config: HedgeConfig,
    flights: BTreeMap<u32, Flights>,
    serial: u32,
}

/// The attempts of one operation.
#[derive(Debug, Default)]
struct Flights {
    out: Vec<Flight>,
    /// Hedges so far, beside the attempt that they began with.
    hedges: u32,
}

/// An attempt on a wire.
#[derive(Clone, Copy, Debug)]
struct Flight {
    wire: u32,
    serial: u32,
    sent: Timestamp,
    attempt: Attempt,
}

impl Hedges {
    pub(super) fn new(config: HedgeConfig) -> Self {
        Self { config, flights: BTreeMap::new(), serial: 0 }
    }

    /// Other settings from here on; what is out stays.
    pub(super) fn set(&mut self, config: HedgeConfig) {
        self.config = config;
    }

    fn add(&mut self, slot: u32, wire: u32, attempt: Attempt, sent: Timestamp) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        let flight = Flight { wire, serial: self.serial, sent, attempt };
        self.flights.entry(slot).or_default().out.push(flight);
        self.serial
    }

    fn take(&mut self, slot: u32, is_it: impl Fn(&Flight) -> bool) -> Option<Flight> {
        let flights = &mut self.flights.get_mut(&slot)?.out;
        flights.iter().position(is_it).map(|index| flights.remove(index))
    }
}

impl Devices {
    /// An attempt went out: its time runs, and so does the time to the next hedge.
    pub(super) fn watch_flight(
        &mut self,
        slot: u32,
        generation: u32,
        wire: u32,
        attempt: Attempt,
        now: Timestamp,
        out: &mut Output,
    ) {
        let Some(hedges) = &mut self.hedges else { return };
        let serial = hedges.add(slot, wire, attempt, now);
        wake_at(attempt.timeout_at, Reason::Flight { slot, serial }, out);
        let made = hedges.flights.get(&slot).map_or(0, |flights| flights.hedges);
        if made < hedges.config.at_most {
            let at = self.rules.on_grid(now + hedges.config.after);
            wake_at(at, Reason::Operation { slot, generation }, out);
        }
    }

    /// Another attempt of an operation that has some on the wire, if there may be one.
    pub(super) fn hedge(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let entry = *self.held.get(slot);
        let Some(hedges) = &mut self.hedges else { return };
        let Some(flights) = hedges.flights.get_mut(&slot) else { return };
        if entry.place != Place::Wire
            || flights.hedges >= hedges.config.at_most
            || self.wires.is_full(&self.clients, entry.client)
        {
            return;
        }
        if self.guards.admit(entry.client, now, true, self.rules.throttle_draw(&entry)) != Admission::Now {
            return;
        }
        let terms = self.rules.terms(entry.client, entry.number);
        let Some(attempt) = self.held.get_mut(slot).operation.hedge(now, &terms) else { return };
        flights.hedges += 1;
        let wire = self.put_on_wire(slot, attempt, None, now, out);
        self.watch_flight(slot, self.held.generation(slot), wire, attempt, now, out);
    }

    /// The time of one of an operation's attempts is over. Whether it was still out.
    pub(super) fn flight_timed_out(&mut self, slot: u32, serial: u32, now: Timestamp, out: &mut Output) -> bool {
        let flights = self.hedges.as_ref().and_then(|hedges| hedges.flights.get(&slot));
        let Some(flight) = flights.and_then(|flights| flights.out.iter().find(|flight| flight.serial == serial)) else {
            return false;
        };
        let (wire, client) = (flight.wire, self.held.get(slot).client);
        out.commands.push(Command::Cancel { connection: self.wires.connection(self.rules.number_of(client), wire) });
        self.flight_over(slot, wire, now, AttemptOutcome::Timeout, Hint::NONE, out);
        self.settle(client, now, out);
        true
    }

    /// One of an operation's attempts has ended.
    pub(super) fn flight_over(
        &mut self,
        slot: u32,
        wire: u32,
        now: Timestamp,
        said: AttemptOutcome,
        hint: Hint,
        out: &mut Output,
    ) {
        let entry = *self.held.get(slot);
        let terms = self.rules.terms(entry.client, entry.number);
        let flight = self.hedges.as_mut().and_then(|hedges| hedges.take(slot, |flight| flight.wire == wire));
        let Some(flight) = flight else { return };
        let (at, outcome) = entry.operation.ending(flight.sent, now, said, &terms);
        let is_timeout = outcome == AttemptOutcome::Timeout;
        let retried = terms.retries(outcome);
        self.land(slot, flight, at, outcome, out);
        let others = self.hedges.as_ref().and_then(|hedges| hedges.flights.get(&slot));
        if retried && others.is_some_and(|flights| !flights.out.is_empty()) {
            return self.hedge(slot, now, out);
        }
        self.cancel_others(slot, at, out);
        let hint = if is_timeout { Hint::NONE } else { hint };
        let terms = self.rules.terms(entry.client, entry.number);
        let next = self.held.get_mut(slot).operation.follows(at, outcome, hint, &terms);
        self.follow(slot, next, at, is_timeout.then_some(at), now, out);
    }

    pub(super) fn cancel_others(&mut self, slot: u32, at: Timestamp, out: &mut Output) {
        let others = self.hedges.as_mut().and_then(|hedges| hedges.flights.remove(&slot));
        let client = self.rules.number_of(self.held.get(slot).client);
        for flight in others.into_iter().flat_map(|flights| flights.out) {
            out.commands.push(Command::Cancel { connection: self.wires.connection(client, flight.wire) });
            self.land(slot, flight, at, AttemptOutcome::Cancelled, out);
        }
    }

    /// Books the end of an attempt, and frees its connection.
    fn land(&mut self, slot: u32, flight: Flight, at: Timestamp, outcome: AttemptOutcome, out: &mut Output) {
        let entry = self.held.get(slot);
        let Flight { wire, sent, attempt, .. } = flight;
        let (client, operation) = (entry.client, self.rules.id(entry.client, entry.number));
        let terms = self.rules.terms(client, entry.number);
        entry.operation.close(at, outcome, attempt.retry, attempt.cost, &terms);
        out.events.push(Event::Ended { operation, attempt: attempt.number, sent, at, outcome });
        self.wires.release(&mut self.clients, client, wire);
        self.in_flight -= 1;
        self.guards.ended(client, at, outcome, at.since(sent));
        self.heard(client, at, outcome);
    }
}
