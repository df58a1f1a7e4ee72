//! What lies behind the clients in a simulated run: connections, the network, the proxy, the target.
//!
//! It stands where the live engine has its transport: attempts go in, completions come out. The fate of a request is the
//! fault timeline's, asked at the moment when the request reaches the proxy and with the request's own dice, as the live proxy asks it; a
//! fault that begins or ends strikes, holds and releases what is under way by the rules that stand in `fault`. The target
//! is the service machine. Each message takes its hop, drawn for its attempt; so what one attempt meets does not hang on another's.
//!
//! At one moment the timeline changes first, then the target is changed, then what was asked for first happens first. A hop that takes no
//! time is taken at once, without a step of its own, but for the one to a client, which always takes some.

mod answers;
mod fates;
mod heads;
mod opening;
mod strikes;
mod target;

use super::flight::{Flight, FlightId, Flights, Message, NONE, Reply, Stage};
use super::queue::Queue;
use crate::event::AttemptOutcome;
use crate::fault::{Active, Fate, Timeline, destination_key};
use crate::fleet::workers::WorkerCount;
use crate::fleet::{Connections, Send};
use crate::metrics::{Calls, ServiceCounts};
use crate::network::Network;
use crate::plan::{Deed, Plan, Success};
use crate::policy::Hint;
use crate::priority::Priority;
use crate::rng::{Key, Purpose, Stream};
use crate::service::job::{NO_SLOT, Slot};
use crate::service::key::FleetKey;
use crate::service::{Answer, ServiceChange, System, SystemConfig};
use crate::time::{Span, Timestamp};
use heads::Heads;

/// An attempt that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Of which fleet.
    pub fleet: u16,
    /// On which of its connections.
    pub connection: u32,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// What the server asked for.
    pub hint: Hint,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Nothing: what it was for has gone.
    Stale,
    /// Something on the way.
    Inside,
    /// The timeline changed.
    Turned,
    /// The target was changed: by which of the plan's actions.
    Changed(usize),
    /// An attempt ended.
    Ended(Completion),
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A poor link lets an attempt through.
    OffLink,
    /// A connection is open, or refused.
    Connected,
    /// A request reaches the proxy.
    AtProxy,
    /// The proxy's delay is over.
    Onward,
    /// One that waited for a place has one.
    Admitted,
    /// One that waits for a place has done so for as long as it may.
    Patience,
    /// A request reaches the target.
    AtTarget,
    /// The target has something to do.
    Service,
    /// An answer reaches the proxy.
    Answered,
    /// The end of an attempt reaches its client.
    Deliver,
    /// The proxy hears that a client has gone.
    Gone,
    /// The target hears that a client has gone.
    CancelAtTarget,
}

/// What happens in the world at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    what: What,
    flight: FlightId,
    /// For [`What::CancelAtTarget`]: the job at the target, for the flight has gone by then.
    job: Slot,
}

/// From so many attempts under way on, what happens next is read ahead at the target too.
const WIDE: usize = 100_000;

const NOBODY: FlightId = FlightId { slot: NONE, generation: 0 };

/// One connection of a fleet.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Its attempt under way.
    flight: u32,
    /// The job that was to answer the one before, which was given up.
    job: Slot,
    /// Where it comes from.
    region: u16,
    /// How often it was opened again, in turn.
    opened: u16,
    /// Whether it is open.
    connected: bool,
    /// Whether the proxy has opened its part to the target.
    upstream: bool,
}

#[derive(Debug)]
struct Links {
    connections: Connections,
    /// As faults and services know them, by number.
    destinations: Vec<u64>,
    /// As services know the fleet and its clients.
    key: FleetKey,
    /// What its requests say goes first, where their operations do not.
    priority: Priority,
    /// A connection at the start of the run.
    fresh: Link,
    /// How many regions.
    regions: u16,
    links: Vec<Link>,
}

impl Links {
    fn link(&mut self, connection: u32) -> &mut Link {
        let place = connection as usize;
        if place >= self.links.len() {
            self.links.resize(place + 1, self.fresh);
        }
        &mut self.links[place]
    }
}

/// A change of the target: when, by which of the plan's actions, and what.
#[derive(Debug)]
struct ServiceStep {
    at: Timestamp,
    action: usize,
    change: ServiceChange,
}

