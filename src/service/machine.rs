//! The machine: a limiter, a queue and servers put together.
//!
//! Whoever drives it calls [`Service::advance`] at the moments that [`Service::due`] names, or a little later: the
//! machine works with the moment at which service ended, not with the moment at which it was told the time. So a
//! late timer delays answers, and does not lower the capacity.

use super::change::ServiceChange;
use super::config::{self, ServiceConfig};
use super::counts::Counts;
use super::limiter::{Limiter, LimitersConfig};
use super::queue::{Queue, Waiting};
use super::job::Slot;
use super::request::{Answer, Arrival, Metadata};
use super::servers::Servers;
use super::time::ServiceTime;
use crate::rng::Key;
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;

/// A service, sans-IO. Every call costs O(log n); memory is bounded by the queue and the servers. `now` must not
/// run backwards; a moment that does is taken for the latest one seen.
#[derive(Clone, Debug)]
pub struct Service {
    time: ServiceTime,
    notices_cancel: bool,
    unlimited: bool,
    limiters: Vec<Limiter>,
    queue: Queue,
    servers: Servers,
    /// Where each request is whose client still waits.
    held: BTreeMap<u64, Held>,
    next_ticket: u64,
    now: Timestamp,
    counts: Counts,
    /// Where it calls another service for each request: what of each request the call is made with.
    calls: Option<BTreeMap<u64, (Key, Metadata)>>,
    /// The requests whose call is under way, by their tickets.
    calling: BTreeMap<u64, (Option<u64>, Span)>,
    took: Vec<Calling>,
    gone: Vec<Slot>,
}

/// Where a request is.
#[derive(Clone, Copy, Debug)]
enum Held {
    Queued { ticket: u64 },
    InService { done: Timestamp, ticket: u64 },
    Calling { ticket: u64 },
}

/// A request whose own service is done, and that needs a call before it can be answered. Its server stays taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calling {
    /// Its name, for [`Service::returned`].
    pub job: Slot,
    /// Which random stream it draws from.
    pub key: Key,
    /// What it says of itself.
    pub of: Metadata,
    /// When its own service was done.
    pub at: Timestamp,
}

