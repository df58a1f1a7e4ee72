//! How a request enters: past everything that may refuse it, into service or the queue.

use super::{Service, UNAVAILABLE};
use crate::service::duplicates::Found;
use crate::service::job::Slot;
use crate::service::limiter::Load;
use crate::service::queue::Joined;
use crate::service::queue::config::MAX_QUEUED;
use crate::service::refusal::{Refusal, Refusing};
use crate::service::request::{Answer, Arrival, BROKEN, Metadata};
use crate::time::{Span, Timestamp};

impl Service {
    /// Gives the job that answers it, unless nobody does.
    pub(super) fn enter(&mut self, arrival: &Arrival, out: &mut Vec<Answer>) -> Option<Slot> {
        if self.down_until.is_some() {
            self.counts.lost += 1;
            out.push(Answer { id: arrival.id, at: self.now, status: BROKEN, hint: None });
            return None;
        }
        if self.jobs.len() >= self.memory {
            self.counts.memory_full += 1;
            return self.refuse(arrival.id, &Refusing::plain().refuse(UNAVAILABLE, Span::ZERO), out);
        }
        if let Err(refusal) = self.pass_limiters(&arrival.of) {
            self.counts.limited += 1;
            return self.refuse(arrival.id, &refusal, out);
        }
        match self.find(arrival) {
            Found::New => {}
            found => {
                self.counts.duplicates_suppressed += 1;
                // An answer from memory says nothing of the service's latency.
                self.limiters.left(self.now, &arrival.of, Span::ZERO, false);
                return self.repeated(arrival.id, found, out);
            }
        }
        if let Err(refusal) = self.pass_admission(&arrival.of) {
            self.counts.not_admitted += 1;
            self.limiters.left(self.now, &arrival.of, Span::ZERO, false);
            return self.refuse(arrival.id, &refusal, out);
        }
        self.take_in(arrival, out)
    }

    fn pass_limiters(&mut self, of: &Metadata) -> Result<(), Refusal> {
        if self.limiters.is_empty() {
            return Ok(());
        }
        let in_service = self.in_service() as u64;
        let load = Load { backlog: self.queue.len() as u64, in_service, ahead: self.ahead() };
        self.limiters.admit(self.now, of, load)
    }

    fn pass_admission(&mut self, of: &Metadata) -> Result<(), Refusal> {
        match &self.admission {
            None => Ok(()),
            Some(admission) => admission.admit(self.now, of, self.queue.len(), self.queue.bound(), self.ahead()),
        }
    }

    /// What is known of a request's operation.
    fn find(&mut self, arrival: &Arrival) -> Found {
        let Some((duplicates, key)) = self.duplicates.as_mut().zip(arrival.of.idempotency_key) else { return Found::New };
        // Whatever has the key of an operation, and has not ended, was taken in under it.
        let before = self.jobs.get(arrival.before).filter(|job| job.of.idempotency_key == Some(key));
        before.map_or_else(|| duplicates.find(self.now, key), |_| Found::Waiting(arrival.before))
    }

    /// A request of an operation that waits or is in service waits for the same answer, as does the one before it where it still waits; one of an
    /// operation that was done hears what that one heard.
    fn repeated(&mut self, id: u64, found: Found, out: &mut Vec<Answer>) -> Option<Slot> {
        match found {
            Found::New => None,
            Found::Done { status } => {
                out.push(Answer { id, at: self.now, status, hint: None });
                None
            }
            Found::Waiting(slot) => {
                if let Some(old) = self.jobs.at_mut(slot).id.replace(id) {
                    self.counts.superseded += 1;
                    match self.also.get_mut(slot.0.into()) {
                        Some(others) => others.push(old),
                        None => drop(self.also.insert(slot.0.into(), vec![old])),
                    }
                }
                Some(slot)
            }
        }
    }

    fn take_in(&mut self, arrival: &Arrival, out: &mut Vec<Answer>) -> Option<Slot> {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let work = self.time.draw(arrival.key);
        let slot = self.jobs.insert(arrival, self.now, ticket, work);
        let at_once = self.queue.is_empty() && self.may_start(self.now);
        let joined = if at_once {
            Joined::Waits
        } else if self.unlimited {
            // Nobody waits for a server where there is one for everybody; only the machine's own bound keeps them out.
            self.counts.bound_reached += 1;
            Joined::Full
        } else {
            self.queue.join(&mut self.jobs, slot, self.now)
        };
        if joined == Joined::Full {
            let job = self.jobs.remove(slot);
            self.counts.queue_full += 1;
            self.counts.bound_reached += u64::from(self.queue.bound() == MAX_QUEUED as usize);
            self.limiters.left(self.now, &job.of, Span::ZERO, false);
            let refusal = self.full.refuse(UNAVAILABLE, self.ahead());
            return self.refuse(arrival.id, &refusal, out);
        }
        if let Some((duplicates, key)) = self.duplicates.as_mut().zip(arrival.of.idempotency_key) {
            duplicates.took_in(key, slot);
        }
        if let Some(admission) = self.admission.as_mut().filter(|_| !at_once) {
            admission.joined(&arrival.of);
        }
        match joined {
            _ if at_once => self.start(self.now, slot),
            Joined::Sheds(victim) => self.shed(victim, out),
            _ => {}
        }
        self.refuse_deep_backlog(out);
        // A service time of zero is over at once.
        self.settle(out);
        Some(slot)
    }

    fn shed(&mut self, victim: Slot, out: &mut Vec<Answer>) {
        self.counts.shed += 1;
        let refusal = self.full.refuse(UNAVAILABLE, self.ahead());
        self.end_unserved(victim, self.now, Some(refusal), out);
    }

    /// Somebody is refused who was not taken in.
    fn refuse(&mut self, id: u64, refusal: &Refusal, out: &mut Vec<Answer>) -> Option<Slot> {
        out.push(Answer { id, at: self.now, status: refusal.status, hint: refusal.hint });
        self.pay_for_refusal();
        None
    }

    /// How long what waits would take, at the capacity there is: backlog / capacity. Nothing where there is no end to the servers.
    pub(super) fn ahead(&self) -> Span {
        self.ahead_of(self.queue.len())
    }

    /// The same for so many.
    pub(super) fn ahead_of(&self, waiting: usize) -> Span {
        let served = self.mean / (self.servers.bound() as f64 * self.capacity.share()).max(1e-9);
        let drained = self.drain.as_ref().map_or(0.0, |drain| drain.interval().as_secs_f64());
        Span::from_secs_f64(waiting as f64 * served.max(drained))
    }

    /// Whether a request may enter service now.
    pub(super) fn may_start(&self, at: Timestamp) -> bool {
        self.down_until.is_none_or(|until| until <= at) && self.servers.len() + self.calling < self.servers.bound()
    }
}
