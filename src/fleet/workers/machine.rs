//! Workers that pull from one queue: the machine that turns arrivals and a policy into attempts.
//!
//! An operation comes in by its destination's stream or from a producer, and waits in the ready part of the queue until a worker is
//! free, its lane has room, and its destination is open. A worker makes the attempt. Whether it then keeps
//! the operation through its waits, or puts it back until the retry is due and takes another, the plan says; so it
//! does with an operation whose pass is over. What waits for a worker waits because the plan makes it wait: it is
//! backlog, and has no generator lag.
//!
//! Owns which operations exist and where each is, and the timeouts. Each operation that is offered leaves by `finish`, `turn_away`
//! or [`Workers::stop`], and so ends exactly once. Leaves to others what follows a failure (`operation`),
//! sockets and timers (an engine).
//!
//! Memory: an operation takes 100 bytes while it lives, and where it waits for a moment that of its wake-up, which the engine keeps.

use super::config::{OnGiveUp, WorkersConfig};
use super::crew::Crew;
use super::destination::{Destination, NamedLanes, destinations};
use super::job::{Job, NO_LANE, NOBODY, Place};
use super::parking::Parking;
use super::ready::{Ready, SHARED};
use super::rules::Rules;
use crate::event::{AttemptOutcome, Event, OperationOutcome};
use crate::fleet::action::{FleetAction, PauseScope};
use crate::fleet::ceiling::Ceiling;
use crate::fleet::interface::{Command, Gauges, Output, Reason, Setup, Token};
use crate::fleet::slab::{Held, Slab};
use crate::operation::{End, LEAST_AFTER_REFUSAL, Next, Operation};
use crate::policy::{Guards, Hint};
use crate::time::{Span, Timestamp};

/// How many operations of one stream one wake-up offers at most; a generator that is behind by more
/// catches up in steps, and its engine gets its turn between them.
const ARRIVALS_PER_WAKE: usize = 256;

/// What a producer's attempt ends as that the queue refuses.
pub const REFUSED: AttemptOutcome = AttemptOutcome::Status(503);

/// A fleet of workers.
#[derive(Debug)]
pub struct Workers {
    pub(super) rules: Rules,
    pub(super) held: Slab<Job>,
    pub(super) ready: Ready,
    pub(super) destinations: Vec<Destination>,
    pub(super) crew: Crew,
    pub(super) actions: Vec<(Timestamp, FleetAction)>,
    pub(super) ceiling: Option<Ceiling>,
    pub(super) guards: Guards,
    pub(super) parked: Parking,
    pub(super) in_flight: u64,
    /// Operations that a worker has.
    pub(super) at_work: u64,
    pub(super) deep_retries: u64,
    pub(super) scheduled: u64,
    /// When a bucket's next token was last asked for.
    pub(super) token_at: Timestamp,
    is_stopped: bool,
}

impl Workers {
    /// Workers that have not begun. Without clients in the setup the fleet lives in another shard, and this is empty.
    pub fn new(setup: Setup, workers: &WorkersConfig) -> Self {
        let is_here = !setup.clients.is_empty();
        let mut ready = Ready::new(workers.queue.fresh_first);
        let mut destinations = destinations(&workers.queue, &mut ready);
        let lanes = NamedLanes::new(&workers.queue, destinations.len(), &mut ready);
        if !is_here {
            destinations.clear();
        }
        let rules = Rules::new(&setup, workers, lanes);
        let crew = Crew::new(workers.workers, setup.clients.len() as u32);
        Self {
            guards: rules.guards(crew.len(), &setup.shared.guards),
            parked: Parking::default(),
            rules,
            held: Slab::new(),
            ready,
            destinations,
            crew,
            ceiling: setup.shared.ceiling.map(Ceiling::new),
            actions: if is_here { setup.actions } else { Vec::new() },
            in_flight: 0,
            at_work: 0,
            deep_retries: 0,
            scheduled: 0,
            token_at: Timestamp::NEVER,
            is_stopped: false,
        }
    }

