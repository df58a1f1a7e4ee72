//! The fate of a request at the proxy, and how that is carried out.

use super::{What, World};
use crate::engine::sim::flight::{FlightId, Held, Message, Onward, Stage};
use crate::engine::sim::queue::Queue;
use crate::event::AttemptOutcome;
use crate::fault::{Fate, Judgement, Pending, Request};
use crate::time::Timestamp;

impl<Q: Queue<super::Step> + Default> World<Q> {
    /// A request as faults see it.
    pub(super) fn request_of(&self, id: FlightId) -> Request {
        let flight = self.flights.peek(id.slot).expect("a name that was given is one of a slot");
        let of_fleet = &self.fleets[usize::from(flight.fleet)];
        let opened = of_fleet.links.get(flight.connection as usize).map_or(0, |link| link.opened);
        flight.request(id, opened, of_fleet.key.client(flight.client))
    }

    /// Books what touched it and the places that it has, and carries its fate out.
    pub(super) fn judged(&mut self, id: FlightId, judgement: Judgement, now: Timestamp) {
        judgement.touched.iter().for_each(|&step| self.touched[step] += 1);
        for step in judgement.entered {
            let rule = self.active.rule(step).cloned();
            self.held(id).places.extend(rule);
        }
        self.meet(id, judgement.fate, judgement.pending, now);
    }

    pub(super) fn held(&mut self, id: FlightId) -> &mut Held {
        self.flight(id).held.get_or_insert_default()
    }

    /// Carries out a fate.
    pub(super) fn meet(&mut self, id: FlightId, fate: Fate, pending: Option<Pending>, now: Timestamp) {
        let (onward, delay) = match fate {
            Fate::Forward { delay, harm } => {
                if harm.is_some() {
                    self.held(id).harm = harm;
                }
                (Onward::Forward, delay)
            }
            // To a client, either is the end of its connection before the answer.
            Fate::Close { delay } | Fate::Reset { delay } => (Onward::Reset, delay),
            Fate::Malformed { delay, .. } => (Onward::Malformed, delay),
            Fate::Answer { delay, answer } => (Onward::Answer(self.reply(&answer, now + delay)), delay),
            Fate::Swallow { release: false, .. } => {
                self.flight(id).stage = Stage::Silent;
                return;
            }
            Fate::Swallow { step, release: true } => {
                let active = self.active.clone();
                self.held(id).hold.take(step, &active, pending);
                self.flight(id).stage = Stage::Taken;
                return;
            }
            Fate::Wait { step, at_most, delay } => {
                let (active, until) = (self.active.clone(), now + at_most);
                let held = self.held(id);
                held.hold.queue(step, &active, pending, now + delay);
                held.waits = Some((step, until));
                held.places.extend(active.rule(step).cloned());
                self.flight(id).stage = Stage::Taken;
                self.ask(until, What::Patience, id);
                return;
            }
        };
        self.flight(id).stage = Stage::AtProxy(onward);
        if delay.is_zero() { self.onward(id, onward, now) } else { self.ask(now + delay, What::Onward, id) }
    }

    pub(super) fn onward(&mut self, id: FlightId, onward: Onward, now: Timestamp) {
        if self.is_held(id, What::Onward) {
            return;
        }
        match onward {
            Onward::Forward => self.forward(id, now),
            Onward::Answer(reply) => self.answer(id, Message::Reply(reply), now),
            Onward::Malformed => self.break_off(id, AttemptOutcome::Malformed, now),
            Onward::Reset => self.reset(id, now),
        }
    }

    /// Whether a fault holds it back; what is due then waits with it.
    pub(super) fn is_held(&mut self, id: FlightId, due: What) -> bool {
        let flight = self.flight(id);
        let held = flight.is_held();
        if let Some(of) = flight.held.as_mut().filter(|_| held) {
            of.due = Some(due);
        }
        held
    }
}
