//! Clients with an outbox and one connection each: the machine that turns a load shape and a policy into attempts.
//!
//! A client has one attempt on its wire at a time. An operation in backoff does not hold the connection, so others of
//! the client go meanwhile; those that are ready go first come first served. What waits for the connection or for the
//! ceiling waits because the plan makes it wait: it is backlog, and has no generator lag.
//!
//! Owns which operations exist, where each is, and the timeouts: an attempt ends when the engine says so or when its
//! wake-up comes, whichever is first. Each operation that is offered leaves by `finish`, `turn_away` or
//! [`Devices::stop`], and so ends exactly once. Leaves to others what follows a failure (`operation`), sockets and timers (an engine).
//!
//! Memory: an operation takes 84 bytes while it lives and a client 40; nothing is allocated once both have
//! reached their peak.

use super::ceiling::{Admission, Ceiling};
use super::client::Client;
use super::interface::{Command, Gauges, Output, Reason, Setup, Token};
use super::rules::Rules;
use super::slab::{Held, NONE, Place, Slab};
use crate::event::{AttemptOutcome, Event, LateBy, OperationOutcome};
use crate::operation::{End, Next, Operation};
use crate::time::{Span, Timestamp};

/// How many operations of one client one wake-up offers at most; a generator that is behind by more
/// catches up in steps, and its engine gets its turn between them.
const ARRIVALS_PER_WAKE: usize = 256;

/// The clients of one fleet in one shard.
#[derive(Debug)]
pub struct Devices {
    rules: Rules,
    clients: Vec<Client>,
    held: Slab,
    ceiling: Option<Ceiling>,
    in_flight: u64,
    deep_retries: u64,
    scheduled: u64,
    is_stopped: bool,
}

impl Devices {
    /// Clients that have not begun.
    pub fn new(setup: Setup) -> Self {
        Self {
            clients: vec![Client::NEW; setup.clients.len()],
            ceiling: setup.shared.ceiling.clone().map(Ceiling::new),
            rules: Rules::new(setup),
            held: Slab::new(),
            in_flight: 0,
            deep_retries: 0,
            scheduled: 0,
            is_stopped: false,
        }
    }

    /// Begins: asks for the wake-up of each client's first operation. Called once.
    pub fn start(&mut self, now: Timestamp, out: &mut Output) {
        for client in 0..self.clients.len() as u32 {
            self.client(client).next = self.rules.next_start(client, 0, Timestamp::ZERO, None);
            self.arm(client, now, out);
        }
    }

    /// A wake-up that was asked for, not before its moment. Whether it was still wanted.
    pub fn wake(&mut self, now: Timestamp, token: Token, out: &mut Output) -> bool {
        if self.is_stopped {
            return false;
        }
        match token.0 {
            Reason::Arrival(client) => {
                self.client(client).armed = false;
                self.arrivals(client, now, out);
            }
            Reason::Operation { slot, generation } if self.held.is_current(slot, generation) => self.due(slot, now, out),
            Reason::Operation { .. } => return false,
            Reason::Ceiling => self.ceiling_is_due(now, out),
        }
        true
    }

    /// Reads the first of what a wake-up is going to read, and gives something of it. With [`Devices::foresee`] and [`Devices::foresee_client`]
    /// this is for an engine that knows many wake-ups ahead: each asked of all of them before the next, the waits for memory
    /// overlap. Nothing changes.
    pub fn foresee_token(&self, token: Token) -> u64 {
        match token.0 {
            Reason::Operation { slot, .. } => self.held.foresee_generation(slot),
            Reason::Arrival(_) | Reason::Ceiling => 0,
        }
    }

    /// Reads the operation that a wake-up is for, and says which client has it; none where the wake-up has become pointless.
    pub fn foresee(&self, token: Token) -> Option<u32> {
        match token.0 {
            Reason::Arrival(client) => Some(client),
            Reason::Operation { slot, generation } if self.held.is_current(slot, generation) => Some(self.held.foresee(slot)),
            Reason::Operation { .. } | Reason::Ceiling => None,
        }
    }

    /// Reads a client, by its place in the shard, and gives something of it.
    pub fn foresee_client(&self, client: u32) -> u64 {
        self.clients.get(client as usize).map_or(0, |client| client.number)
    }

