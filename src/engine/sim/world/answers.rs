//! What comes to an answer at the proxy, and the places that a request gives back with it.

use super::{What, World};
use crate::engine::sim::flight::{FlightId, Message, Reply, Stage};
use crate::engine::sim::queue::Queue;
use crate::event::AttemptOutcome;
use crate::fault::{Answer, Fate, Harm, drip_time};
use crate::service::answer_body;
use crate::time::{Span, Timestamp};

impl<Q: Queue<super::Step> + Default> World<Q> {
    /// What a client makes of an answer that a fault gives.
    pub(super) fn reply(&self, answer: &Answer, at: Timestamp) -> Reply {
        let contains = self.success.body_contains.as_deref().is_none_or(|text| answer.body.contains(text));
        Reply { status: answer.status, hint: answer.hint.map(|said| said.told(at)), contains }
    }

    /// An answer of the target has come, to which this comes.
    pub(super) fn harm(&mut self, id: FlightId, harm: &Harm, reply: Reply, now: Timestamp) {
        match harm {
            Harm::Replace(answer) => {
                let reply = self.reply(answer, now);
                self.answer(id, Message::Reply(reply), now);
            }
            Harm::Malformed(_) => self.break_off(id, AttemptOutcome::Malformed, now),
            Harm::Reset => self.break_off(id, AttemptOutcome::Reset, now),
            Harm::Lose => self.flight(id).stage = Stage::Silent,
            Harm::Cut { keep, .. } => {
                // A body whose length nobody knows is taken to be longer than what is kept of it.
                let length = self.body_length(reply.status);
                if length.is_some_and(|length| keep.of(Some(length)) >= length) {
                    self.answer(id, Message::Reply(reply), now);
                } else {
                    self.break_off(id, AttemptOutcome::Reset, now);
                }
            }
            Harm::Drip { bytes, every } => {
                let takes = self.body_length(reply.status).map_or(Span::ZERO, |length| drip_time(length, *bytes, *every));
                self.ask(now + takes, What::Answered, id);
            }
        }
    }

    /// The connection ends in the middle of an answer, or behind what is none.
    pub(super) fn break_off(&mut self, id: FlightId, how: AttemptOutcome, now: Timestamp) {
        if let Some(link) = self.link(id) {
            (link.connected, link.upstream) = (false, false);
        }
        self.answer(id, Message::Broken(how), now);
    }

    fn body_length(&self, status: u16) -> Option<u64> {
        self.built_in.then(|| answer_body(status).len() as u64)
    }

    /// Gives back every place that a request has, and leaves every queue.
    pub(super) fn leave_places(&mut self, id: FlightId, now: Timestamp) {
        let Some(held) = &mut self.flight(id).held else { return };
        held.waits = None;
        for rule in std::mem::take(&mut held.places) {
            if let Some(next) = rule.leave(id.number()) {
                self.ask(now, What::Admitted, FlightId::from_number(next));
            }
        }
    }

    /// Leaves the queue in which it waits, if it does.
    pub(super) fn leave_queue(&mut self, id: FlightId, now: Timestamp) {
        let Some(held) = &mut self.flight(id).held else { return };
        let Some((step, _)) = held.waits.take() else { return };
        let Some(at) = held.places.iter().position(|rule| rule.number == step) else { return };
        let rule = held.places.swap_remove(at);
        if let Some(next) = rule.leave(id.number()) {
            self.ask(now, What::Admitted, FlightId::from_number(next));
        }
    }

    /// A place has become free for one that waited for it.
    pub(super) fn admitted(&mut self, id: FlightId, now: Timestamp) {
        let Some(held) = &mut self.flight(id).held else { return };
        let Some((step, _)) = held.waits else { return };
        if held.places.iter().any(|rule| rule.number == step && rule.has_place(id.number())) {
            held.waits = None;
            held.hold.leave(step);
            self.release(id, now);
        }
    }

    /// It has waited for a place as long as it may.
    pub(super) fn out_of_patience(&mut self, id: FlightId, now: Timestamp) {
        let Some(held) = &mut self.flight(id).held else { return };
        let Some((step, _)) = held.waits.filter(|&(_, until)| until == now) else { return };
        let Some(rule) = held.places.iter().find(|rule| rule.number == step).cloned() else { return };
        if rule.has_place(id.number()) {
            return;
        }
        held.hold.leave(step);
        self.leave_queue(id, now);
        if let Some(answer) = rule.refusal() {
            self.meet(id, Fate::Answer { delay: Span::ZERO, answer }, None, now);
        }
    }
}
