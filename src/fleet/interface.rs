//! What a fleet's machine and an engine exchange: plain data. An engine hands in moments and how attempts ended; it
//! carries out commands, in their order, and keeps no rule of its own.

use super::workers::WorkersConfig;
use super::{FleetConfig, Priority, TimedAction};
use crate::event::{Event, OperationId};
use crate::pace::Pacer;
use crate::policy::guards::SharedGuards;
use crate::policy::{Budget, Policy};
use crate::time::{Span, Timestamp};
use std::ops::Range;
use std::sync::Arc;

/// What the machine of one fleet in one shard is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The run's seed.
    pub seed: u64,
    /// The fleet's number in the plan.
    pub fleet: u16,
    /// How its clients retry.
    pub policy: Policy,
    /// The rest of what the plan says of it.
    pub config: FleetConfig,
    /// For a fleet of workers: what the plan says of those.
    pub workers: Option<WorkersConfig>,
    /// This shard's clients, by their numbers over all shards; of a fleet of workers all of them, or none.
    pub clients: Range<u32>,
    /// What moments are rounded up to.
    pub grain: Span,
    /// Whether its attempts go into another fleet's queue, and not to the target: they take no time.
    pub enqueues: bool,
    /// Nothing is offered at or after this.
    pub end: Timestamp,
    /// How often each route is taken, against the others; empty for one route.
    pub route_weights: Vec<f64>,
    /// What the timeline makes it do, in the order of its moments. The machine asks for its own wake-ups.
    pub actions: Vec<TimedAction>,
    /// What it shares with other shards.
    pub shared: Shared,
}

/// State that shards share.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// The fleet's retry budget, where its tier is `fleet`; without one the shard makes its own.
    pub budget: Option<Arc<Budget>>,
    /// The fleet's breaker and throttle, where their tier is `fleet`; likewise.
    pub guards: SharedGuards,
    /// By action, what takes the place of those where it brings another policy.
    pub after: Vec<Option<SharedAfter>>,
    /// The ceiling on attempts per second.
    pub ceiling: Option<Arc<Pacer>>,
}

/// What shards share after an action that brings another policy.
#[derive(Clone, Debug, Default)]
pub struct SharedAfter {
    /// The fleet's retry budget, where its tier is `fleet`.
    pub budget: Option<Arc<Budget>>,
    /// The fleet's breaker and throttle, where their tier is `fleet`.
    pub guards: SharedGuards,
}

/// Names what a wake-up is for. A token whose reason has gone is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub(super) Reason);

/// Why a wake-up was asked for. Clients and operations by their place in the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A client's next operation is due, or one of a destination's stream.
    Arrival(u32),
    /// An operation's wait, or its attempt's time, is over.
    Operation { slot: u32, generation: u32 },
    /// The ceiling lets another attempt through.
    Ceiling,
    /// A destination's bucket has a token.
    Token,
    /// A client's throttle lets another attempt through.
    Throttle(u32),
    /// What kept a client from sending may have passed.
    Restraint(u32),
    /// The budget may have earned a retry that is parked.
    Parked,
    /// The time of one of several attempts of an operation is over.
    Flight { slot: u32, serial: u32 },
    /// The timeline does something to the fleet: by its place among the fleet's actions.
    Action(u16),
    /// A client, or a worker, comes back from a restart.
    Back(u32),
}

/// What an engine has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Put this attempt on the wire.
    Send(Send),
    /// The attempt on this connection was given up: close it. A [`Command::Send`] for the same connection
    /// may follow at once.
    Cancel {
        /// The connection.
        connection: u32,
    },
    /// Call [`Machine::wake`](super::Machine::wake) at this moment, or as soon after it as possible.
    Wake {
        /// When.
        at: Timestamp,
        /// What to say.
        token: Token,
    },
}

/// The destination of what has none.
pub const NO_DESTINATION: u16 = u16::MAX;

/// An attempt to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// On which of the fleet's connections. Which client it is for, the operation says.
    pub connection: u32,
    /// Of which operation.
    pub operation: OperationId,
    /// Where it goes, by the number of the destination in the fleet; [`NO_DESTINATION`] where the fleet has none.
    pub destination: u16,
    /// Its number in the operation, from 1, across passes.
    pub attempt: u32,
    /// Which of the target's routes it takes: the same for every attempt of an operation.
    pub route: u16,
    /// When the machine will give it up. For information: the machine asks for that wake-up itself.
    pub timeout_at: Timestamp,
    /// What deduplication goes by.
    pub idempotency_key: u128,
    /// The operation's intended start.
    pub enqueued_at: Timestamp,
    /// What travels with the request; none where the plan gives operations no kinds.
    pub priority: Option<Priority>,
    /// How long the engine holds it before it goes on the wire: what it takes on a poor link, there and back.
    pub delay: Span,
}

/// Where a machine writes to. The caller drains and reuses it, so that the hot path allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// To be carried out in this order.
    pub commands: Vec<Command>,
    /// To be recorded in this order.
    pub events: Vec<Event>,
}

/// What a fleet holds at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Attempts on the wire.
    pub in_flight: u64,
    /// Operations offered and not finished.
    pub backlog: u64,
    /// Time since the intended start of the operation that was offered first of those. Exact as long as the
    /// generator keeps time; off by its lag where it does not.
    pub oldest_age: Span,
    /// Operations whose moment to be sent has come, since the run began: each attempt counts once, held back or not.
    pub scheduled: u64,
    /// Of those that are held, those past attempt 3.
    pub deep_retries: u64,
    /// Of those that are held, those past their deadline.
    pub late: u64,
    /// Requests that reached the proxy, since the start of the run. A machine does not know: the engine fills it in.
    pub arrived: u64,
    /// Connections that clients made to the proxy, since the start of the run. A machine does not know: the engine fills it in.
    pub connected: u64,
}
