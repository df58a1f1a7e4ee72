//! From the queue to the wire: who is next, who takes it, and what may still hold it there, the ceiling and the guards.

use super::Workers;
use super::job::{NO_LANE, Place};
use super::machine::wake_at;
use crate::event::{Event, LateBy};
use crate::fleet::action::PauseScope;
use crate::fleet::ceiling;
use crate::fleet::interface::{Command, Output, Reason};
use crate::fleet::rules::LATE_AFTER;
use crate::fleet::slab::Held;
use crate::policy::throttle::Admission;
use crate::time::{Span, Timestamp};

impl Workers {
    /// Gives work to who is free.
    pub(super) fn dispatch(&mut self, now: Timestamp, out: &mut Output) {
        self.dispatch_parked(now, out);
        while self.ready.len() > 0 && self.crew.any_free() {
            let next = self.ready.next(&self.held, |number| self.destinations[usize::from(number)].is_open(now));
            let Some(slot) = next else { return self.ask_for_token(now, out) };
            if self.rules.expires(self.held.get(slot)).is_some_and(|at| at <= now) {
                self.give_up(slot, now, out);
                continue;
            }
            self.ready.take(slot, &mut self.held);
            let worker = self.crew.give(slot).expect("somebody is free");
            let job = self.held.get_mut(slot);
            if !job.operation.retries_next() {
                job.account = worker;
            }
            self.set_to_work(slot, worker, now, out);
        }
    }

    /// A worker that was given an operation goes to work on it.
    pub(super) fn set_to_work(&mut self, slot: u32, worker: u32, now: Timestamp, out: &mut Output) {
        let job = self.held.get_mut(slot);
        job.worker = worker;
        self.ready.enter(job.lane);
        self.destinations[usize::from(job.destination)].spend(now);
        self.at_work += 1;
        self.launch(slot, now, out);
    }

    /// The lane that an operation takes: the one that its policy sends it to, or its destination's.
    pub(super) fn lane_of(&self, destination: u16, sent_to: u16) -> u16 {
        if sent_to == NO_LANE { self.destinations[usize::from(destination)].lane } else { sent_to }
    }

    /// Somebody is free, and nothing may go: if that is for want of a token, asks for the wake-up when there is one.
    fn ask_for_token(&mut self, now: Timestamp, out: &mut Output) {
        let open = self.ready.waiting().map(|number| &self.destinations[usize::from(number)]);
        let open = open.filter(|destination| destination.paused != Some(PauseScope::All));
        let next = open.map(|destination| destination.token_at(now)).filter(|at| *at > now).min();
        if let Some(at) = next.map(|at| self.rules.on_grid(at)).filter(|at| *at < self.token_at) {
            self.token_at = at;
            wake_at(at, Reason::Token, out);
        }
    }

    /// A worker goes on with its operation after a wait, or at once.
    pub(super) fn go_on(&mut self, slot: u32, wanted: Option<Timestamp>, now: Timestamp, out: &mut Output) {
        self.scheduled += 1;
        let job = self.held.get_mut(slot);
        job.since = wanted.unwrap_or(now);
        job.held = if wanted.is_some() { Held::No } else { Held::AtOnce };
        self.launch(slot, now, out);
    }

    /// Sends a worker's operation, if the ceiling and its guards let it.
    fn launch(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let worker = self.held.get(slot).worker;
        match self.ceiling.as_mut().map_or(ceiling::Admission::Now, |ceiling| ceiling.admit(worker, now)) {
            ceiling::Admission::Now => {
                self.try_to_send(slot, now, out);
            }
            admission => {
                self.stand_in_line(slot, now, out);
                if let ceiling::Admission::WaitUntil(at) = admission {
                    wake_at(self.rules.on_grid(at), Reason::Ceiling, out);
                }
            }
        }
    }

    /// A worker waits, with its operation, for the ceiling or a throttle.
    fn stand_in_line(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let since = self.held.get(slot).since;
        let generation = self.held.put(slot, Place::Line, since);
        self.held.get_mut(slot).held = Held::Ceiling;
        if let Some(at) = self.rules.expires(self.held.get(slot)) {
            wake_at(at.max(now), Reason::Operation { slot, generation }, out);
        }
    }

    /// Sends a worker's operation, if its guards let it; whether it went.
    fn try_to_send(&mut self, slot: u32, now: Timestamp, out: &mut Output) -> bool {
        if self.guards.is_empty() {
            self.send(slot, now, out);
            return true;
        }
        let job = *self.held.get(slot);
        match self.guards.admit(job.worker, now, job.operation.retries_next(), self.rules.throttle_draw(&job)) {
            Admission::Now => {
                self.send(slot, now, out);
                return true;
            }
            Admission::Refused => self.refused(slot, now, out),
            Admission::WaitUntil(at) => {
                self.stand_in_line(slot, now, out);
                wake_at(self.rules.on_grid(at.max(now + Span(1))), Reason::Throttle(job.worker), out);
            }
        }
        false
    }

    /// A guard refuses the try of a worker's operation.
    fn refused(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let mut job = *self.held.get(slot);
        out.events.push(Event::Throttled { operation: self.rules.id(job.destination, job.number), at: now });
        let next = job.operation.refused(now, &self.rules.terms(&job));
        self.held.get_mut(slot).operation = job.operation;
        self.follow(slot, next, now, None, now, out);
    }

    pub(super) fn throttle_is_due(&mut self, worker: u32, now: Timestamp, out: &mut Output) {
        if let Some(slot) = self.crew.on(worker).filter(|&slot| self.held.get(slot).place == Place::Line) {
            self.try_to_send(slot, now, out);
        }
        self.dispatch(now, out);
    }

    /// Puts a worker's operation on its wire.
    fn send(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let mut job = *self.held.get(slot);
        // An action may have brought another policy since it was dispatched.
        self.rules.equip(job.account);
        let attempt = job.operation.begin(now, &self.rules.terms(&job));
        let send = self.rules.send(&job, attempt);
        self.held.get_mut(slot).operation = job.operation;
        let generation = self.held.put(slot, Place::Wire, now);
        self.in_flight += 1;
        self.deep_retries += u64::from(attempt.number == 4);

        let operation = send.operation;
        let (intended, is_free) = (job.operation.intended(), job.held == Held::No);
        if is_free && attempt.number == 1 && self.rules.is_behind(intended + LATE_AFTER, now) {
            out.events.push(Event::LateStart { operation, at: now, late: now.since(intended), by: LateBy::Generator });
        }
        let lag = is_free.then(|| now.since(job.since));
        out.events.push(Event::Sent { operation, attempt: attempt.number, retry: attempt.retry, at: now, lag });
        out.commands.push(Command::Send(send));
        wake_at(attempt.timeout_at, Reason::Operation { slot, generation }, out);
    }

    pub(super) fn ceiling_is_due(&mut self, now: Timestamp, out: &mut Output) {
        while let Some(worker) = self.ceiling.as_mut().and_then(|ceiling| ceiling.next(now)) {
            let waits = self.crew.on(worker).filter(|&slot| self.held.get(slot).place == Place::Line);
            let Some(slot) = waits else { continue };
            if self.rules.expires(self.held.get(slot)).is_some_and(|at| at <= now) {
                self.give_up(slot, now, out);
                continue;
            }
            if self.try_to_send(slot, now, out) {
                let next = self.ceiling.as_mut().and_then(|ceiling| ceiling.used(now));
                if let Some(at) = next.filter(|at| *at > now) {
                    wake_at(self.rules.on_grid(at), Reason::Ceiling, out);
                }
            }
        }
        self.dispatch(now, out);
    }
}
