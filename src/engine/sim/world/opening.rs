//! An attempt's way to the proxy: off a poor link, onto a connection, which may have to be opened first.

use super::{Happened, Step, What, World};
use crate::engine::sim::flight::{FlightId, Message, Stage};
use crate::engine::sim::queue::Queue;
use crate::event::AttemptOutcome;
use crate::time::Timestamp;

impl<Q: Queue<Step> + Default> World<Q> {
    pub(super) fn request(&mut self, id: FlightId, now: Timestamp) {
        let at = now + self.client_hop(id);
        let flight = self.flight(id);
        (flight.stage, flight.at_proxy) = (Stage::ToProxy, at);
        if at == now { self.at_proxy(id, now) } else { self.ask(at, What::AtProxy, id) }
    }

    pub(super) fn connect(&mut self, id: FlightId, now: Timestamp) {
        let flight = self.flights.at(id);
        flight.stage = Stage::Connecting;
        let at = now + self.network.connect(&mut flight.draws);
        // What refuses a connection ends an attempt, which takes a step.
        if at == now && self.active.is_empty() {
            self.connected(id, now);
        } else {
            self.ask(at, What::Connected, id);
        }
    }

    /// What a poor link held goes on the wire, unless its client has given it up.
    pub(super) fn off_link(&mut self, id: FlightId, now: Timestamp) {
        match self.link(id).map(|link| link.connected) {
            Some(true) => self.request(id, now),
            Some(false) => self.connect(id, now),
            None => {}
        }
    }

    pub(super) fn connected(&mut self, id: FlightId, now: Timestamp) -> Happened {
        let flight = self.flight(id);
        if flight.abandoned {
            // Its client closes what has just opened.
            return Happened::Stale;
        }
        let origin = flight.origin();
        let refusing: Vec<usize> = self.active.refusing(origin).collect();
        if !refusing.is_empty() {
            refusing.iter().for_each(|&step| self.touched[step] += 1);
            let flight = self.flight(id);
            (flight.stage, flight.message) = (Stage::ToClient, Message::Broken(AttemptOutcome::Connect));
            return self.deliver(id, now);
        }
        if let Some(link) = self.link(id) {
            (link.connected, link.upstream) = (true, false);
            link.opened = link.opened.wrapping_add(1);
        }
        self.connects[usize::from(origin.fleet)] += 1;
        self.request(id, now);
        Happened::Inside
    }
}
