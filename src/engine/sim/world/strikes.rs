//! What a change of the timeline does to what is there: faults that begin strike it, faults that end let it go.

use super::{Link, Step, World};
use crate::engine::sim::flight::{FlightId, Hold, NONE, Stage};
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
        self.strike_idle(&before);
        for id in self.flights.all() {
            self.release(id, now);
        }
    }

    fn strike(&mut self, id: FlightId, before: &Active, now: Timestamp) {
        let flight = self.flight(id);
        let (origin, in_flight) = (flight.origin(), flight.in_flight());
        let stage = flight.stage;
        let is_open = match stage {
            Stage::Connecting => false,
            Stage::OnLink => self.link(id).is_some_and(|link| link.connected),
            _ => true,
        };
        if !is_open {
            return;
        }
        let Some((step, strike)) = self.active.onset(before, origin, in_flight.as_ref()) else { return };
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
                let flight = self.flight(id);
                (flight.stage, flight.hold) = (Stage::Silent, None);
            }
            Strike::Swallow { release: true } => {
                let flight = self.flight(id);
                let hold = flight.hold.get_or_insert_with(|| Box::new(Hold { by: Vec::new(), due: None, judged: None }));
                hold.by.push(step);
            }
        }
    }

    /// Strikes the connections that nothing is on.
    fn strike_idle(&mut self, before: &Active) {
        for (number, fleet) in self.fleets.iter_mut().enumerate() {
            let number = u16::try_from(number).expect("a plan has fewer fleets than that");
            for region in 0..fleet.regions {
                let origin = Origin { fleet: number, region };
                let Some((step, Strike::Close | Strike::Reset)) = self.active.onset(before, origin, None) else { continue };
                let idle = |link: &&mut Link| link.region == region && link.connected && link.flight == NONE;
                for link in fleet.links.iter_mut().filter(idle) {
                    (link.connected, link.upstream) = (false, false);
                    self.touched[step] += 1;
                }
            }
        }
    }

    fn release(&mut self, id: FlightId, now: Timestamp) {
        let active = &self.active;
        let Some(flight) = self.flights.get(id) else { return };
        let Some(hold) = &mut flight.hold else { return };
        hold.by.retain(|&step| active.contains(step));
        if !hold.by.is_empty() {
            return;
        }
        match (flight.stage, hold.due.take()) {
            (Stage::Taken { step }, _) => {
                let judged = hold.judged.clone().expect("it was judged when it was taken");
                let judgement = active.judge_released(&flight.request(), now, step as usize, &judged);
                judgement.touched.iter().for_each(|&step| self.touched[step] += 1);
                self.meet(id, judgement.fate, now);
            }
            (_, Some(due)) => {
                flight.hold = None;
                self.ask(now, due, id);
            }
            (_, None) => flight.hold = None,
        }
    }
}