    /// Begins: asks for the wake-ups of actions and of each destination's first operation, and offers what stands in the
    /// queue already. Called once.
    pub fn start(&mut self, now: Timestamp, out: &mut Output) {
        for (number, (at, _)) in self.actions.iter().enumerate() {
            wake_at(self.rules.on_grid(*at), Reason::Action(number as u16), out);
        }
        for number in 0..self.destinations.len() as u16 {
            for _ in 0..self.destination(number).backlog {
                self.offer(number, now, now, out);
            }
            self.destinations[usize::from(number)].advance(&self.rules, number);
            self.arm(number, now, out);
        }
    }

    /// A wake-up that was asked for, not before its moment. Whether it was still wanted.
    pub fn wake(&mut self, now: Timestamp, token: Token, out: &mut Output) -> bool {
        if self.is_stopped {
            return false;
        }
        match token.0 {
            Reason::Arrival(destination) => self.arrivals(destination as u16, now, out),
            Reason::Operation { slot, generation } if self.held.is_current(slot, generation) => self.due(slot, now, out),
            Reason::Operation { .. } => return false,
            Reason::Ceiling => self.ceiling_is_due(now, out),
            Reason::Token => {
                self.token_at = Timestamp::NEVER;
                self.dispatch(now, out);
            }
            Reason::Parked => self.look_at_parked(now, out),
            Reason::Throttle(worker) => self.throttle_is_due(worker, now, out),
            Reason::Flight { .. } | Reason::Restraint(_) => return false,
            Reason::Back(worker) => {
                if !self.crew.start(worker) {
                    return false;
                }
                self.dispatch(now, out);
            }
            Reason::Action(number) => self.act(number, now, out),
        }
        true
    }

    /// A producer puts an operation into the queue; how its attempt has ended. One that is refused counts as an answer of 503.
    pub fn enqueue(&mut self, now: Timestamp, destination: u16, out: &mut Output) -> AttemptOutcome {
        if self.is_stopped || usize::from(destination) >= self.destinations.len() || self.refuses(destination) {
            return REFUSED;
        }
        self.offer(destination, now, now, out);
        AttemptOutcome::Success
    }

    /// The attempt on a worker's connection has ended. `hint` is the wait that the server asked for. Ignored where nothing
    /// is on that wire.
    pub fn ended(&mut self, now: Timestamp, connection: u32, outcome: AttemptOutcome, hint: Hint, out: &mut Output) {
        let Some(slot) = self.crew.on(connection).filter(|_| !self.is_stopped) else { return };
        if self.held.get(slot).place == Place::Wire {
            self.attempt_over(slot, now, outcome, hint, out);
            self.dispatch(now, out);
        }
    }

    /// The end of the run: attempts on the wire are cancelled, everything still held is unresolved. Later calls do nothing.
    pub fn stop(&mut self, now: Timestamp, out: &mut Output) {
        for (_, job) in self.held.in_order() {
            if job.place == Place::Wire {
                out.commands.push(Command::Cancel { connection: job.worker });
            }
            out.events.push(Event::Finished {
                operation: self.rules.id(job.destination, job.number),
                offered: job.operation.intended(),
                at: now,
                outcome: OperationOutcome::Unresolved,
                attempts: job.operation.attempts(),
                last: job.operation.last(),
            });
        }
        self.held = Slab::new();
        self.crew.stop_all();
        self.parked = Parking::default();
        (self.in_flight, self.deep_retries, self.scheduled, self.is_stopped) = (0, 0, 0, true);
    }

    /// What is held now.
    pub fn gauges(&self, now: Timestamp) -> Gauges {
        let oldest = self.held.in_order().next();
        let is_late = |job: &Job| self.rules.deadline(job).is_some_and(|deadline| deadline < now);
        Gauges {
            in_flight: self.in_flight,
            backlog: self.held.len(),
            oldest_age: oldest.map_or(Span::ZERO, |(_, job)| now.since(job.operation.intended())),
            deep_retries: self.deep_retries,
            late: self.held.in_order().take_while(|(_, job)| is_late(job)).count() as u64,
            scheduled: self.scheduled,
            // Only the engine knows.
            arrived: 0,
            connected: 0,
        }
    }