/// The far side of the clients of a run.
#[derive(Debug)]
pub struct World<Q> {
    seed: u64,
    network: Network,
    success: Success,
    fleets: Vec<Links>,
    flights: Flights,
    queue: Q,
    timeline: Timeline,
    active: Active,
    /// The moments at which the timeline changes that have not come; the next one last.
    changes: Vec<Timestamp>,
    /// The plan's changes of the target that have not come; the next one last.
    service_changes: Vec<ServiceStep>,
    touched: Vec<u64>,
    /// By fleet, the requests that reached the proxy.
    arrived: Vec<u64>,
    /// By fleet, the connections that the proxy took in.
    connects: Vec<u64>,
    heads: Option<Heads>,
    /// Whether the target is the built-in one, whose answers are known.
    built_in: bool,
    service: System,
    answers: Vec<Answer>,
    /// For when the target's next step is asked for.
    service_due: Timestamp,
}

impl<Q: Queue<Step> + Default> World<Q> {
    /// The world of a plan at its start: every connection that is kept is open, as after a live warm-up.
    pub fn new(plan: &Plan, service: &SystemConfig) -> Self {
        let timeline = Timeline::new(plan.timeline.clone(), plan.seed);
        let fleets = plan.fleets.iter().map(|fleet| {
            let connections = fleet.config.connections;
            let connected = connections == Connections::KeepAlive;
            let region_of = fleet.region_of();
            let link = |connection| Link {
                flight: NONE,
                job: NO_SLOT,
                region: region_of(connection),
                opened: 0,
                connected,
                upstream: false,
            };
            // Those of unlimited workers come as they are used.
            let unlimited = fleet.workers.as_ref().is_some_and(|workers| workers.workers == WorkerCount::Unlimited);
            let kept = if unlimited { 0 } else { fleet.connections() };
            let destinations = fleet.destinations().iter().map(|name| destination_key(name.as_bytes())).collect();
            let key = FleetKey::new(&fleet.name);
            let priority = fleet.config.priority.as_deref().map_or(Priority::Normal, Priority::of_header);
            let (regions, links) = (fleet.config.regions.count(), (0..kept).map(link).collect());
            Links { connections, destinations, key, priority, fresh: link(0), regions, links }
        });
        Self {
            seed: plan.seed,
            network: plan.network.clone(),
            success: plan.target.success.clone(),
            fleets: fleets.collect(),
            flights: Flights::new(),
            queue: Q::default(),
            active: timeline.nothing(),
            changes: timeline.changes().into_iter().rev().collect(),
            service_changes: service_steps(plan),
            touched: vec![0; plan.timeline.len()],
            arrived: vec![0; plan.fleets.len()],
            connects: vec![0; plan.fleets.len()],
            heads: Heads::new(plan, timeline.matchers()),
            built_in: plan.target.service.is_some(),
            timeline,
            service: System::new(service),
            answers: Vec::new(),
            service_due: Timestamp::NEVER,
        }
    }

    /// Puts an attempt on its connection's wire. A connection has one attempt on the wire at a time.
    pub fn send(&mut self, now: Timestamp, send: &Send) {
        let fleet = send.operation.fleet;
        let draws = self.draws(send);
        let of_fleet = &mut self.fleets[usize::from(fleet)];
        let destination = of_fleet.destinations.get(usize::from(send.destination)).copied().unwrap_or(0);
        let link = of_fleet.link(send.connection);
        let id = self.flights.begin(now, link.region, destination, send, draws);
        link.flight = id.slot;
        let connected = link.connected;
        if let Some(heads) = &self.heads {
            self.flights.at(id).matched = heads.bits(send);
        }
        if !send.delay.is_zero() {
            self.flight(id).stage = Stage::OnLink;
            self.ask(now + send.delay, What::OffLink, id);
        } else if connected {
            self.request(id, now);
        } else {
            self.connect(id, now);
        }
    }

    /// Reads what a send on this connection is going to read, and gives something of it. Nothing changes.
    pub fn foresee(&self, fleet: u16, connection: u32) -> u64 {
        self.fleets[usize::from(fleet)].links.get(connection as usize).map_or(0, |link| u64::from(link.flight))
    }

    /// Whether so many attempts are under way that what each needs lies far away.
    pub fn is_wide(&self) -> bool {
        self.flights.len() > WIDE
    }

