//! Attempts on their way: where each is, and what it needs to go on. One slot for each that is under way, reused.

use crate::event::AttemptOutcome;
use crate::fault::{Harm, Hold, Origin, Request, Rule};
use crate::fleet::Send;
use crate::policy::hint::Told;
use crate::priority::Priority;
use crate::rng::Stream;
use crate::service::job::{NO_SLOT, Slot};
use crate::time::Timestamp;
use std::sync::Arc;

/// No flight.
pub(super) const NONE: u32 = u32::MAX;

/// Names a flight. One that has ended is told apart from the next in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlightId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl FlightId {
    /// As the service knows it.
    pub(super) const fn number(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// Back from that.
    pub(super) const fn from_number(number: u64) -> Self {
        Self { slot: number as u32, generation: (number >> 32) as u32 }
    }
}

/// Where an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its slot is free.
    Free,
    /// Its client opens a connection.
    Connecting,
    /// On its client's poor link: nothing of it is on the wire yet.
    OnLink,
    /// On its way to the proxy.
    ToProxy,
    /// At the proxy, which holds it up; then it carries the fate out.
    AtProxy(Onward),
    /// At the proxy, until what took it lets go.
    Taken,
    /// On its way to the target, or there, or its answer on the way back to the proxy.
    Upstream,
    /// Lost to its client, who does not know: nothing more will come.
    Silent,
    /// Its end is on the way to its client.
    ToClient,
}

/// What the proxy does with an attempt once its delay is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onward {
    Forward,
    Answer(Reply),
    Malformed,
    Reset,
}

/// An answer as its client judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) hint: Option<Told>,
    /// Whether the body holds what the plan wants of it.
    pub(super) contains: bool,
}

/// What is on its way to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Reply(Reply),
    Broken(AttemptOutcome),
}

/// What faults hold of an attempt, and have in store for it.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) hold: Hold,
    /// What was due meanwhile.
    pub(super) due: Option<super::world::What>,
    /// What comes to its answer.
    pub(super) harm: Option<Box<Harm>>,
    /// The limits among whose places it has one, or waits for one.
    pub(super) places: Vec<Arc<Rule>>,
    /// The step in whose queue it waits, and until when at most.
    pub(super) waits: Option<(usize, Timestamp)>,
}

/// An attempt under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) stage: Stage,
    pub(super) fleet: u16,
    /// The job at the target that answers it.
    pub(super) job: Slot,
    /// Its client's region.
    pub(super) region: u16,
    /// Whether its client has given it up.
    pub(super) abandoned: bool,
    /// Its place in its fleet's links.
    pub(super) connection: u32,
    generation: u32,
    pub(super) attempt: u32,
    pub(super) idempotency_key: u128,
    /// Its client's number in the fleet.
    pub(super) client: u32,
    /// What goes first, where the operation says; else the fleet does.
    pub(super) priority: Option<Priority>,
    pub(super) enqueued: Timestamp,
    /// Where it goes, as faults know it.
    pub(super) destination: u64,
    pub(super) sent: Timestamp,
    /// When it reaches the proxy, or reached it.
    pub(super) at_proxy: Timestamp,
    pub(super) draws: Stream,
    /// What is on its way back: from the target to the proxy, then to its client.
    pub(super) message: Message,
    /// The matchers of the timeline that it fits.
    pub(super) matched: u64,
    /// What few have.
    pub(super) held: Option<Box<Held>>,
    next_free: u32,
}

impl Flight {
    /// Where it comes from.
    pub(super) const fn origin(&self) -> Origin {
        Origin { fleet: self.fleet, region: self.region }
    }

    /// As faults see it, on the connection that was opened in its place so often, with its name as its ticket.
    pub(super) fn request(&self, id: FlightId, opened: u16, client: u64) -> Request {
        let connection = u64::from(self.fleet) << 48 | u64::from(self.connection) << 16 | u64::from(opened);
        let request = Request::ours(self.origin(), self.idempotency_key, self.attempt).bound_for(self.destination);
        request.on(connection).with_ticket(id.number()).of_client(client).fitting(self.matched)
    }

    /// Whether the proxy has its request, as a fault that begins sees the connection: not before that has come, nor after it was answered or
    /// lost.
    pub(super) const fn is_at_proxy(&self) -> bool {
        match self.stage {
            Stage::AtProxy(_) | Stage::Taken | Stage::Upstream => true,
            Stage::Free | Stage::Connecting | Stage::OnLink | Stage::ToProxy | Stage::Silent | Stage::ToClient => false,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.hold.is_held())
    }
}

/// The flights of a run.
#[derive(Debug)]
pub(super) struct Flights {
    slots: Vec<Flight>,
    free: u32,
}

impl Flights {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }

    /// Takes an attempt in.
    pub(super) fn begin(&mut self, now: Timestamp, region: u16, destination: u64, send: &Send, draws: Stream) -> FlightId {
        let flight = Flight {
            stage: Stage::Connecting,
            fleet: send.operation.fleet,
            job: NO_SLOT,
            region,
            abandoned: false,
            connection: send.connection,
            generation: 0,
            attempt: send.attempt,
            idempotency_key: send.idempotency_key,
            client: send.operation.client,
            priority: send.priority,
            enqueued: send.enqueued_at,
            destination,
            sent: now,
            at_proxy: Timestamp::NEVER,
            draws,
            message: Message::Broken(AttemptOutcome::Reset),
            matched: 0,
            held: None,
            next_free: NONE,
        };
        if self.free == NONE {
            let slot =
                u32::try_from(self.slots.len()).expect("a connection has one attempt under way, and there are fewer connections");
            self.slots.push(flight);
            return FlightId { slot, generation: 0 };
        }
        let slot = self.free;
        let old = &mut self.slots[slot as usize];
        let generation = old.generation;
        self.free = old.next_free;
        *old = Flight { generation, ..flight };
        FlightId { slot, generation }
    }

    /// The flight of a name, unless it has ended.
    pub(super) fn get(&mut self, id: FlightId) -> Option<&mut Flight> {
        self.slots.get_mut(id.slot as usize).filter(|flight| flight.generation == id.generation && flight.stage != Stage::Free)
    }

    /// The flight in a slot, if there is one.
    pub(super) fn peek(&self, slot: u32) -> Option<&Flight> {
        self.slots.get(slot as usize)
    }

    /// How many slots there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The flight in a slot that is known to be in use.
    pub(super) fn at(&mut self, id: FlightId) -> &mut Flight {
        &mut self.slots[id.slot as usize]
    }

    /// The name of what is in a slot.
    pub(super) fn id(&self, slot: u32) -> FlightId {
        FlightId { slot, generation: self.slots[slot as usize].generation }
    }

    /// Frees a slot.
    pub(super) fn end(&mut self, id: FlightId) {
        let free = self.free;
        let flight = &mut self.slots[id.slot as usize];
        flight.stage = Stage::Free;
        flight.held = None;
        flight.generation = flight.generation.wrapping_add(1);
        flight.next_free = free;
        self.free = id.slot;
    }

    /// The names of all that are under way, in the order of their slots.
    pub(super) fn all(&self) -> Vec<FlightId> {
        let live = self.slots.iter().enumerate().filter(|(_, flight)| flight.stage != Stage::Free);
        live.map(|(slot, flight)| FlightId { slot: slot as u32, generation: flight.generation }).collect()
    }
}