    /// How often the ceiling on attempts held a send back.
    pub fn ceiling_holds(&self) -> u64 {
        self.ceiling.as_ref().map_or(0, Ceiling::holds)
    }

    /// Reads the first of what a wake-up is going to read, and gives something of it.
    pub fn foresee_token(&self, token: Token) -> u64 {
        match token.0 {
            Reason::Operation { slot, .. } => self.held.foresee_generation(slot),
            _ => 0,
        }
    }

    /// Offers what is due of a destination's stream, and asks for the wake-up of the next one.
    fn arrivals(&mut self, destination: u16, now: Timestamp, out: &mut Output) {
        let state = self.destination(destination);
        if state.armed <= now {
            state.armed = Timestamp::NEVER;
        }
        for _ in 0..ARRIVALS_PER_WAKE {
            let intended = self.destination(destination).next;
            if intended > now {
                break;
            }
            self.destinations[usize::from(destination)].advance(&self.rules, destination);
            self.offer(destination, intended, now, out);
        }
        self.arm(destination, now, out);
    }

    /// Asks for the wake-up of a destination's next operation, unless it is asked for.
    pub(super) fn arm(&mut self, destination: u16, now: Timestamp, out: &mut Output) {
        let state = &mut self.destinations[usize::from(destination)];
        let at = self.rules.on_grid(state.next.max(now));
        if at < state.armed {
            state.armed = at;
            wake_at(at, Reason::Arrival(destination.into()), out);
        }
    }

    fn offer(&mut self, destination: u16, intended: Timestamp, now: Timestamp, out: &mut Output) {
        let number = self.destination(destination).next_number();
        let operation = self.rules.id(destination, number);
        out.events.push(Event::Offered { operation, at: intended });
        if self.refuses(destination) {
            let outcome = OperationOutcome::Refused;
            out.events.push(Event::Finished { operation, offered: intended, at: now, outcome, attempts: 0, last: None });
            return;
        }
        let job = Job {
            operation: Operation::new(intended),
            number,
            since: intended,
            turn: 0,
            worker: NOBODY,
            account: NOBODY,
            destination,
            lane: SHARED,
            sent_to: NO_LANE,
            place: Place::Ready,
            held: Held::No,
        };
        let slot = self.held.take_in(job);
        self.make_ready(slot, Some(intended), now, out);
    }

    /// Whether a new operation is refused at ingress.
    fn refuses(&self, destination: u16) -> bool {
        let is_full = self.held.len() - self.at_work >= self.rules.bound;
        is_full || self.destinations[usize::from(destination)].paused == Some(PauseScope::Ingress)
    }

    /// Something that an operation waited for has come: its retry, its timeout, or the end of its patience.
    fn due(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let job = *self.held.get(slot);
        match job.place {
            Place::Backoff if job.worker == NOBODY => self.make_ready(slot, Some(job.since), now, out),
            Place::Backoff => self.go_on(slot, Some(job.since), now, out),
            Place::Owing => self.owed(slot, now, out),
            Place::Wire => {
                out.commands.push(Command::Cancel { connection: job.worker });
                self.attempt_over(slot, now, AttemptOutcome::Timeout, Hint::NONE, out);
            }
            Place::Ready | Place::Parked | Place::Line => self.give_up(slot, now, out),
        }
        self.dispatch(now, out);
    }

    /// An operation may be dispatched: at once, or when a worker, its lane and its destination let it. `wanted` is the moment
    /// that the plan wants, against which lag is measured; none where it is this very one by nature.
    pub(super) fn make_ready(&mut self, slot: u32, wanted: Option<Timestamp>, now: Timestamp, out: &mut Output) {
        let generation = self.enter_queue(slot, wanted, now);
        self.dispatch(now, out);
        if self.held.is_current(slot, generation) {
            self.held.get_mut(slot).held = Held::Busy;
            // Its deadline may be over already; then this comes at once.
            if let Some(at) = self.rules.expires(self.held.get(slot)) {
                wake_at(at.max(now), Reason::Operation { slot, generation }, out);
            }
        }
    }