impl Service {
    /// An idle service.
    pub fn new(config: &ServiceConfig) -> Self {
        Self {
            time: config.time(),
            notices_cancel: config.notices_cancel,
            unlimited: config.servers() == config::Servers::Unlimited,
            limiters: config.limiter.iter().flat_map(|LimitersConfig(all)| all).map(Limiter::new).collect(),
            queue: Queue::new(config.queue.bound()),
            servers: Servers::new(config.servers()),
            held: BTreeMap::new(),
            next_ticket: 0,
            now: Timestamp::ZERO,
            counts: Counts::default(),
            calls: None,
            calling: BTreeMap::new(),
            took: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// An idle service that calls another one for every request, see [`Service::take_calls`].
    pub fn calling(config: &ServiceConfig) -> Self {
        Self { calls: Some(BTreeMap::new()), ..Self::new(config) }
    }

    /// Moves the requests that need a call now to `into`.
    pub fn take_calls(&mut self, into: &mut Vec<Calling>) {
        into.append(&mut self.took);
    }

    /// Moves those to `into` whose call is to be ended: nobody waits for it any more.
    pub fn gave_up(&mut self, into: &mut Vec<Slot>) {
        into.append(&mut self.gone);
    }

    /// The call of a request is over; it is answered with this status.
    pub fn returned(&mut self, now: Timestamp, job: Slot, status: u16, out: &mut Vec<Answer>) {
        self.advance(now, out);
        let Some((id, work)) = self.calling.remove(&job.0.into()) else { return };
        self.servers.calling -= 1;
        self.answer(id, work, self.now, status, out);
        self.serve_next(self.now);
        self.settle(out);
    }

    /// A request arrives. It is refused at once, waits, or is served; answers that are due go to `out`.
    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival, out: &mut Vec<Answer>) {
        self.advance(now, out);
        self.counts.arrived += 1;
        if let Some(refusal) = self.limiters.iter_mut().find_map(|limiter| limiter.admit(self.now).err()) {
            self.counts.limited += 1;
            out.push(Answer { id: arrival.id, at: self.now, status: refusal.status, hint: refusal.hint });
            return;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let request = Waiting { id: Some(arrival.id), work: self.time.draw(arrival.key) };
        if let Some(calls) = &mut self.calls {
            calls.insert(ticket, (arrival.key, arrival.of));
        }
        if self.servers.any_idle() {
            self.serve(self.now, ticket, request);
            // A service time of zero is over at once.
            self.settle(out);
        } else if !self.unlimited && self.queue.join(ticket, request) {
            self.held.insert(arrival.id, Held::Queued { ticket });
        } else {
            self.counts.queue_full += 1;
            self.counts.bound_reached += u64::from(self.unlimited);
            out.push(Answer { id: arrival.id, at: self.now, status: 503, hint: None });
        }
    }

    /// The client of a request has gone. An id that waits for no answer is ignored.
    pub fn cancel(&mut self, now: Timestamp, id: u64, out: &mut Vec<Answer>) {
        self.advance(now, out);
        let Some(held) = self.held.remove(&id) else { return };
        self.counts.cancelled += 1;
        if self.notices_cancel {
            self.counts.given_up += 1;
            match held {
                Held::Queued { ticket } => self.queue.leave(ticket),
                Held::InService { done, ticket } => {
                    self.counts.wasted += self.servers.stop(self.now, done, ticket);
                    self.serve_next(self.now);
                    self.settle(out);
                }
                Held::Calling { ticket } => {
                    if let Some((_, work)) = self.calling.remove(&ticket) {
                        self.counts.wasted += work;
                        self.servers.calling -= 1;
                        self.gone.push(Slot(ticket as u32));
                        self.serve_next(self.now);
                        self.settle(out);
                    }
                }
            }
        } else {
            match held {
                Held::Queued { ticket } => self.queue.orphan(ticket),
                Held::InService { done, ticket } => self.servers.orphan(done, ticket),
                Held::Calling { ticket } => {
                    if let Some((id, _)) = self.calling.get_mut(&ticket) {
                        *id = None;
                    }
                }
            }
        }
    }

    /// The moment at which [`Service::advance`] has something to do; none while nothing is in service.
    pub fn due(&self) -> Option<Timestamp> {
        self.servers.next()
    }

    /// Lets the time pass; the answers that are due by now go to `out`, in the order in which they were.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Answer>) {
        self.now = self.now.max(now);
        self.settle(out);
    }

    /// Changes it while it runs; answers that follow go to `out`.
    pub fn change(&mut self, now: Timestamp, change: &ServiceChange, out: &mut Vec<Answer>) {
        self.advance(now, out);
        if let Some(limiter) = &change.limiter {
            self.limiters = limiter.get().iter().flat_map(|LimitersConfig(all)| all).map(Limiter::new).collect();
        }
    }

    /// What it did so far and what it holds.
    pub fn counts(&self) -> Counts {
        Counts { queued: self.queue.len() as u64, in_service: (self.servers.len() + self.calling.len()) as u64, ..self.counts }
    }

    /// Ends every service that is due, and starts the next one at the moment when a server became idle.
    fn settle(&mut self, out: &mut Vec<Answer>) {
        while let Some((done, serving)) = self.servers.finish(self.now) {
            let work = done.since(serving.since);
            if let Some((key, of)) = self.calls.as_mut().and_then(|calls| calls.remove(&serving.ticket)) {
                self.servers.calling += 1;
                self.calling.insert(serving.ticket, (serving.id, work));
                serving.id.and_then(|id| self.held.insert(id, Held::Calling { ticket: serving.ticket }));
                self.took.push(Calling { job: Slot(serving.ticket as u32), key, of, at: done });
                continue;
            }
            self.answer(serving.id, work, done, 200, out);
            self.serve_next(done);
        }
    }

    fn answer(&mut self, id: Option<u64>, work: Span, at: Timestamp, status: u16, out: &mut Vec<Answer>) {
        self.counts.served += 1;
        match id {
            Some(id) => {
                self.counts.useful += work;
                self.held.remove(&id);
                out.push(Answer { id, at, status, hint: None });
            }
            None => {
                self.counts.served_for_nobody += 1;
                self.counts.wasted += work;
            }
        }
    }

    /// An idle server takes the first request of the queue.
    fn serve_next(&mut self, from: Timestamp) {
        if let Some((ticket, request)) = self.queue.pop() {
            self.serve(from, ticket, request);
        }
    }

    fn serve(&mut self, from: Timestamp, ticket: u64, request: Waiting) {
        let done = self.servers.start(from, ticket, request);
        if let Some(id) = request.id {
            self.held.insert(id, Held::InService { done, ticket });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limiter::{LimiterConfig, SlidingLog};
    use super::super::queue::{Bound, QueueConfig};
    use super::super::request::Metadata;
    use super::super::time::ExponentialTime;
    use super::*;
    use crate::policy::hint::Said;
    use crate::rng::{Key, Purpose};
    use crate::time::Span;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn config(servers: u32, time: ServiceTime, queue: u32, notices_cancel: bool) -> ServiceConfig {
        let queue = QueueConfig::of(Bound::Limited(queue));
        ServiceConfig { queue, notices_cancel, ..ServiceConfig::new(config::Servers::Limited(servers), time) }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + MS(millis)
    }

    fn request(id: u64) -> Arrival {
        let key = Key { seed: 11, operation: id, attempt: 1, ..Key::default() };
        Arrival { id, key, destination: 0, of: Metadata::nothing(Timestamp::ZERO) }
    }

    /// One thing that happens to a service.
    #[derive(Clone, Copy)]
    enum Step {
        Arrive(u64),
        Cancel(u64),
        Advance,
    }
    use Step::{Advance, Arrive, Cancel};

    /// Runs steps at moments in milliseconds; gives the answers as (id, milliseconds, status), and the counts.
    fn play(config: &ServiceConfig, steps: &[(u64, Step)]) -> (Vec<(u64, u64, u16)>, Counts) {
        let mut service = Service::new(config);
        let mut out = Vec::new();
        for (millis, step) in steps {
            match step {
                Arrive(id) => service.arrive(at(*millis), request(*id), &mut out),
                Cancel(id) => service.cancel(at(*millis), *id, &mut out),
                Advance => service.advance(at(*millis), &mut out),
            }
            balance(&service);
        }
        (out.iter().map(|a| (a.id, a.at.as_millis(), a.status)).collect(), service.counts())
    }

    fn balance(service: &Service) {
        let c = service.counts();
        assert_eq!(c.arrived, c.served + c.limited + c.queue_full + c.given_up + c.queued + c.in_service, "{c:?}");
    }

    #[test]
    fn requests_are_served_in_the_order_of_arrival_and_a_full_queue_refuses_at_once() {
        let config = config(2, ServiceTime::Constant(MS(10)), 2, false);
        let steps =
            [(0, Arrive(1)), (1, Arrive(2)), (2, Arrive(3)), (3, Arrive(4)), (4, Arrive(5)), (10, Advance), (40, Advance)];
        let (answers, counts) = play(&config, &steps);
        assert_eq!(answers, [(5, 4, 503), (1, 10, 200), (2, 11, 200), (3, 20, 200), (4, 21, 200)]);
        assert_eq!((counts.served, counts.queue_full, counts.useful, counts.wasted), (4, 1, MS(40), Span::ZERO));
    }

    #[test]
    fn a_late_timer_delays_answers_and_not_the_work() {
        let config = config(1, ServiceTime::Constant(MS(10)), 10, false);
        let arrivals = [(0, Arrive(1)), (0, Arrive(2)), (0, Arrive(3))];
        let punctual = [&arrivals[..], &[(10, Advance), (20, Advance), (30, Advance)]].concat();
        let late = [&arrivals[..], &[(19, Advance), (35, Advance)]].concat();
        assert_eq!(play(&config, &punctual), play(&config, &late));
    }

    #[test]
    fn a_service_that_notices_nothing_works_on_for_clients_that_have_gone() {
        let config = config(1, ServiceTime::Constant(MS(10)), 5, false);
        let steps =
            [(0, Arrive(1)), (0, Arrive(2)), (0, Arrive(3)), (4, Cancel(1)), (5, Cancel(2)), (5, Cancel(2)), (40, Advance)];
        let (answers, counts) = play(&config, &steps);
        assert_eq!(answers, [(3, 30, 200)], "the third waits for the work of the two that have gone");
        assert_eq!((counts.served, counts.served_for_nobody, counts.cancelled, counts.given_up), (3, 2, 2, 0));
        assert_eq!((counts.useful, counts.wasted, counts.wasted_share()), (MS(10), MS(20), Some(2.0 / 3.0)));
    }

    #[test]
    fn a_service_that_notices_gives_the_work_up() {
        let config = config(1, ServiceTime::Constant(MS(10)), 5, true);
        let steps =
            [(0, Arrive(1)), (0, Arrive(2)), (0, Arrive(3)), (4, Cancel(1)), (5, Cancel(2)), (40, Advance), (40, Cancel(3))];
        let (answers, counts) = play(&config, &steps);
        assert_eq!(answers, [(3, 15, 200)], "4 ms for the first, 1 ms for the second, 10 for the third");
        assert_eq!((counts.served, counts.served_for_nobody, counts.cancelled, counts.given_up), (1, 0, 2, 2));
        assert_eq!((counts.useful, counts.wasted), (MS(10), MS(5)));
    }

    #[test]
    fn who_leaves_the_queue_makes_room_only_where_that_is_noticed() {
        let steps = [(0, Arrive(1)), (0, Arrive(2)), (1, Cancel(2)), (2, Arrive(3)), (30, Advance)];
        let time = ServiceTime::Constant(MS(10));
        assert_eq!(play(&config(1, time.clone(), 1, true), &steps).0, [(1, 10, 200), (3, 20, 200)]);
        assert_eq!(play(&config(1, time, 1, false), &steps).0, [(3, 2, 503), (1, 10, 200)]);
    }

    #[test]
    fn without_a_service_time_the_answer_comes_with_the_arrival() {
        let config = config(1, ServiceTime::Constant(Span::ZERO), 0, false);
        assert_eq!(play(&config, &[(3, Arrive(1)), (3, Arrive(2))]).0, [(1, 3, 200), (2, 3, 200)]);
    }

    #[test]
    fn the_limiter_refuses_first_and_with_its_own_words() {
        let limiter =
            SlidingLog { limit: 1, window: MS(100), count_rejected: false, reject: 429, retry_after: Some(MS(3000)), hint: None };
        let limited = ServiceConfig {
            limiter: Some(LimitersConfig(vec![LimiterConfig::SlidingLog(limiter)])),
            ..config(1, ServiceTime::Constant(MS(10)), 0, false)
        };
        let mut service = Service::new(&limited);
        let mut out = Vec::new();
        (0..2).for_each(|id| service.arrive(at(0), request(id), &mut out));
        assert_eq!(out, [Answer { id: 1, at: at(0), status: 429, hint: Said::new(Some(MS(3000)), None) }]);
        assert_eq!((service.counts().limited, service.counts().queue_full), (1, 0));
    }

    #[test]
    fn unlimited_servers_have_a_bound_and_it_is_counted() {
        let unlimited = ServiceConfig {
            servers: Some(config::Servers::Unlimited),
            ..config(1, ServiceTime::Constant(MS(10)), 1_000_000, false)
        };
        let mut service = Service::new(&unlimited);
        let mut out = Vec::new();
        let n = super::super::servers::MAX_IN_SERVICE as u64;
        (0..n + 5).for_each(|id| service.arrive(at(0), request(id), &mut out));
        assert!(out.len() == 5 && out.iter().all(|a| a.status == 503));
        assert_eq!((service.counts().bound_reached, service.counts().in_service, service.counts().queued), (5, n, 0));
        service.advance(at(10), &mut out);
        assert_eq!((service.counts().served, service.due()), (n, None));
    }

    #[test]
    fn time_that_runs_backwards_stands_still() {
        let config = config(1, ServiceTime::Constant(MS(10)), 5, false);
        let (answers, _) = play(&config, &[(20, Arrive(1)), (5, Arrive(2)), (5, Cancel(9)), (50, Advance)]);
        assert_eq!(answers, [(1, 30, 200), (2, 40, 200)]);
    }

    /// The mean wait in the queue, in service times, of Poisson arrivals at a load of 80% on one server.
    fn mean_wait(time: ServiceTime) -> f64 {
        let mean = time.mean();
        let mut service = Service::new(&config(1, time, 10_000, false));
        let (mut now, mut arrived, mut out, mut total) = (Timestamp::ZERO, Vec::new(), Vec::new(), 0.0);
        let n = 400_000u64;
        for id in 0..n {
            let gap = Key { seed: 2, operation: id, ..Key::default() }.stream(Purpose::Arrival).exponential() / 0.8;
            now += mean.scale(gap);
            arrived.push(now);
            service.arrive(now, request(id), &mut out);
            for answer in out.drain(..) {
                total += answer.at.since(arrived[answer.id as usize]).as_secs_f64();
            }
        }
        let counts = service.counts();
        assert_eq!(counts.queue_full, 0);
        (total - counts.useful.as_secs_f64()) / counts.served as f64 / mean.as_secs_f64()
    }

    #[test]
    fn waits_are_those_of_the_formulas() {
        // Pollaczek and Khinchine at a load of 0.8: 0.8 / 0.2 service times for exponential ones, half of it for constant ones.
        let exponential = mean_wait(ServiceTime::Exponential(ExponentialTime { mean: MS(10) }));
        assert!((exponential / 4.0 - 1.0).abs() < 0.05, "M/M/1: {exponential}");
        let constant = mean_wait(ServiceTime::Constant(MS(10)));
        assert!((constant / 2.0 - 1.0).abs() < 0.05, "M/D/1: {constant}");
    }
}
