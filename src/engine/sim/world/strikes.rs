//! What a change of the timeline does to what is there: faults that begin strike it, faults that end let it go.

use super::{Link, Step, World};
use crate::engine::sim::flight::{FlightId, NONE, Stage};
use crate::engine::sim::queue::Queue;
use crate::fault::{Active, Origin, Strike};
use crate::time::Timestamp;

impl<Q: Queue<Step> + Default> World<Q> {
    /// The timeline changes: what begins strikes what is there, what ends lets go.
    pub(super) fn turn(&mut self, now: Timestamp) {
        let before = std::mem::replace(&mut self.active, self.timeline.active(now));
        for id in self.flights.all() {
            self.strike(id, &before, now);
        }
        self.strike_idle(&before, now);
        for id in self.flights.all() {
            self.release(id, now);
        }
    }

    fn strike(&mut self, id: FlightId, before: &Active, now: Timestamp) {
        let flight = self.flight(id);
        let (origin, stage, is_at_proxy) = (flight.origin(), flight.stage, flight.is_at_proxy());
        let is_open = match stage {
            Stage::Connecting => false,
            Stage::OnLink => self.link(id).is_some_and(|link| link.connected),
            _ => true,
        };
        if !is_open {
            return;
        }
        let in_flight = is_at_proxy.then(|| self.request_of(id));
        let Some((step, strike)) = self.active.onset(before, origin, in_flight.as_ref(), now) else { return };
        self.touched[step] += 1;
        match strike {
            // Its answer has left, or itself has not; only the connection dies.
            Strike::Close | Strike::Reset if matches!(stage, Stage::ToClient | Stage::OnLink) => {
                if let Some(link) = self.link(id) {
                    (link.connected, link.upstream) = (false, false);
                }
            }
            Strike::Close | Strike::Reset => self.reset(id, now),
            Strike::Swallow { release: false } => {
                self.leave_queue(id, now);
                let flight = self.flight(id);
                flight.stage = Stage::Silent;
                if let Some(held) = &mut flight.held {
                    (held.hold, held.due, held.harm) = Default::default();
                }
            }
            Strike::Swallow { release: true } => {
                self.held(id).hold.strike(step);
            }
        }
    }

    /// Strikes the connections that nothing is on.
    fn strike_idle(&mut self, before: &Active, now: Timestamp) {
        for (number, fleet) in self.fleets.iter_mut().enumerate() {
            let number = u16::try_from(number).expect("a plan has fewer fleets than that");
            for region in 0..fleet.regions {
                let origin = Origin { fleet: number, region };
                let struck = self.active.onset(before, origin, None, now);
                let Some((step, Strike::Close | Strike::Reset)) = struck else { continue };
                let idle = |link: &&mut Link| link.region == region && link.connected && link.flight == NONE;
                for link in fleet.links.iter_mut().filter(idle) {
                    (link.connected, link.upstream) = (false, false);
                    self.touched[step] += 1;
                }
            }
        }
    }

    /// Lets an attempt go on, if nothing holds it any more.
    pub(super) fn release(&mut self, id: FlightId, now: Timestamp) {
        let active = &self.active;
        let Some(flight) = self.flights.get(id) else { return };
        let Some(held) = &mut flight.held else { return };
        if held.hold.holds(active) {
            return;
        }
        match (flight.stage, held.due.take()) {
            (Stage::Taken, _) => {
                // Where the limit has ended in whose queue it waited, so has the wait.
                self.leave_queue(id, now);
                let request = self.request_of(id);
                let hold = std::mem::take(&mut self.held(id).hold);
                let judgement = hold.judge_again(&self.active, &request, now);
                self.held(id).hold = hold;
                self.judged(id, judgement, now);
            }
            (_, Some(due)) => self.ask(now, due, id),
            (_, None) => {}
        }
    }
}
