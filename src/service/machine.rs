//! The machine: all parts of a service put together.
//!
//! A request passes, in this order: the memory bound, the limiters, deduplication, admission; then it is served, or waits. Whatever
//! refuses on the way says so at once. How a request enters stands in `entry`, what becomes of it in `work`, what is
//! changed from outside in `upset`.
//!
//! Whoever drives it calls [`Service::advance`] at the moments that [`Service::due`] names, or a little later: the
//! machine works with the moment at which service ended, not with the moment at which it was told the time. So a
//! late timer delays answers, and does not lower the capacity.

mod entry;
mod upset;
mod work;

use super::admission::Admission;
use super::backlog::BacklogRule;
use super::capacity::Capacity;
use super::config::{self, ServiceConfig};
use super::counts::Counts;
use super::curve::Bends;
use super::drain::Drain;
use super::duplicates::Duplicates;
use super::executions::Executions;
use super::holding::Holding;
use super::job::{Jobs, Slot};
use super::limiter::Limiters;
use super::names::Names;
use super::queue::Queue;
use super::queue::expiry::Expiry;
use super::refusal::Refusing;
use super::refusals::Refusals;
use super::request::{Answer, Arrival, Metadata};
use super::servers::Servers;
use super::time::ServiceTime;
use crate::rng::Key;
use crate::time::Timestamp;

/// A service, sans-IO. Memory is bounded by the queue and the servers, time by the logarithm of those in service. `now` must not
/// run backwards; a moment that does is taken for the latest one seen.
#[derive(Clone, Debug)]
pub struct Service {
    time: ServiceTime,
    /// Its mean, in seconds.
    mean: f64,
    unlimited: bool,
    notices_cancel: bool,
    memory: usize,
    full: Refusing,
    answers_expired: bool,
    capacity: Capacity,
    bends: Bends,
    limiters: Limiters,
    admission: Option<Admission>,
    queue: Queue,
    rule: Option<BacklogRule>,
    drain: Option<Drain>,
    servers: Servers,
    /// How many servers are taken by requests that wait for what they call.
    calling: usize,
    /// How many of those in service are no requests, but pay for refusals.
    paying: usize,
    jobs: Jobs,
    /// By job, older requests of its operation that still wait, where there are any.
    also: Names<Vec<u64>>,
    duplicates: Option<Duplicates>,
    executions: Executions,
    refusals: Refusals,
    /// Until when it is down.
    down_until: Option<Timestamp>,
    calls: Option<Calls>,
    /// How often it was changed.
    changes: u64,
    next_ticket: u64,
    now: Timestamp,
    counts: Counts,
}

/// A request whose own work is done, and which now calls another service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calling {
    /// Its name here, until [`Service::returned`] is told what became of the call.
    pub job: Slot,
    /// Which random streams the call draws from.
    pub key: Key,
    /// What the request says of itself.
    pub of: Metadata,
    /// When its own work was done.
    pub at: Timestamp,
}

/// What is to be told of calls.
#[derive(Clone, Debug, Default)]
struct Calls {
    begun: Vec<Calling>,
    given_up: Vec<Slot>,
}

/// The status of a refusal whose plan names none.
const UNAVAILABLE: u16 = 503;

/// What happens next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The service comes back from a restart.
    Up,
    /// The capacity takes another step.
    Capacity,
    /// A server is done.
    Done,
    /// Somebody has waited too long.
    Expiry,
    /// The backlog is too old.
    Rule,
    /// The drain lets another one go.
    Drain,
}

impl Service {
    /// An idle service.
    pub fn new(config: &ServiceConfig) -> Self {
        let time = config.time();
        let cost = time.mean().scale(config.cost_of_refusal.get());
        Self {
            unlimited: config.servers() == config::Servers::Unlimited,
            notices_cancel: config.notices_cancel,
            memory: config.memory.map_or(usize::MAX, |memory| memory as usize),
            full: config.queue.0.refusing.clone(),
            answers_expired: config.queue.0.expire_after.as_ref().is_some_and(Expiry::is_answered),
            capacity: Capacity::new(&config.curve),
            bends: Bends::new(&config.curve),
            limiters: config.limiter.as_ref().map(Limiters::new).unwrap_or_default(),
            admission: config.admission.as_ref().map(Admission::new),
            queue: Queue::new(&config.queue),
            rule: config.reject_backlog.clone(),
            drain: config.drain.map(Drain::new),
            servers: Servers::new(config.servers()),
            calling: 0,
            paying: 0,
            jobs: Jobs::default(),
            also: Names::default(),
            duplicates: config.deduplicate.as_ref().map(Duplicates::new),
            executions: Executions::default(),
            refusals: Refusals::new(cost),
            down_until: None,
            calls: None,
            changes: 0,
            next_ticket: 0,
            now: Timestamp::ZERO,
            counts: Counts::default(),
            mean: time.mean().as_secs_f64(),
            time,
        }
    }

