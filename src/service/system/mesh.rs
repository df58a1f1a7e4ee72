//! Services that call each other: one order of time for all that happens in them and between them.
//!
//! Whatever passes from one service to another takes time, so nothing that happens at a moment makes anything else happen at the
//! same moment elsewhere, and the earliest thing that is due, in any service or on the way, can always go first.

use super::call::{Call, CallCounts, Caller, outcome};
use super::config::{FailsConfig, Member, SystemConfig};
use crate::event::AttemptOutcome;
use crate::operation::{End, Next};
use crate::policy::Hint;
use crate::policy::hint::Told;
use crate::rng::{Key, Purpose};
use crate::service::change::FRONT;
use crate::service::job::{NO_SLOT, Slot};
use crate::service::key::name_hash;
use crate::service::machine::Calling;
use crate::service::names::Names;
use crate::service::{Answer, Arrival, Counts, Holding, Service, ServiceChange};
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;

/// The services; the front one is the first.
#[derive(Debug)]
pub(super) struct Mesh {
    nodes: Vec<Node>,
    timers: BTreeMap<Due, Timer>,
    /// The requests that wait for an answer, by the names that the services know them by.
    asked: BTreeMap<u64, Asked>,
    /// Those that come from outside, by the names that they have there: which service has it, by which name.
    outside: BTreeMap<u64, (usize, u64)>,
    /// The calls under way, by whom they are made for.
    calls: BTreeMap<For, Call>,
    next: u64,
    now: Timestamp,
    heard: Heard,
}

#[derive(Debug)]
struct Node {
    name: String,
    hash: u64,
    service: Service,
    /// The jobs of the requests that it has not answered.
    jobs: Names,
    due: Timestamp,
    caller: Option<Caller>,
    fails: Option<FailsConfig>,
}

/// What a service says, before it is dealt with; kept for its memory.
#[derive(Debug, Default)]
struct Heard {
    answers: Vec<Answer>,
    calling: Vec<Calling>,
    gone: Vec<Slot>,
}

/// The job of a service that a call is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct For {
    service: usize,
    job: Slot,
}

/// A request that waits for an answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    by: By,
    /// What it is answered with in place of a success.
    fails: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Outside(u64),
    Call(For),
}

/// When, what first at one moment, and a number that is unique.
type Due = (Timestamp, Rank, u64);

/// What goes first at one moment: an answer that comes with the timeout still counts, and a request comes before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Answer,
    Request,
    Cancel,
    Retry,
    Timeout,
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// A request reaches the service that is called.
    Arrives { to: usize, arrival: Arrival },
    /// That its client has gone reaches it.
    Cancelled { to: usize, id: u64 },
    /// An answer reaches whoever called.
    Heard { by: For, token: u64, status: u16, hint: Option<Told> },
    /// An attempt times out.
    TimesOut { by: For, token: u64 },
    /// A backoff is over.
    Retries { by: For, token: u64 },
}

