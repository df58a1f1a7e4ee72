//! What becomes of a request that was taken in: it is served, it calls, it ends.

use super::{Calling, Service, UNAVAILABLE};
use crate::service::job::{Job, NO_SLOT, Place, Slot};
use crate::service::queue::Popped;
use crate::service::refusal::Refusal;
use crate::service::request::Answer;
use crate::time::{Span, Timestamp};

impl Service {
    /// Servers that are idle take what waits.
    pub(super) fn fill(&mut self, at: Timestamp, out: &mut Vec<Answer>) {
        while !self.queue.is_empty() && self.may_start(at) && self.drain.as_ref().is_none_or(|drain| drain.next() <= at) {
            match self.queue.pop(&mut self.jobs, at) {
                None => return,
                Some(Popped::Serve(slot)) => {
                    if let Some(drain) = &mut self.drain {
                        drain.left(at);
                    }
                    self.left_queue(slot);
                    self.start(at, slot);
                }
                Some(Popped::Drop(slot)) => {
                    self.counts.dropped_by_codel += 1;
                    let refusal = self.full.refuse(UNAVAILABLE, self.ahead());
                    self.end_unserved(slot, at, Some(refusal), out);
                }
                Some(Popped::Expired(slot)) => self.end_expired(slot, at, out),
            }
        }
        self.pay_with_idle(at);
    }

    /// When the drain lets another one go: only where it alone holds somebody back.
    pub(super) fn drain_due(&self) -> Option<Timestamp> {
        let drain = self.drain.as_ref()?;
        (!self.queue.is_empty() && self.may_start(drain.next())).then(|| drain.next())
    }

    /// A request enters service.
    pub(super) fn start(&mut self, at: Timestamp, slot: Slot) {
        let others = self.in_service();
        let owed = self.refusals.pay();
        self.counts.refusing += owed;
        let job = self.jobs.at_mut(slot);
        job.work = self.bends.work(job.work, others, job.key);
        let since = self.capacity.work(at) + owed.0;
        let done = self.servers.start(since, slot, job.ticket, job.work);
        job.place = Place::InService { done, since };
    }

    /// The next one in service is done.
    pub(super) fn finish(&mut self, at: Timestamp, out: &mut Vec<Answer>) {
        let Some((_, slot)) = self.servers.finish(self.capacity.work(at)) else { return };
        if slot == NO_SLOT {
            self.paying -= 1;
            return;
        }
        self.bends.served();
        if let Some(calls) = &mut self.calls {
            let job = self.jobs.at_mut(slot);
            job.place = Place::Calling;
            calls.begun.push(Calling { job: slot, key: job.key, of: job.of, at });
            self.calling += 1;
        } else {
            self.end(slot, at, 200, out);
        }
    }

    /// A request was served to its end, with this status.
    pub(super) fn end(&mut self, slot: Slot, at: Timestamp, status: u16, out: &mut Vec<Answer>) {
        let job = self.jobs.remove(slot);
        let ok = (200..400).contains(&status);
        self.counts.served += 1;
        self.counts.failed += u64::from(!ok);
        match job.id {
            Some(id) => {
                self.counts.useful += job.work;
                self.tell(slot, Answer { id, at, status, hint: None }, out);
            }
            None => {
                self.also.remove(slot.0.into());
                self.counts.served_for_nobody += 1;
                self.counts.wasted += job.work;
            }
        }
        self.limiters.left(at, &job.of, at.since(job.since), ok);
        self.executed(&job, at, ok, status);
    }

    fn executed(&mut self, job: &Job, at: Timestamp, ok: bool, status: u16) {
        let Some(key) = job.of.idempotency_key else { return };
        if ok && self.executions.executed(key) {
            self.counts.duplicates_executed += 1;
        }
        match &mut self.duplicates {
            Some(duplicates) if ok => duplicates.done(at, key, status),
            Some(duplicates) => duplicates.dropped(key),
            None => {}
        }
    }

    /// The oldest that wait have waited too long.
    pub(super) fn expire(&mut self, at: Timestamp, out: &mut Vec<Answer>) {
        while let Some((_, slot)) = self.queue.expired(&mut self.jobs, at) {
            self.end_expired(slot, at, out);
        }
    }

