//! What goes to the target and comes of it: requests as it sees them, what it answers, and when it has something to do.

use super::{Happened, NOBODY, Step, What, World};
use crate::engine::sim::flight::{FlightId, Message, Reply, Stage};
use crate::engine::sim::queue::Queue;
use crate::event::AttemptOutcome;
use crate::service::job::{NO_SLOT, Slot};
use crate::service::{Answer, Arrival, BROKEN, KeyHash, Metadata, RequestKey};
use crate::time::Timestamp;

impl<Q: Queue<Step> + Default> World<Q> {
    pub(super) fn at_target(&mut self, id: FlightId, now: Timestamp) -> Happened {
        let arrival = self.arrival(id);
        let job = self.service.arrive(now, arrival, &mut self.answers);
        self.flight(id).job = job;
        self.heard_of_target(now)
    }

    /// A request as the target sees it.
    pub(super) fn arrival(&mut self, id: FlightId) -> Arrival {
        let flight = self.flights.at(id);
        let fleet = &self.fleets[usize::from(flight.fleet)];
        let of = Metadata {
            idempotency_key: Some(KeyHash::new(flight.idempotency_key)),
            enqueued: flight.enqueued,
            client: fleet.key.client(flight.client),
            fleet: fleet.key.fleet(),
            attempt: flight.attempt,
            priority: flight.priority.unwrap_or(fleet.priority),
        };
        let key = RequestKey::Ours { idempotency_key: flight.idempotency_key, attempt: flight.attempt }.key(self.seed);
        let before = fleet.links.get(flight.connection as usize).map_or(NO_SLOT, |link| link.job);
        Arrival { id: id.number(), key, destination: flight.destination, before, of }
    }

    pub(super) fn serve(&mut self, now: Timestamp) -> Happened {
        if now != self.service_due {
            return Happened::Stale;
        }
        self.service_due = Timestamp::NEVER;
        self.service.advance(now, &mut self.answers);
        self.heard_of_target(now)
    }

    /// Sends what the target said back, and asks for its next moment.
    pub(super) fn heard_of_target(&mut self, now: Timestamp) -> Happened {
        let mut answers = std::mem::take(&mut self.answers);
        for Answer { id, at, status, hint } in answers.drain(..) {
            let id = FlightId::from_number(id);
            let Some(flight) = self.flights.get(id) else { continue };
            flight.message = match status {
                BROKEN => Message::Broken(AttemptOutcome::Reset),
                status => Message::Reply(Reply { status, hint: hint.map(|said| said.told(at)), contains: true }),
            };
            let at = at + self.network.upstream_hop(&mut flight.draws);
            if at <= now { self.answered(id, now) } else { self.ask(at, What::Answered, id) }
        }
        self.answers = answers;
        let due = self.service.due().unwrap_or(Timestamp::NEVER);
        if due < self.service_due {
            self.service_due = due;
            self.ask(due, What::Service, NOBODY);
        }
        Happened::Inside
    }

    /// Reads what the end of the attempt on this connection is going to read at the target. Nothing changes.
    pub fn foresee_target(&self, fleet: u16, connection: u32) -> u64 {
        let link = self.fleets[usize::from(fleet)].links.get(connection as usize);
        let Some(flight) = link.and_then(|link| self.flights.peek(link.flight)) else { return 0 };
        self.service.foresee(flight.job)
    }

    /// The proxy drops its connection to the target, if a request is on it.
    pub(super) fn leave_target(&mut self, id: FlightId, now: Timestamp) {
        if matches!(self.flight(id).stage, Stage::Upstream | Stage::Silent) {
            let at = now + self.upstream_hop(id);
            let job = self.flight(id).job;
            if at == now {
                self.cancel_at_target(id, job, now);
            } else {
                self.queue.push(at, Step { what: What::CancelAtTarget, flight: id, job });
            }
        }
    }

    pub(super) fn cancel_at_target(&mut self, id: FlightId, job: Slot, now: Timestamp) -> Happened {
        self.service.cancel(now, id.number(), job, &mut self.answers);
        self.heard_of_target(now)
    }
}
