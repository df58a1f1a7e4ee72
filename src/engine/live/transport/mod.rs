//! The virtual clients' connections: attempts go in, completions come out.
//!
//! This is the seam to the wire. The driver knows [`Transport`], [`Send`] and [`Completion`], and nothing of HTTP;
//! behind it, one task per connection owns it. Everything here belongs to one shard and
//! to its thread, so there is no lock.

mod client;
mod io;
mod line;
mod queue;
mod request;
mod response;

pub use io::Io;
pub use queue::{Completion, Completions};
pub use request::{HeaderError, Requests, headers_of};
pub use response::BODY_LIMIT;

use crate::engine::live::clock::Clock;
use crate::event::AttemptOutcome;
use crate::fleet::{Connections, Send};
use client::{Slot, Wire};
use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// What the connections of one fleet in one shard need to know.
pub struct FleetWires {
    /// The fleet's number.
    pub fleet: u16,
    /// The connections of this shard, by their numbers over all shards.
    pub numbers: Range<u32>,
    /// Where they connect, by region: the listeners of the fleet at the proxy.
    pub doors: Vec<Door>,
    /// By connection, its region.
    pub region_of: Box<dyn Fn(u32) -> u16>,
    /// How long a connection lives.
    pub connections: Connections,
    /// How many of the fleet's requests have reached this shard's part of the proxy.
    pub arrived: Box<dyn Fn() -> u64>,
    /// How many of its connections that part has taken in.
    pub connected: Box<dyn Fn() -> u64>,
}

/// Where clients connect.
pub struct Door {
    /// The proxy's listener.
    pub addr: SocketAddr,
    /// Told of each connect that the kernel refused: the proxy's listener is closed then, and cannot count it.
    pub on_refused: Box<dyn Fn()>,
}

/// What happened to connections, beside attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Connections that the other side closed while no attempt was on them; nobody's failure.
    pub idle_closes: u64,
    /// Connects that failed because this machine had no ephemeral port left.
    pub out_of_ports: u64,
    /// Connects that failed because this process had no file descriptor left.
    pub out_of_descriptors: u64,
}

impl WireCounts {
    /// The sum of two.
    pub fn plus(self, other: Self) -> Self {
        Self {
            idle_closes: self.idle_closes + other.idle_closes,
            out_of_ports: self.out_of_ports + other.out_of_ports,
            out_of_descriptors: self.out_of_descriptors + other.out_of_descriptors,
        }
    }
}

/// The connections of one shard. Must live inside a `LocalSet`; dropping it closes every connection.
pub struct Transport {
    fleets: Vec<Wires>,
    completions: Rc<Completions>,
    counts: Rc<Cell<WireCounts>>,
    serial: Cell<u64>,
}

/// The connections of one fleet: `slots[i]` is number `first + i`.
struct Wires {
    first: u32,
    slots: Vec<Rc<Slot>>,
    arrived: Box<dyn Fn() -> u64>,
    connected: Box<dyn Fn() -> u64>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Transport {
    /// Starts a task for every connection. Nothing is connected yet.
    pub fn new(fleets: Vec<FleetWires>, requests: &Arc<Requests>, clock: &Arc<dyn Clock>) -> Self {
        let completions = Rc::new(Completions::default());
        let counts = Rc::new(Cell::new(WireCounts::default()));
        let wires = fleets.into_iter().map(|fleet| {
            let FleetWires { fleet, numbers, doors, region_of, connections, arrived, connected } = fleet;
            let wire = |door: Door| Wire {
                fleet,
                door,
                connections,
                requests: requests.clone(),
                clock: clock.clone(),
                completions: completions.clone(),
                counts: counts.clone(),
            };
            let by_region: Vec<Rc<Wire>> = doors.into_iter().map(|door| Rc::new(wire(door))).collect();
            let slots: Vec<Rc<Slot>> = numbers.clone().map(|number| Rc::new(Slot::new(number))).collect();
            let start = |(number, slot): (u32, &Rc<Slot>)| {
                let wire = by_region[usize::from(region_of(number))].clone();
                tokio::task::spawn_local(client::run(wire, slot.clone()))
            };
            let tasks = numbers.clone().zip(&slots).map(start).collect();
            Wires { first: numbers.start, slots, arrived, connected, tasks }
        });
        Self { fleets: wires.collect(), completions: completions.clone(), counts, serial: Cell::new(0) }
    }

    /// Connects every client that keeps its connection, a bounded number at a time, and returns how many could not.
    pub async fn warm_up(&self) -> usize {
        const AT_ONCE: usize = 128;
        let mut failed = 0;
        let slots: Vec<&Rc<Slot>> = self.fleets.iter().flat_map(|fleet| &fleet.slots).collect();
        for batch in slots.chunks(AT_ONCE) {
            batch.iter().for_each(|slot| slot.warm_up());
            for slot in batch {
                failed += usize::from(!slot.warmed().await);
            }
        }
        failed
    }

    /// Puts an attempt on its connection's wire. A connection has one attempt on the wire at a time.
    pub fn send(&self, send: Send) {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        if let Some(slot) = self.slot(send.operation.fleet, send.connection) {
            slot.send(serial, send);
        }
    }

    /// Gives the attempt on a connection up and closes it. Its completion, if it comes, is ignored.
    pub fn cancel(&self, fleet: u16, connection: u32) {
        if let Some(slot) = self.slot(fleet, connection) {
            slot.cancel();
        }
    }

    /// The next attempt that ended and was not given up.
    pub fn next(&self) -> Option<Completion> {
        loop {
            let completion = self.completions.pop()?;
            let slot = self.slot(completion.fleet, completion.connection)?;
            if slot.settle(completion.serial) {
                return Some(completion);
            }
        }
    }

    /// Returns once an attempt has ended.
    pub async fn ready(&self) {
        std::future::poll_fn(|cx| self.completions.poll_ready(cx)).await;
    }

    /// How many of a fleet's requests have reached this shard's part of the proxy.
    pub fn arrived(&self, fleet: u16) -> u64 {
        self.fleets.get(usize::from(fleet)).map_or(0, |wires| (wires.arrived)())
    }

    /// How many of a fleet's connections that part has taken in, those of the warm-up among them.
    pub fn connected(&self, fleet: u16) -> u64 {
        self.fleets.get(usize::from(fleet)).map_or(0, |wires| (wires.connected)())
    }

    /// What happened to connections so far.
    pub fn counts(&self) -> WireCounts {
        self.counts.get()
    }

    fn slot(&self, fleet: u16, connection: u32) -> Option<&Rc<Slot>> {
        let wires = self.fleets.get(usize::from(fleet))?;
        wires.slots.get(usize::try_from(connection.checked_sub(wires.first)?).ok()?)
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.fleets.iter().flat_map(|fleet| &fleet.tasks).for_each(tokio::task::JoinHandle::abort);
    }
}

/// Why an attempt ended without a whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Connect,
    Reset,
    Malformed,
}

impl From<Broken> for AttemptOutcome {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Connect => Self::Connect,
            Broken::Reset => Self::Reset,
            Broken::Malformed => Self::Malformed,
        }
    }
}

#[cfg(test)]
mod tests;