    /// The same, whose requests call another service once their own work is done: see [`Service::take_calls`].
    #[must_use]
    pub fn that_calls(self) -> Self {
        Self { calls: Some(Calls::default()), ..self }
    }

    /// A request arrives. It is refused at once, waits, or is served; answers that are due go to `out`. Gives the job that answers it, for
    /// [`Service::cancel`]; none where nobody is to be told that the client has gone.
    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival, out: &mut Vec<Answer>) -> Option<Slot> {
        self.advance(now, out);
        self.counts.arrived += 1;
        self.enter(&arrival, out)
    }

    /// The client of a request has gone, which that job was to answer. One that waits for no answer is ignored.
    pub fn cancel(&mut self, now: Timestamp, id: u64, job: Slot, out: &mut Vec<Answer>) {
        self.advance(now, out);
        let slot = job;
        if !self.leaves(slot, id) {
            return;
        }
        if self.notices_cancel {
            self.counts.given_up += 1;
            self.give_up(slot);
            self.fill(self.now, out);
            self.settle(out);
        }
    }

    /// The moment at which [`Service::advance`] has something to do; none while nothing is in service.
    pub fn due(&self) -> Option<Timestamp> {
        self.next().map(|(at, _)| at)
    }

    /// Lets the time pass; the answers that are due by now go to `out`, in the order in which they were.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Answer>) {
        self.now = self.now.max(now);
        self.settle(out);
    }

    /// Reads what the end of that job's request is going to read. Nothing changes.
    pub fn foresee(&self, job: Slot) -> u64 {
        self.jobs.get(job).map_or(0, |job| job.ticket)
    }

    /// What became of a call: the status that it comes to.
    pub fn returned(&mut self, now: Timestamp, job: Slot, status: u16, out: &mut Vec<Answer>) {
        self.advance(now, out);
        self.calling -= 1;
        self.end(job, self.now, status, out);
        self.fill(self.now, out);
        self.settle(out);
    }

    /// Takes the calls that have begun since this was asked last. To be asked after every other call.
    pub fn take_calls(&mut self, into: &mut Vec<Calling>) {
        if let Some(calls) = &mut self.calls {
            into.append(&mut calls.begun);
        }
    }

    /// Takes the jobs whose calls are to be cancelled, because nobody waits for them any more or a restart lost them. To be asked
    /// before [`Service::take_calls`], for a job's name is given again.
    pub fn take_given_up(&mut self, into: &mut Vec<Slot>) {
        if let Some(calls) = &mut self.calls {
            into.append(&mut calls.given_up);
        }
    }

    /// What it did so far and what it holds.
    pub fn counts(&self) -> Counts {
        let in_service = self.in_service() as u64;
        let keys_forgotten = self.duplicates.as_ref().map_or(0, Duplicates::forgotten);
        let limits_shared = self.limiters.overflowed();
        Counts { queued: self.queue.len() as u64, in_service, keys_forgotten, limits_shared, ..self.counts }
    }

    /// What of it can be changed, as it was when the time was last told.
    pub fn holding(&self) -> Holding {
        Holding {
            capacity: self.capacity.share(),
            capacity_goal: self.capacity.goal(),
            limiters: self.limiters.kinds().collect(),
            drain: self.drain.as_ref().map(|drain| drain.rate().get()),
            cache_hits: self.bends.hits(),
            is_down: self.down_until.is_some(),
            changes: self.changes,
        }
    }

    /// How many requests are in service.
    fn in_service(&self) -> usize {
        self.servers.len() + self.calling - self.paying
    }

    /// What happens next by itself, and when.
    fn next(&self) -> Option<(Timestamp, Due)> {
        let mut next = self.servers.next().and_then(|work| self.capacity.when(work)).map(|at| (at, Due::Done));
        let mut also = |at: Option<Timestamp>, due: Due| {
            if let Some(at) = at
                && next.is_none_or(|next| (at, due) < next)
            {
                next = Some((at, due));
            }
        };
        also(self.capacity.next_change(), Due::Capacity);
        also(self.down_until, Due::Up);
        also(self.queue.expires(&self.jobs), Due::Expiry);
        also(self.rule_due(), Due::Rule);
        also(self.drain_due(), Due::Drain);
        next
    }

    /// Lets everything happen that is due.
    fn settle(&mut self, out: &mut Vec<Answer>) {
        while let Some((at, due)) = self.next().filter(|(at, _)| *at <= self.now) {
            match due {
                Due::Done => self.finish(at, out),
                Due::Capacity => self.capacity.pass(at),
                Due::Up => {
                    self.down_until = None;
                    self.capacity.restarted(at);
                }
                Due::Expiry => self.expire(at, out),
                Due::Rule => self.refuse_by_rule(at, out),
                Due::Drain => {}
            }
            self.fill(at, out);
        }
    }
}

#[cfg(test)]
mod tests;
