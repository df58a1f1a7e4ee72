//! What a plan says of a fleet, but for its policy, which the plan resolves by name.

use super::{Defer, LinkConfig, Operations, Regions};
use crate::load::Load;
use crate::rng::{Key, Purpose};
use crate::time::{Rate, Span};
use crate::{choice, keyword, record};

keyword! {
    /// How long a client's connection lives.
    pub enum Connections {
        /// One connection, kept alive from attempt to attempt.
        keep_alive => KeepAlive,
        /// A new connection for every attempt.
        per_attempt => PerAttempt,
    }
}

keyword! {
    /// When the idempotency key is made.
    pub enum IdempotencyKey {
        /// Once per operation, when it is enqueued: every attempt carries the same.
        enqueue => Enqueue,
        /// For every attempt anew, which defeats deduplication; there to show why not.
        attempt => Attempt,
    }
}

impl FleetConfig {
    /// Clients of which nothing else is said.
    pub fn new(clients: u32, load: Load) -> Self {
        Self {
            clients,
            load,
            connections: Connections::KeepAlive,
            late_starts: LateStarts::Queue(Always {}),
            outbox: 1000,
            when_full: WhenFull::Refuse,
            operations: Operations::default(),
            drain_rate: None,
            defer: None,
            priority: None,
            idempotency_key: IdempotencyKey::Enqueue,
            regions: Regions::default(),
            link: None,
        }
    }
}

impl IdempotencyKey {
    /// The key of an attempt that the draws know by `key`.
    pub(super) fn draw(self, key: Key) -> u128 {
        let attempt = match self {
            Self::Enqueue => 0,
            Self::Attempt => key.attempt,
        };
        let mut draws = Key { attempt, ..key }.stream(Purpose::IdempotencyKey);
        u128::from(draws.bits()) << 64 | u128::from(draws.bits())
    }
}

record! {
    /// No settings.
    pub struct Always {}
}

record! {
    /// How late a start may be.
    pub struct CatchUp {
        /// An operation that could not start this soon after its intended start is dropped.
        within: Span,
    }
}

choice! {
    /// What becomes of an operation that cannot start when it should: its client is busy, or the generator late.
    pub enum LateStarts {
        /// It waits, however long.
        queue => Queue(Always),
        /// It is dropped.
        drop => Drop(Always),
        /// It waits for a bounded time, then it is dropped.
        bounded_catchup => BoundedCatchup(CatchUp),
    }
}

keyword! {
    /// What becomes of an operation that comes up while its client's outbox is full.
    pub enum WhenFull {
        /// It is refused.
        refuse => Refuse,
        /// It takes the place of the oldest one that waits with the lowest priority, unless its own is lower yet.
        evict => Evict,
    }
}

record! {
    /// Clients that share a policy and a load shape.
    pub struct FleetConfig {
        /// How many virtual clients.
        clients: u32,
        /// When they offer operations.
        load: Load,
        /// How long a client's connection lives.
        connections: Connections = Connections::KeepAlive,
        /// What becomes of late starts.
        late_starts: LateStarts = LateStarts::Queue(Always {}),
        /// The most operations one client may hold at once; more are refused, and counted.
        outbox: u32 = 1000,
        /// What becomes of an operation that comes up while the outbox is full.
        when_full: WhenFull = WhenFull::Refuse,
        /// The kinds of operations, by name; all alike where nothing is said.
        operations: Operations = Operations::default(),
        /// The most attempts per second of one client: the pace at which it drains its backlog.
        drain_rate: Option<Rate>,
        /// When a client takes failures for an outage: it stops sending, loses nothing, and probes.
        defer: Option<Defer>,
        /// The `Priority` header (RFC 9218) of every request, such as `u=1`.
        priority: Option<String>,
        /// When the idempotency key is made.
        idempotency_key: IdempotencyKey = IdempotencyKey::Enqueue,
        /// Where the clients are: regions by name, with the share of the clients in each. Faults can name them.
        regions: Regions = Regions::default(),
        /// A poor link, of all clients or a share of them.
        link: Option<LinkConfig>,
    } => |f: &FleetConfig| match (f.clients, f.outbox) {
        (0, _) => Err("`clients` must be 1 or more".to_string()),
        (_, 0) => Err("`outbox` must be 1 or more: an operation on the wire is in it too".to_string()),
        (1..=10_000_000, _) => Ok(()),
        _ => Err("`clients` can be 10000000 at most".to_string()),
    }
}