impl Mesh {
    pub fn new(config: &SystemConfig) -> Self {
        let front = Node::new(FRONT, &config.front);
        let others = config.services.iter().map(|(name, member)| Node::new(name, member));
        Self {
            nodes: std::iter::once(front).chain(others).collect(),
            timers: BTreeMap::new(),
            asked: BTreeMap::new(),
            outside: BTreeMap::new(),
            calls: BTreeMap::new(),
            next: 0,
            now: Timestamp::ZERO,
            heard: Heard::default(),
        }
    }

    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival, out: &mut Vec<Answer>) {
        self.advance(now, out);
        let to = self.place_of(arrival.destination).unwrap_or(0);
        let id = self.name();
        self.outside.insert(arrival.id, (to, id));
        self.ask(to, id, By::Outside(arrival.id), arrival.key);
        self.bring(to, Arrival { id, ..arrival }, out);
    }

    pub fn cancel(&mut self, now: Timestamp, id: u64, out: &mut Vec<Answer>) {
        self.advance(now, out);
        let Some((to, id)) = self.outside.remove(&id) else { return };
        self.asked.remove(&id);
        self.take_back(to, id, out);
    }

    pub fn due(&self) -> Option<Timestamp> {
        self.earliest().map(|(at, _)| at)
    }

    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Answer>) {
        let until = self.now.max(now);
        while let Some((at, place)) = self.earliest().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            match place {
                Some(place) => self.tell(place, out, |service, answers, now| service.advance(now, answers)),
                None => {
                    if let Some((_, timer)) = self.timers.pop_first() {
                        self.fire(timer, out);
                    }
                }
            }
        }
        self.now = until;
    }

    pub fn change(&mut self, now: Timestamp, change: &ServiceChange, out: &mut Vec<Answer>) {
        self.advance(now, out);
        if let Some(place) = self.place_called(change.whose()) {
            self.tell(place, out, |service, answers, now| service.change(now, change, answers));
        }
    }

    pub fn counts(&self) -> Counts {
        let all = || self.nodes.iter().map(|node| node.service.counts());
        let sum = |of: fn(&Counts) -> Span| all().fold(Span::ZERO, |sum, counts| sum + of(&counts));
        Counts {
            useful: sum(|c| c.useful),
            wasted: sum(|c| c.wasted),
            refusing: sum(|c| c.refusing),
            ..self.nodes[0].service.counts()
        }
    }

    pub fn each(&self) -> impl Iterator<Item = (&str, Counts)> {
        self.nodes.iter().map(|node| (node.name.as_str(), node.service.counts()))
    }

    pub fn holding(&self) -> impl Iterator<Item = (&str, Holding)> {
        self.nodes.iter().map(|node| (node.name.as_str(), node.service.holding()))
    }

    pub fn calls(&self) -> impl Iterator<Item = (&str, &str, CallCounts)> {
        self.nodes.iter().filter_map(|node| {
            let caller = node.caller.as_ref()?;
            Some((node.name.as_str(), self.nodes[caller.to].name.as_str(), caller.counts))
        })
    }

    /// Whether nothing waits for anything.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.timers.is_empty() && self.asked.is_empty() && self.outside.is_empty() && self.calls.is_empty()
    }

    fn place_called(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    fn place_of(&self, hash: u64) -> Option<usize> {
        (1..self.nodes.len()).find(|&place| self.nodes[place].hash == hash)
    }

    /// A name that nothing has had yet.
    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// What is due first: in the service of that place, or on its way.
    fn earliest(&self) -> Option<(Timestamp, Option<usize>)> {
        let service = (0..).zip(&self.nodes).map(|(place, node)| (node.due, place)).min().map(|(due, place)| (due, Some(place)));
        let timer = self.timers.first_key_value().map_or(Timestamp::NEVER, |((at, ..), _)| *at);
        service.filter(|(due, _)| *due <= timer).or(Some((timer, None))).filter(|(due, _)| *due != Timestamp::NEVER)
    }

    fn ask(&mut self, to: usize, id: u64, by: By, key: Key) {
        let fails = self.nodes[to].fails.as_ref().filter(|fails| key.stream(Purpose::Failure).unit() < fails.share.get());
        self.asked.insert(id, Asked { by, fails: fails.map(|fails| fails.status) });
    }

    /// Brings a request to a service.
    fn bring(&mut self, to: usize, arrival: Arrival, out: &mut Vec<Answer>) {
        let mut job = None;
        self.nodes[to].jobs.insert(arrival.id, NO_SLOT);
        self.tell(to, out, |service, answers, now| job = service.arrive(now, arrival, answers));
        // It may have been answered by now.
        if let (Some(job), Some(of)) = (job, self.nodes[to].jobs.get_mut(arrival.id)) {
            *of = job;
        }
    }

    /// Tells a service that the client of a request has gone.
    fn take_back(&mut self, to: usize, id: u64, out: &mut Vec<Answer>) {
        let Some(job) = self.nodes[to].jobs.remove(id) else { return };
        self.tell(to, out, |service, answers, now| service.cancel(now, id, job, answers));
    }

    /// Tells a service something, and deals with what it says.
    fn tell(&mut self, place: usize, out: &mut Vec<Answer>, what: impl FnOnce(&mut Service, &mut Vec<Answer>, Timestamp)) {
        let mut heard = std::mem::take(&mut self.heard);
        let service = &mut self.nodes[place].service;
        what(service, &mut heard.answers, self.now);
        service.take_given_up(&mut heard.gone);
        service.take_calls(&mut heard.calling);
        self.nodes[place].due = service.due().unwrap_or(Timestamp::NEVER);
        heard.gone.drain(..).for_each(|job| self.abandon(For { service: place, job }));
        heard.calling.drain(..).for_each(|calling| self.call(place, &calling));
        for answer in heard.answers.drain(..) {
            self.nodes[place].jobs.remove(answer.id);
            self.answered(answer, out);
        }
        self.heard = heard;
    }

    fn answered(&mut self, answer: Answer, out: &mut Vec<Answer>) {
        let Some(Asked { by, fails }) = self.asked.remove(&answer.id) else { return };
        let status = fails.filter(|_| outcome(answer.status) == AttemptOutcome::Success).unwrap_or(answer.status);
        match by {
            By::Outside(id) => {
                self.outside.remove(&id);
                out.push(Answer { id, status, ..answer });
            }
            By::Call(by) => {
                let at = answer.at + self.caller(by).latency;
                let hint = answer.hint.map(|said| said.told(answer.at));
                self.set((at, Rank::Answer, answer.id), Timer::Heard { by, token: answer.id, status, hint });
            }
        }
    }

    fn fire(&mut self, timer: Timer, out: &mut Vec<Answer>) {
        let now = self.now;
        match timer {
            Timer::Arrives { to, arrival } => self.bring(to, arrival, out),
            Timer::Cancelled { to, id } => self.take_back(to, id, out),
            Timer::Heard { by, token, status, hint } => {
                if self.is_current(by, token) {
                    let hint = hint.map_or(Hint::NONE, |told| told.hint(now));
                    self.ended(by, outcome(status), hint, out);
                }
            }
            Timer::TimesOut { by, token } => {
                if self.is_current(by, token) {
                    self.hang_up(by, token);
                    self.caller_mut(by).counts.timed_out += 1;
                    self.ended(by, AttemptOutcome::Timeout, Hint::NONE, out);
                }
            }
            Timer::Retries { by, token } => {
                if self.is_current(by, token) {
                    self.send(by);
                }
            }
        }
    }

    /// Whether that is what a call is about now.
    fn is_current(&self, by: For, token: u64) -> bool {
        self.calls.get(&by).is_some_and(|call| call.token == token)
    }

    fn set(&mut self, due: Due, timer: Timer) {
        self.timers.insert(due, timer);
    }

    fn caller(&self, by: For) -> &Caller {
        self.nodes[by.service].caller.as_ref().expect("only a service with calls has a job that calls")
    }

    fn caller_mut(&mut self, by: For) -> &mut Caller {
        self.nodes[by.service].caller.as_mut().expect("only a service with calls has a job that calls")
    }

    /// The own service of a request is done: its call begins.
    fn call(&mut self, service: usize, calling: &Calling) {
        let by = For { service, job: calling.job };
        let call = self.caller_mut(by).call(calling);
        self.calls.insert(by, call);
        self.send(by);
    }

    /// An attempt of a call goes on the wire.
    fn send(&mut self, by: For) {
        let (now, token) = (self.now, self.name());
        let Some(call) = self.calls.get_mut(&by) else { return };
        let caller = self.nodes[by.service].caller.as_mut().expect("only a service with calls has a job that calls");
        let (arrival, timeout_at) = caller.begin(now, token, call);
        let (to, at) = (caller.to, now + caller.latency);
        self.ask(to, token, By::Call(by), arrival.key);
        self.set((at, Rank::Request, token), Timer::Arrives { to, arrival });
        self.set((timeout_at, Rank::Timeout, token), Timer::TimesOut { by, token });
    }

    /// Whoever called waits no more for the answer to an attempt; the service that has it hears of that.
    fn hang_up(&mut self, by: For, token: u64) {
        self.asked.remove(&token);
        let caller = self.caller(by);
        let (to, at) = (caller.to, self.now + caller.latency);
        self.set((at, Rank::Cancel, token), Timer::Cancelled { to, id: token });
    }

    /// The attempt on the wire has ended so.
    fn ended(&mut self, by: For, outcome: AttemptOutcome, hint: Hint, out: &mut Vec<Answer>) {
        let (now, token) = (self.now, self.name());
        let Some(call) = self.calls.get_mut(&by) else { return };
        let caller = self.nodes[by.service].caller.as_ref().expect("only a service with calls has a job that calls");
        let timeout = call.on_wire.take().map(|at| (at, Rank::Timeout, call.token));
        let next = call.operation.ended(now, outcome, hint, &caller.terms(call.key));
        call.token = token;
        timeout.and_then(|timeout| self.timers.remove(&timeout));
        match next {
            Next::Send => self.send(by),
            Next::Wait { until, .. } => self.set((until, Rank::Retry, token), Timer::Retries { by, token }),
            Next::Finished(End::Succeeded) => self.returns(by, true, out),
            // A plan whose calls would wait for their budget is refused.
            Next::Finished(_) | Next::Park { .. } => self.returns(by, false, out),
        }
    }

    /// A call is over: the request that it was made for is answered.
    fn returns(&mut self, by: For, ok: bool, out: &mut Vec<Answer>) {
        self.calls.remove(&by);
        let caller = self.caller_mut(by);
        let count = if ok { &mut caller.counts.succeeded } else { &mut caller.counts.failed };
        *count += 1;
        let status = if ok { 200 } else { caller.on_failure };
        self.tell(by.service, out, |service, answers, now| service.returned(now, by.job, status, answers));
    }

    /// The request that a call was made for is no more.
    fn abandon(&mut self, by: For) {
        let Some(mut call) = self.calls.remove(&by) else { return };
        let now = self.now;
        self.caller_mut(by).abandon(now, &mut call);
        if let Some(timeout_at) = call.on_wire {
            self.timers.remove(&(timeout_at, Rank::Timeout, call.token));
            self.hang_up(by, call.token);
        }
    }
}

impl Node {
    fn new(name: &str, member: &Member) -> Self {
        let hash = name_hash(name.as_bytes());
        let caller = member.calls.as_ref().map(|calls| Caller::new(calls, hash, 1));
        let service = Service::new(&member.service);
        let service = if caller.is_some() { service.that_calls() } else { service };
        let (jobs, due) = (Names::default(), Timestamp::NEVER);
        Self { name: name.to_string(), hash, service, jobs, due, caller, fails: member.fails.clone() }
    }
}