    /// The client has given the attempt on this connection up, and closes it.
    pub fn cancel(&mut self, now: Timestamp, fleet: u16, connection: u32) {
        let link = &mut self.fleets[usize::from(fleet)].links[connection as usize];
        let slot = std::mem::replace(&mut link.flight, NONE);
        (link.connected, link.upstream) = (false, false);
        if slot == NONE {
            return;
        }
        let id = self.flights.id(slot);
        let Some(flight) = self.flights.get(id) else { return };
        flight.abandoned = true;
        self.fleets[usize::from(fleet)].links[connection as usize].job = flight.job;
        // What was sent before comes before.
        let on_its_way = !matches!(flight.stage, Stage::Connecting | Stage::OnLink);
        let sent_before = if on_its_way { flight.at_proxy } else { now };
        let at = (now + self.network.client_hop(&mut flight.draws)).max(sent_before);
        if at == now && flight.stage != Stage::ToProxy { self.gone(id, now) } else { self.ask(at, What::Gone, id) }
    }

    /// When something happens next; [`Timestamp::NEVER`] where nothing does.
    pub fn next_at(&mut self) -> Timestamp {
        let changes = self.changes.last().copied().into_iter().chain(self.service_changes.last().map(|step| step.at));
        changes.fold(self.queue.next_at(), Timestamp::min)
    }

    /// Lets what happens at [`World::next_at`] happen: one step of it.
    pub fn advance(&mut self) -> Happened {
        if let Some(&change) = self.changes.last()
            && change <= self.queue.next_at()
            && self.service_changes.last().is_none_or(|step| change <= step.at)
        {
            self.changes.pop();
            self.turn(change);
            return Happened::Turned;
        }
        if let Some(step) = self.service_changes.pop_if(|step| step.at <= self.queue.next_at()) {
            self.service.change(step.at, &step.change, &mut self.answers);
            self.heard_of_target(step.at);
            return Happened::Changed(step.action);
        }
        let Some((now, Step { what, flight: id, job })) = self.queue.pop() else { return Happened::Stale };
        match what {
            What::Service => return self.serve(now),
            What::CancelAtTarget => return self.cancel_at_target(id, job, now),
            _ => {}
        }
        let Some(flight) = self.flights.get(id) else { return Happened::Stale };
        match (what, flight.stage) {
            (What::OffLink, Stage::OnLink) => self.off_link(id, now),
            (What::Connected, Stage::Connecting) => return self.connected(id, now),
            (What::AtProxy, Stage::ToProxy) => self.at_proxy(id, now),
            (What::Onward, Stage::AtProxy(onward)) => self.onward(id, onward, now),
            (What::AtTarget, Stage::Upstream | Stage::Silent) => return self.at_target(id, now),
            (What::Admitted, Stage::Taken) => self.admitted(id, now),
            (What::Patience, Stage::Taken) => self.out_of_patience(id, now),
            (What::Answered, Stage::Upstream) => self.answered(id, now),
            (What::Deliver, Stage::ToClient) => return self.deliver(id, now),
            (What::Gone, _) => self.gone(id, now),
            _ => return Happened::Stale,
        }
        Happened::Inside
    }

    /// The faults of the run.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// How many requests and connections a step of the timeline has touched.
    pub fn touched(&self, step: usize) -> u64 {
        self.touched[step]
    }

    /// How many requests of a fleet have reached the proxy.
    pub fn arrived(&self, fleet: usize) -> u64 {
        self.arrived.get(fleet).copied().unwrap_or(0)
    }

    /// How many connections of a fleet the proxy has taken in, those apart that were open at the start.
    pub fn connects(&self, fleet: usize) -> u64 {
        self.connects.get(fleet).copied().unwrap_or(0)
    }

    /// What the target counted.
    pub fn counts(&self) -> ServiceCounts {
        let others = self.service.each().into_iter().skip(1).map(|(name, counts)| (name.to_string(), counts)).collect();
        let calls = self.service.calls().into_iter();
        let calls = calls.map(|(from, to, counts)| Calls { from: from.to_string(), to: to.to_string(), counts }).collect();
        ServiceCounts { of: self.service.counts(), accept_errors: 0, others, calls }
    }

    fn draws(&self, send: &Send) -> Stream {
        let operation = send.operation;
        let (fleet, client) = (u32::from(operation.fleet), operation.client);
        Key { seed: self.seed, fleet, client, operation: operation.number, attempt: send.attempt }.stream(Purpose::Network)
    }

    fn ask(&mut self, at: Timestamp, what: What, flight: FlightId) {
        self.queue.push(at, Step { what, flight, job: NO_SLOT });
    }

    fn flight(&mut self, id: FlightId) -> &mut Flight {
        self.flights.at(id)
    }

    fn link(&mut self, id: FlightId) -> Option<&mut Link> {
        let flight = self.flights.at(id);
        let (fleet, connection) = (usize::from(flight.fleet), flight.connection as usize);
        // A client that gave it up may have opened another in its place since.
        (!flight.abandoned).then(|| &mut self.fleets[fleet].links[connection])
    }