    /// An operation that nobody has begins a new pass, at the tail of the queue. A try that was refused took no time: after it
    /// the new pass waits for the least, or it would be refused without end.
    pub(super) fn requeue(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        self.leave_pass(slot);
        let job = self.held.get_mut(slot);
        job.operation.next_pass();
        job.sent_to = NO_LANE;
        if job.operation.last() == Some(AttemptOutcome::Refused) {
            let until = self.rules.on_grid(now + LEAST_AFTER_REFUSAL);
            return self.wait(slot, Place::Backoff, until, until, out);
        }
        self.queue_up(slot, None, now, out);
    }

    /// Puts an operation that nobody has at the tail of the queue. Dispatching is left to the caller: it may be at it.
    fn queue_up(&mut self, slot: u32, wanted: Option<Timestamp>, now: Timestamp, out: &mut Output) {
        let generation = self.enter_queue(slot, wanted, now);
        if let Some(at) = self.rules.expires(self.held.get(slot)) {
            wake_at(at.max(now), Reason::Operation { slot, generation }, out);
        }
    }

    /// A retry that was paid for and not sent is given back.
    fn leave_pass(&mut self, slot: u32) {
        let mut job = *self.held.get(slot);
        job.operation.leave(&self.rules.terms(&job));
        self.held.get_mut(slot).operation = job.operation;
    }

    /// Puts an operation that nobody has at the tail of the queue.
    fn enter_queue(&mut self, slot: u32, wanted: Option<Timestamp>, now: Timestamp) -> u32 {
        self.scheduled += 1;
        let generation = self.held.put(slot, Place::Ready, wanted.unwrap_or(now));
        let (destination, sent_to) = (self.held.get(slot).destination, self.held.get(slot).sent_to);
        let lane = self.lane_of(destination, sent_to);
        let job = self.held.get_mut(slot);
        job.held = if wanted.is_some() { Held::No } else { Held::AtOnce };
        job.lane = lane;
        self.ready.push(slot, &mut self.held);
        generation
    }

    /// The attempt on a wire has ended: the retry loop says when and how, and what follows. All that follows counts from
    /// that moment and not from when the engine came to it, so that an engine that is behind shows as lag.
    pub(super) fn attempt_over(&mut self, slot: u32, now: Timestamp, said: AttemptOutcome, hint: Hint, out: &mut Output) {
        let mut job = *self.held.get(slot);
        let operation = self.rules.id(job.destination, job.number);
        let terms = self.rules.terms(&job);
        let (at, outcome) = job.operation.ending(job.since, now, said, &terms);
        let is_timeout = outcome == AttemptOutcome::Timeout;
        let hint = if is_timeout { Hint::NONE } else { hint };
        let next = job.operation.ended(at, outcome, hint, &terms);
        out.events.push(Event::Ended { operation, attempt: job.operation.attempts(), sent: job.since, at, outcome });
        let sent_to = self.rules.lane_after(outcome, job.destination);
        let held = self.held.get_mut(slot);
        (held.operation, held.sent_to) = (job.operation, sent_to);
        self.in_flight -= 1;
        if !self.guards.is_empty() {
            self.guards.ended(job.worker, at, outcome, at.since(job.since));
        }
        self.follow(slot, next, at, is_timeout.then_some(at), now, out);
    }

