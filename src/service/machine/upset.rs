//! What is changed from outside while it runs, restarts, and refusing the whole backlog.

use super::{Service, UNAVAILABLE};
use crate::service::change::{CacheState, RestartChange, ServiceChange};
use crate::service::drain::Drain;
use crate::service::job::{Place, Slot};
use crate::service::limiter::Limiters;
use crate::service::refusal::Refusing;
use crate::service::request::{Answer, BROKEN};
use crate::time::Timestamp;

impl Service {
    /// Changes it while it runs; answers that follow go to `out`. What is not named stays.
    pub fn change(&mut self, now: Timestamp, change: &ServiceChange, out: &mut Vec<Answer>) {
        self.advance(now, out);
        self.changes += 1;
        if let Some(share) = change.capacity {
            self.capacity.set(self.now, share, change.over);
        }
        if let Some(limiter) = &change.limiter {
            self.limiters = limiter.get().map(Limiters::new).unwrap_or_default();
        }
        if let Some(drain) = &change.drain {
            self.drain = drain.get().copied().map(Drain::new);
        }
        match change.cache {
            Some(CacheState::Cold) => self.bends.cold(),
            Some(CacheState::Warm) => self.bends.warm(),
            None => {}
        }
        if let Some(refusing) = &change.reject_backlog {
            self.refuse_backlog(self.now, refusing, out);
        }
        if let Some(restart) = &change.restart {
            self.restart(restart, out);
        }
        self.fill(self.now, out);
        self.settle(out);
    }

    /// What is in service is lost, and what waits unless it is kept; whoever comes while it is down finds nobody.
    fn restart(&mut self, restart: &RestartChange, out: &mut Vec<Answer>) {
        let lost: Vec<Slot> = self.jobs.slots(|job| !(restart.keeps_queue && matches!(job.place, Place::Queued { .. })));
        for slot in lost {
            match self.jobs.at(slot).place {
                Place::Queued { .. } => self.leave_queue(slot),
                Place::InService { .. } | Place::Calling => self.stop(slot),
            }
            if let Some(id) = self.jobs.at(slot).id {
                self.tell(slot, Answer { id, at: self.now, status: BROKEN, hint: None }, out);
            }
            self.forget(slot, self.now);
            self.counts.lost += 1;
        }
        self.down_until = Some(self.now + restart.down_for);
        self.bends.cold();
    }

    /// When the oldest that waits becomes too old for the rule on the backlog.
    pub(super) fn rule_due(&self) -> Option<Timestamp> {
        self.rule.as_ref()?.due(self.queue.oldest(&self.jobs)?)
    }

    pub(super) fn refuse_by_rule(&mut self, at: Timestamp, out: &mut Vec<Answer>) {
        if let Some(refusing) = self.rule.as_ref().map(|rule| rule.refusing.clone()) {
            self.refuse_backlog(at, &refusing, out);
        }
    }

    /// Refuses the backlog where it has become too deep.
    pub(super) fn refuse_deep_backlog(&mut self, out: &mut Vec<Answer>) {
        if self.rule.as_ref().is_some_and(|rule| rule.is_met(self.queue.len(), None)) {
            self.refuse_by_rule(self.now, out);
        }
    }

    /// Everything that waits is refused, the oldest first. Where the hint is the backlog's, each hears how long those before it would take, so
    /// that they come back at the pace at which they can be served.
    fn refuse_backlog(&mut self, at: Timestamp, refusing: &Refusing, out: &mut Vec<Answer>) {
        let mut told = 0;
        while let Some(slot) = self.queue.take(&mut self.jobs, at) {
            told += usize::from(self.jobs.at(slot).id.is_some());
            let refusal = refusing.refuse(UNAVAILABLE, self.ahead_of(told));
            self.counts.backlog_rejected += 1;
            self.end_unserved(slot, at, Some(refusal), out);
        }
    }

    /// A request leaves the queue from wherever it stands.
    pub(super) fn leave_queue(&mut self, slot: Slot) {
        self.queue.leave(&mut self.jobs, slot);
        self.left_queue(slot);
    }
}