    fn end_expired(&mut self, slot: Slot, at: Timestamp, out: &mut Vec<Answer>) {
        self.counts.expired += 1;
        let refusal = self.answers_expired.then(|| self.full.refuse(UNAVAILABLE, self.ahead()));
        self.end_unserved(slot, at, refusal, out);
    }

    /// A request that has left the queue ends without service: it is told so, or nothing is.
    pub(super) fn end_unserved(&mut self, slot: Slot, at: Timestamp, refusal: Option<Refusal>, out: &mut Vec<Answer>) {
        self.left_queue(slot);
        self.end_left(slot, at, refusal, out);
    }

    /// The same for one whose leaving is in the books.
    pub(super) fn end_left(&mut self, slot: Slot, at: Timestamp, refusal: Option<Refusal>, out: &mut Vec<Answer>) {
        if let Some((Refusal { status, hint }, id)) = refusal.zip(self.jobs.at(slot).id) {
            self.tell(slot, Answer { id, at, status, hint }, out);
            self.pay_for_refusal();
        }
        self.forget(slot, at);
    }

    /// Everybody who waits for a job hears the same.
    pub(super) fn tell(&mut self, slot: Slot, answer: Answer, out: &mut Vec<Answer>) {
        out.push(answer);
        if !self.also.is_empty()
            && let Some(others) = self.also.remove(slot.0.into())
        {
            out.extend(others.into_iter().map(|id| Answer { id, ..answer }));
        }
    }

    /// The client of a request leaves. Whether nobody waits for its job any more.
    pub(super) fn leaves(&mut self, slot: Slot, id: u64) -> bool {
        let Some(newest) = self.jobs.get(slot).map(|job| job.id) else { return false };
        let others = if self.also.is_empty() { None } else { self.also.get_mut(slot.0.into()) };
        if newest != Some(id) {
            let place = others.and_then(|others| Some((others.iter().position(|other| *other == id)?, others)));
            self.counts.cancelled += u64::from(place.is_some());
            place.map(|(place, others)| others.remove(place));
            return false;
        }
        self.counts.cancelled += 1;
        let next = others.and_then(Vec::pop);
        self.jobs.at_mut(slot).id = next;
        next.is_none()
    }

    /// A request is taken out of the books that was not served to its end.
    pub(super) fn forget(&mut self, slot: Slot, at: Timestamp) -> Job {
        let job = self.jobs.remove(slot);
        self.also.remove(slot.0.into());
        self.limiters.left(at, &job.of, at.since(job.since), false);
        if let Some((duplicates, key)) = self.duplicates.as_mut().zip(job.of.idempotency_key) {
            duplicates.dropped(key);
        }
        job
    }

    /// The work for a client that has gone is given up.
    pub(super) fn give_up(&mut self, slot: Slot) {
        match self.jobs.at(slot).place {
            Place::Queued { .. } => self.leave_queue(slot),
            Place::InService { .. } | Place::Calling => self.stop(slot),
        }
        self.forget(slot, self.now);
    }

    /// A request in service is stopped: what was done for it is wasted, and its server is idle.
    pub(super) fn stop(&mut self, slot: Slot) {
        let job = self.jobs.at(slot);
        match job.place {
            Place::Queued { .. } => {}
            Place::InService { done, since } => {
                self.servers.stop(done, job.ticket);
                let elapsed = Span(self.capacity.work(self.now).saturating_sub(since));
                self.counts.wasted += elapsed.min(job.work);
            }
            Place::Calling => {
                self.calling -= 1;
                self.counts.wasted += job.work;
                if let Some(calls) = &mut self.calls {
                    calls.given_up.push(slot);
                }
            }
        }
    }

    /// A refusal was given: an idle server pays for it at once, or it is owed.
    pub(super) fn pay_for_refusal(&mut self) {
        self.refusals.refused();
        self.pay_with_idle(self.now);
    }

    /// What is owed takes an idle server for as long as it costs.
    fn pay_with_idle(&mut self, at: Timestamp) {
        if self.refusals.is_owing() && self.may_start(at) {
            let owed = self.refusals.pay();
            self.counts.refusing += owed;
            self.servers.start(self.capacity.work(at), NO_SLOT, self.next_ticket, owed);
            self.next_ticket += 1;
            self.paying += 1;
        }
    }

    pub(super) fn left_queue(&mut self, slot: Slot) {
        if let Some(admission) = &mut self.admission {
            admission.left(&self.jobs.at(slot).of);
        }
    }
}