    /// Does what the retry loop says after an attempt that ended, or a try that was refused, at `at`. A retry at once is wanted at
    /// `at_once`, where that is a moment that the engine can be behind. Dispatching is left to the caller.
    pub(super) fn follow(
        &mut self,
        slot: u32,
        next: Next,
        at: Timestamp,
        at_once: Option<Timestamp>,
        now: Timestamp,
        out: &mut Output,
    ) {
        match next {
            Next::Send if self.rules.hold => self.go_on(slot, at_once, now, out),
            Next::Send => {
                self.part(slot);
                self.queue_up(slot, at_once, now, out);
            }
            Next::Wait { wanted, until } => {
                if !self.rules.hold {
                    self.part(slot);
                }
                self.wait(slot, Place::Backoff, wanted, until.max(now), out);
            }
            Next::Park { wanted, until } => {
                self.budget_refused(slot, at, out);
                self.part(slot);
                self.wait(slot, Place::Owing, wanted, until.max(now), out);
            }
            Next::Finished(end) => {
                if end == End::Budget {
                    self.budget_refused(slot, at, out);
                }
                self.part(slot);
                self.conclude(slot, end, at, now, out);
            }
        }
    }

    fn wait(&mut self, slot: u32, place: Place, wanted: Timestamp, until: Timestamp, out: &mut Output) {
        let generation = self.held.put(slot, place, wanted);
        wake_at(until, Reason::Operation { slot, generation }, out);
    }

    fn budget_refused(&mut self, slot: u32, at: Timestamp, out: &mut Output) {
        let job = self.held.get(slot);
        out.events.push(Event::BudgetRefused { operation: self.rules.id(job.destination, job.number), at });
    }

    /// An operation and its worker part: the worker is free, the operation is nobody's.
    pub(super) fn part(&mut self, slot: u32) {
        let job = self.held.get_mut(slot);
        let worker = std::mem::replace(&mut job.worker, NOBODY);
        if worker != NOBODY {
            self.ready.leave(job.lane);
            self.crew.release(worker);
            self.at_work -= 1;
        }
    }

    /// The pass of an operation that nobody has is over.
    fn conclude(&mut self, slot: u32, end: End, at: Timestamp, now: Timestamp, out: &mut Output) {
        let may_requeue = !matches!(end, End::Succeeded | End::NotRetried | End::Stopped | End::Deadline);
        match self.rules.on_give_up {
            _ if end == End::Succeeded => self.finish(slot, at, OperationOutcome::Succeeded, out),
            OnGiveUp::Requeue if may_requeue => self.requeue(slot, now, out),
            OnGiveUp::DeadLetter => self.finish(slot, at, OperationOutcome::DeadLettered, out),
            OnGiveUp::Requeue | OnGiveUp::Drop => self.finish(slot, at, OperationOutcome::Failed, out),
        }
    }

    /// An operation in the queue, or before the ceiling, is at the end of its patience.
    pub(super) fn give_up(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let job = *self.held.get(slot);
        if job.place == Place::Ready {
            self.ready.take(slot, &mut self.held);
        }
        self.part(slot);
        let at = self.rules.expires(&job).unwrap_or(now).min(now);
        let is_deadline = self.rules.deadline(&job).is_some_and(|deadline| deadline <= now);
        self.conclude(slot, if is_deadline { End::Deadline } else { End::Elapsed }, at, now, out);
    }

    /// The end of an operation that nobody has, and that is not in the ready part of the queue any more.
    pub(super) fn finish(&mut self, slot: u32, at: Timestamp, outcome: OperationOutcome, out: &mut Output) {
        self.leave_pass(slot);
        let job = *self.held.get(slot);
        let (operation, attempts) = (self.rules.id(job.destination, job.number), job.operation.attempts());
        let (offered, last) = (job.operation.intended(), job.operation.last());
        out.events.push(Event::Finished { operation, offered, at, outcome, attempts, last });
        self.deep_retries -= u64::from(attempts > 3);
        self.held.let_go(slot);
    }

    /// The moment of an attempt has come.
    pub(super) const fn scheduled(&mut self) {
        self.scheduled += 1;
    }

    pub(super) fn destination(&mut self, number: u16) -> &mut Destination {
        &mut self.destinations[usize::from(number)]
    }
}

/// Asks for a wake-up, unless it would never come.
pub(super) fn wake_at(at: Timestamp, reason: Reason, out: &mut Output) {
    if at != Timestamp::NEVER {
        out.commands.push(Command::Wake { at, token: Token(reason) });
    }
}