    /// The attempt on a connection has ended. `hint` is the wait that the server asked for. Ignored where nothing
    /// is on that wire.
    pub fn ended(&mut self, now: Timestamp, connection: u32, outcome: AttemptOutcome, hint: Option<Span>, out: &mut Output) {
        let client = self.rules.place_of(connection);
        let Some(Client { on_wire, .. }) = self.clients.get(client as usize).copied() else { return };
        if on_wire != NONE && !self.is_stopped {
            self.attempt_over(on_wire, now, outcome, hint, out);
            self.settle(client, now, out);
        }
    }

    /// The end of the run: attempts on the wire are cancelled, everything still held is unresolved. Later calls do nothing.
    pub fn stop(&mut self, now: Timestamp, out: &mut Output) {
        for (_, entry) in self.held.in_order() {
            if entry.place == Place::Wire {
                out.commands.push(Command::Cancel { connection: self.rules.number_of(entry.client) });
            }
            out.events.push(Event::Finished {
                operation: self.rules.id(entry.client, entry.number),
                offered: entry.operation.intended(),
                at: now,
                outcome: OperationOutcome::Unresolved,
                attempts: entry.operation.attempts(),
                last: entry.operation.last(),
            });
        }
        self.held = Slab::new();
        self.clients.fill(Client::NEW);
        (self.in_flight, self.deep_retries, self.is_stopped) = (0, 0, true);
    }

    /// What is held now. Its cost does not depend on how much that is, but for operations past their deadline, which are
    /// few because they are ended there.
    pub fn gauges(&self, now: Timestamp) -> Gauges {
        let oldest = self.held.in_order().next();
        let is_late = |slot: u32| {
            let entry = self.held.get(slot);
            let deadline = entry.operation.deadline(&self.rules.terms(entry.client, entry.number));
            deadline.is_some_and(|deadline| deadline < now)
        };
        Gauges {
            in_flight: self.in_flight,
            backlog: self.held.len(),
            oldest_age: oldest.map_or(Span::ZERO, |(_, entry)| now.since(entry.operation.intended())),
            deep_retries: self.deep_retries,
            late: self.held.in_order().take_while(|(slot, _)| is_late(*slot)).count() as u64,
            scheduled: self.scheduled,
            // Only the engine knows.
            arrived: 0,
        }
    }

    /// How often the ceiling on attempts held a send back.
    pub fn ceiling_holds(&self) -> u64 {
        self.ceiling.as_ref().map_or(0, Ceiling::holds)
    }

    /// Offers what is due of a client's operations, and asks for the wake-up of the next one.
    fn arrivals(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        for _ in 0..ARRIVALS_PER_WAKE {
            let Client { number, next: intended, .. } = *self.client(client);
            if intended > now {
                break;
            }
            let next = self.rules.next_start(client, number + 1, intended, None);
            let state = self.client(client);
            (state.number, state.next) = (number + 1, next);
            self.offer(client, number, intended, now, out);
        }
        self.arm(client, now, out);
    }

    fn arm(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        let state = self.client(client);
        if !state.armed && state.next != Timestamp::NEVER {
            state.armed = true;
            let at = state.next.max(now);
            wake_at(self.rules.on_grid(at), Reason::Arrival(client), out);
        }
    }

    fn offer(&mut self, client: u32, number: u64, intended: Timestamp, now: Timestamp, out: &mut Output) {
        let operation = self.rules.id(client, number);
        out.events.push(Event::Offered { operation, at: intended });
        let state = *self.client(client);
        if self.rules.drops(intended, state.is_busy(), now) {
            let by = if state.is_busy() { LateBy::Plan } else { LateBy::Generator };
            out.events.push(Event::LateStart { operation, at: now, late: now.since(intended), by });
            self.turn_away(client, number, intended, now, OperationOutcome::Dropped, out);
        } else if state.held >= self.rules.outbox {
            self.turn_away(client, number, intended, now, OperationOutcome::Refused, out);
        } else {
            self.client(client).held += 1;
            let slot = self.held.insert(client, number, Operation::new(intended));
            self.make_ready(slot, Some(intended), now, out);
        }
    }