    /// A message leaves the proxy, or reaches it, one hop away from the client.
    fn client_hop(&mut self, id: FlightId) -> Span {
        let flight = self.flights.at(id);
        self.network.client_hop(&mut flight.draws)
    }

    fn upstream_hop(&mut self, id: FlightId) -> Span {
        let flight = self.flights.at(id);
        self.network.upstream_hop(&mut flight.draws)
    }

    fn at_proxy(&mut self, id: FlightId, now: Timestamp) {
        let flight = self.flights.at(id);
        self.arrived[usize::from(flight.fleet)] += 1;
        if self.network.resets(&mut flight.draws) {
            return self.reset(id, now);
        }
        if self.active.is_empty() {
            // What nearly every request of a run meets, and the same fate without asking.
            return self.meet(id, Fate::forward(Span::ZERO), None, now);
        }
        let request = self.request_of(id);
        let judgement = self.active.judge(&request, now);
        self.judged(id, judgement, now);
    }

    fn forward(&mut self, id: FlightId, now: Timestamp) {
        let open = self.link(id).is_some_and(|link| std::mem::replace(&mut link.upstream, true));
        let flight = self.flights.at(id);
        flight.stage = Stage::Upstream;
        let connect = if open { Span::ZERO } else { self.network.connect_upstream(&mut flight.draws) };
        let at = now + connect + self.network.upstream_hop(&mut flight.draws);
        if at == now {
            self.at_target(id, now);
        } else {
            self.ask(at, What::AtTarget, id);
        }
    }

    fn answered(&mut self, id: FlightId, now: Timestamp) {
        if !self.is_held(id, What::Answered) {
            let flight = self.flight(id);
            let message = flight.message;
            if let Message::Reply(reply) = message
                && let Some(harm) = flight.held.as_mut().and_then(|held| held.harm.take())
            {
                return self.harm(id, &harm, reply, now);
            }
            if matches!(message, Message::Broken(_))
                && let Some(link) = self.link(id)
            {
                (link.connected, link.upstream) = (false, false);
            }
            self.answer(id, message, now);
        }
    }

    fn answer(&mut self, id: FlightId, message: Message, now: Timestamp) {
        self.leave_places(id, now);
        let flight = self.flights.at(id);
        let at = now + self.network.to_client(&mut flight.draws);
        (flight.stage, flight.message) = (Stage::ToClient, message);
        self.ask(at, What::Deliver, id);
    }

    fn deliver(&mut self, id: FlightId, now: Timestamp) -> Happened {
        let flight = self.flight(id);
        let (fleet, connection, message, sent) = (flight.fleet, flight.connection, flight.message, flight.sent);
        let abandoned = flight.abandoned;
        self.flights.end(id);
        if abandoned {
            return Happened::Stale;
        }
        let Links { connections, links, .. } = &mut self.fleets[usize::from(fleet)];
        let link = &mut links[connection as usize];
        link.flight = NONE;
        if *connections == Connections::PerAttempt {
            (link.connected, link.upstream) = (false, false);
        }
        let (outcome, hint) = match message {
            Message::Broken(outcome) => (outcome, Hint::NONE),
            Message::Reply(Reply { status, hint, contains }) => {
                let hint = hint.map_or(Hint::NONE, |told| told.hint(now));
                (self.success.outcome(status, now.since(sent), contains), hint)
            }
        };
        Happened::Ended(Completion { fleet, connection, outcome, hint })
    }

    /// Ends a connection with a reset; the attempt on it ends so.
    fn reset(&mut self, id: FlightId, now: Timestamp) {
        if let Some(link) = self.link(id) {
            (link.connected, link.upstream) = (false, false);
        }
        self.leave_target(id, now);
        self.answer(id, Message::Broken(AttemptOutcome::Reset), now);
    }

    fn gone(&mut self, id: FlightId, now: Timestamp) {
        self.leave_target(id, now);
        self.leave_places(id, now);
        self.flights.end(id);
    }
}

/// The changes of the target that a plan makes; the first one last.
fn service_steps(plan: &Plan) -> Vec<ServiceStep> {
    let steps = plan.actions.iter().enumerate().filter_map(|(action, of)| match &of.what {
        Deed::Service { change, .. } => Some(ServiceStep { at: of.at, action, change: (**change).clone() }),
        _ => None,
    });
    steps.rev().collect()
}
