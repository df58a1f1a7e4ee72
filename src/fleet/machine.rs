//! The machine of one fleet in one shard, whichever kind the fleet is of: what an engine drives. It only hands on.

use super::interface::{Gauges, Output, Setup, Token};
use super::workers::machine::REFUSED;
use super::{Devices, Workers};
use crate::event::AttemptOutcome;
use crate::policy::Hint;
use crate::time::Timestamp;

/// The machine of one fleet in one shard.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for a fleet and shard, and it is asked for every event")]
pub enum Machine {
    /// Clients with an outbox each.
    Devices(Devices),
    /// Workers on a shared queue.
    Workers(Workers),
}

impl Machine {
    /// A machine that has not begun.
    pub fn new(setup: Setup) -> Self {
        match setup.workers.clone() {
            Some(workers) => Self::Workers(Workers::new(setup, &workers)),
            None => Self::Devices(Devices::new(setup)),
        }
    }

    /// Begins: asks for its first wake-ups. Called once.
    pub fn start(&mut self, now: Timestamp, out: &mut Output) {
        match self {
            Self::Devices(devices) => devices.start(now, out),
            Self::Workers(workers) => workers.start(now, out),
        }
    }

    /// A wake-up that was asked for, not before its moment. Whether it was still wanted.
    pub fn wake(&mut self, now: Timestamp, token: Token, out: &mut Output) -> bool {
        match self {
            Self::Devices(devices) => devices.wake(now, token, out),
            Self::Workers(workers) => workers.wake(now, token, out),
        }
    }

    /// A producer puts an operation into the queue; how its attempt has ended. Only a fleet of workers has a queue; another refuses.
    pub fn enqueue(&mut self, now: Timestamp, destination: u16, out: &mut Output) -> AttemptOutcome {
        match self {
            Self::Devices(_) => REFUSED,
            Self::Workers(workers) => workers.enqueue(now, destination, out),
        }
    }

    /// The attempt on a connection has ended. `hint` is the wait that the server asked for. Ignored where nothing
    /// is on that wire.
    pub fn ended(&mut self, now: Timestamp, connection: u32, outcome: AttemptOutcome, hint: Hint, out: &mut Output) {
        match self {
            Self::Devices(devices) => devices.ended(now, connection, outcome, hint, out),
            Self::Workers(workers) => workers.ended(now, connection, outcome, hint, out),
        }
    }

    /// The end of the run: attempts on the wire are cancelled, everything still held is unresolved. Later calls do nothing.
    pub fn stop(&mut self, now: Timestamp, out: &mut Output) {
        match self {
            Self::Devices(devices) => devices.stop(now, out),
            Self::Workers(workers) => workers.stop(now, out),
        }
    }

    /// What is held now.
    pub fn gauges(&self, now: Timestamp) -> Gauges {
        match self {
            Self::Devices(devices) => devices.gauges(now),
            Self::Workers(workers) => workers.gauges(now),
        }
    }

    /// How often the ceiling on attempts held a send back.
    pub fn ceiling_holds(&self) -> u64 {
        match self {
            Self::Devices(devices) => devices.ceiling_holds(),
            Self::Workers(workers) => workers.ceiling_holds(),
        }
    }

    /// Reads the first of what a wake-up is going to read, and gives something of it. With [`Machine::foresee`] and
    /// [`Machine::foresee_client`] this is for an engine that knows many wake-ups ahead: each asked of all of them before the
    /// next, the waits for memory overlap. Nothing changes.
    pub fn foresee_token(&self, token: Token) -> u64 {
        match self {
            Self::Devices(devices) => devices.foresee_token(token),
            Self::Workers(workers) => workers.foresee_token(token),
        }
    }

    /// Reads what a wake-up is for, and says which client has it; none where the wake-up has become pointless.
    pub fn foresee(&self, token: Token) -> Option<u32> {
        match self {
            Self::Devices(devices) => devices.foresee(token),
            Self::Workers(_) => None,
        }
    }

    /// Reads a client, by its place in the shard, and gives something of it.
    pub fn foresee_client(&self, client: u32) -> u64 {
        match self {
            Self::Devices(devices) => devices.foresee_client(client),
            Self::Workers(_) => 0,
        }
    }
}