    /// The end of an operation that is not taken in.
    fn turn_away(
        &mut self,
        client: u32,
        number: u64,
        offered: Timestamp,
        now: Timestamp,
        outcome: OperationOutcome,
        out: &mut Output,
    ) {
        let operation = self.rules.id(client, number);
        out.events.push(Event::Finished { operation, offered, at: now, outcome, attempts: 0, last: None });
        self.schedule_after_end(client, now);
    }

    /// Something that an operation waited for has come: its retry, its timeout, or the end of its patience.
    fn due(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let entry = *self.held.get(slot);
        match entry.place {
            Place::Backoff => self.make_ready(slot, Some(entry.since), now, out),
            Place::Wire => {
                out.commands.push(Command::Cancel { connection: self.rules.number_of(entry.client) });
                self.attempt_over(slot, now, AttemptOutcome::Timeout, None, out);
            }
            Place::Ready => {
                self.give_up_if_due(slot, now, out);
            }
            Place::Free => {}
        }
        self.settle(entry.client, now, out);
    }

    /// An operation may be sent: at once, or when the connection and the ceiling let it. `wanted` is the moment that
    /// the plan wants, against which lag is measured; none where it is this very one by nature.
    fn make_ready(&mut self, slot: u32, wanted: Option<Timestamp>, now: Timestamp, out: &mut Output) {
        self.scheduled += 1;
        let generation = self.held.put(slot, Place::Ready, wanted.unwrap_or(now));
        let entry = self.held.get_mut(slot);
        entry.held = if wanted.is_some() { Held::No } else { Held::AtOnce };
        let client = entry.client;
        let is_busy = self.client(client).is_busy();
        self.held.push_ready(&mut self.clients[client as usize].outbox, slot);
        self.pump(client, now, out);
        if self.held.is_current(slot, generation) {
            self.held.get_mut(slot).held = if is_busy { Held::Busy } else { Held::Ceiling };
            // A generator that is late may bring an operation here after its deadline.
            if self.give_up_if_due(slot, now, out) {
                return;
            }
            if let Some((at, _)) = self.rules.gives_up(self.held.get(slot)) {
                wake_at(at, Reason::Operation { slot, generation }, out);
            }
        }
    }

    /// Sends the first operation of a client's outbox, if the connection is free and the ceiling lets it.
    fn pump(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        if !self.can_send(client, now, out) || self.client(client).in_line {
            return;
        }
        match self.ceiling.as_mut().map_or(Admission::Now, |ceiling| ceiling.admit(client, now)) {
            Admission::Now => self.send(client, now, out),
            admission => {
                self.client(client).in_line = true;
                if let Admission::WaitUntil(at) = admission {
                    wake_at(self.rules.on_grid(at), Reason::Ceiling, out);
                }
            }
        }
    }

    /// Whether a client's connection is free and something is there to be sent. What its deadline has overtaken leaves.
    fn can_send(&mut self, client: u32, now: Timestamp, out: &mut Output) -> bool {
        if self.client(client).is_sending() {
            return false;
        }
        loop {
            match self.client(client).outbox.first {
                NONE => return false,
                first => {
                    if !self.give_up_if_due(first, now, out) {
                        return true;
                    }
                }
            }
        }
    }

    fn give_up_if_due(&mut self, slot: u32, now: Timestamp, out: &mut Output) -> bool {
        let entry = *self.held.get(slot);
        let Some((at, outcome)) = self.rules.gives_up(&entry).filter(|(at, _)| *at <= now) else { return false };
        self.held.take_ready(&mut self.clients[entry.client as usize].outbox, slot);
        if outcome == OperationOutcome::Dropped {
            let (operation, late) = (self.rules.id(entry.client, entry.number), at.since(entry.operation.intended()));
            out.events.push(Event::LateStart { operation, at, late, by: LateBy::Plan });
        }
        self.finish(slot, at, outcome, out);
        true
    }

    /// Puts the first operation of a client's outbox on its wire.
    fn send(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        let state = &mut self.clients[client as usize];
        let slot = state.outbox.first;
        self.held.take_ready(&mut state.outbox, slot);
        state.on_wire = slot;
        let entry = self.held.get_mut(slot);
        let terms = self.rules.terms(client, entry.number);
        let (intended, wanted, held) = (entry.operation.intended(), entry.since, entry.held);
        let attempt = entry.operation.begin(now, &terms);
        let send = self.rules.send(entry, attempt);
        let generation = self.held.put(slot, Place::Wire, now);
        self.in_flight += 1;
        self.deep_retries += u64::from(attempt.number == 4);

        let operation = send.operation;
        if let Some(by) = self.rules.late_start(intended, held, now).filter(|_| attempt.number == 1) {
            out.events.push(Event::LateStart { operation, at: now, late: now.since(intended), by });
        }
        let lag = (held == Held::No).then(|| now.since(wanted));
        out.events.push(Event::Sent { operation, attempt: attempt.number, retry: attempt.retry, at: now, lag });
        out.commands.push(Command::Send(send));
        wake_at(attempt.timeout_at, Reason::Operation { slot, generation }, out);
    }

    /// The attempt on a wire has ended: the retry loop says when and how, and what follows. All that follows counts from
    /// that moment and not from when the engine came to it, so that an engine that is behind shows as lag.
    fn attempt_over(&mut self, slot: u32, now: Timestamp, said: AttemptOutcome, hint: Option<Span>, out: &mut Output) {
        let entry = self.held.get_mut(slot);
        let (client, number, sent) = (entry.client, entry.number, entry.since);
        let operation = self.rules.id(client, number);
        let terms = self.rules.terms(client, number);
        let (at, outcome) = entry.operation.ending(sent, now, said, &terms);
        let is_timeout = outcome == AttemptOutcome::Timeout;
        let next = entry.operation.ended(at, outcome, hint.filter(|_| !is_timeout), &terms);
        out.events.push(Event::Ended { operation, attempt: entry.operation.attempts(), sent, at, outcome });
        self.client(client).on_wire = NONE;
        self.in_flight -= 1;
        match next {
            Next::Send => self.make_ready(slot, is_timeout.then_some(at), now, out),
            Next::Wait { wanted, until } => {
                let generation = self.held.put(slot, Place::Backoff, wanted);
                wake_at(until.max(now), Reason::Operation { slot, generation }, out);
            }
            Next::Finished(end) => {
                if end == End::Budget {
                    out.events.push(Event::BudgetRefused { operation, at });
                }
                self.finish(slot, at, end.outcome(), out);
            }
        }
    }

    /// The end of an operation that is held, and is in no outbox and on no wire any more.
    fn finish(&mut self, slot: u32, at: Timestamp, outcome: OperationOutcome, out: &mut Output) {
        let entry = *self.held.get(slot);
        let (operation, attempts) = (self.rules.id(entry.client, entry.number), entry.operation.attempts());
        let (offered, last) = (entry.operation.intended(), entry.operation.last());
        out.events.push(Event::Finished { operation, offered, at, outcome, attempts, last });
        self.deep_retries -= u64::from(attempts > 3);
        self.held.remove(slot);
        self.client(entry.client).held -= 1;
        self.schedule_after_end(entry.client, at);
    }

    /// Under closed load, the end of an operation is what the next one waits for.
    fn schedule_after_end(&mut self, client: u32, ended: Timestamp) {
        if self.rules.is_closed() {
            let number = self.client(client).number;
            self.client(client).next = self.rules.next_start(client, number, Timestamp::ZERO, Some(ended));
        }
    }

    /// After anything that happened to a client: its connection may be free for the next operation in its outbox, and
    /// under closed load its next operation may be due.
    fn settle(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        self.pump(client, now, out);
        if self.rules.is_closed() {
            self.arrivals(client, now, out);
        }
    }

    fn ceiling_is_due(&mut self, now: Timestamp, out: &mut Output) {
        while let Some(client) = self.ceiling.as_mut().and_then(|ceiling| ceiling.next(now)) {
            self.client(client).in_line = false;
            if self.can_send(client, now, out) {
                self.send(client, now, out);
                let next = self.ceiling.as_mut().and_then(|ceiling| ceiling.used(now));
                if let Some(at) = next.filter(|at| *at > now) {
                    wake_at(self.rules.on_grid(at), Reason::Ceiling, out);
                }
            }
            self.settle(client, now, out);
        }
    }

    fn client(&mut self, client: u32) -> &mut Client {
        &mut self.clients[client as usize]
    }
}

/// Asks for a wake-up, unless it would never come.
fn wake_at(at: Timestamp, reason: Reason, out: &mut Output) {
    if at != Timestamp::NEVER {
        out.commands.push(Command::Wake { at, token: Token(reason) });
    }
}
