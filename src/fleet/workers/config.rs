//! What a plan says of a fleet of workers, but for its policy.

use crate::config::{Node, Problems, Read, Shape, Table, TimeScale, read_text};
use crate::fleet::config::{Connections, IdempotencyKey};
use crate::load::Load;
use crate::time::Rate;
use crate::{keyword, record};

/// The most workers of a fleet, `unlimited` ones included.
pub const MAX_WORKERS: u32 = 1_000_000;
/// How many workers stand for `unlimited` ones on real sockets, where each takes a connection.
pub const LIVE_UNLIMITED: u32 = 1_000;
/// The most operations that a queue may hold.
pub const MAX_BOUND: u32 = 50_000_000;

/// How many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerCount {
    /// So many.
    Limited(u32),
    /// As many as there is work for.
    Unlimited,
}

impl WorkerCount {
    /// As a number.
    pub const fn most(self) -> u32 {
        match self {
            Self::Limited(n) => n,
            Self::Unlimited => MAX_WORKERS,
        }
    }
}

impl Read for WorkerCount {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match (text, text.parse::<u32>()) {
            ("unlimited", _) => Ok(Self::Unlimited),
            (_, Ok(n)) if (1..=MAX_WORKERS).contains(&n) => Ok(Self::Limited(n)),
            _ => Err(format!("expected a number of workers from 1 to {MAX_WORKERS}, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 1, max: MAX_WORKERS.into() },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

keyword! {
    /// What becomes of an operation whose pass is over without success.
    pub enum OnGiveUp {
        /// It goes back to the tail of the queue at once, and begins a new pass. What its policy does not retry at all fails.
        requeue => Requeue,
        /// It fails.
        drop => Drop,
        /// It is put aside.
        dead_letter => DeadLetter,
    }
}

record! {
    /// At most so many a second.
    pub struct DispatchRate {
        /// Dispatches a second, retries included.
        rate: Rate,
        /// How many may go at once.
        burst: u32 = 1,
    } => |r: &DispatchRate| match r.burst {
        0 => Err("`burst` must be 1 or more".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// A lane of its own for what a policy's treatment sends there (`on: { 429: { lane: NAME } }`).
    pub struct LaneConfig {
        /// The most workers that work in it at once.
        concurrency: u32,
        /// Whether each destination has one such lane, or all share it.
        per_destination: bool = false,
    } => |l: &LaneConfig| match l.concurrency {
        0 => Err("`concurrency` must be 1 or more".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// Where operations go, and how many.
    pub struct DestinationConfig {
        /// When they come; none where only producers bring them.
        arrivals: Option<Load>,
        /// How many stand in the queue when the run begins.
        backlog: u32 = 0,
        /// The most workers that it may occupy at once: a lane of its own. Without it, it shares the others'.
        concurrency: Option<u32>,
        /// A token bucket for what is dispatched to it.
        rate: Option<DispatchRate>,
    } => |d: &DestinationConfig| match d.concurrency {
        Some(0) => Err("`concurrency` must be 1 or more".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// The queue that workers share.
    pub struct QueueConfig {
        /// When operations come, where there is one stream of them.
        arrivals: Option<Load>,
        /// Where operations go, by name, each with its own stream.
        destinations: Table<DestinationConfig> = Table::default(),
        /// Whether a worker sleeps through the waits of its operation (holding it), or puts it back until its retry is due and takes another.
        hold_while_waiting: bool = false,
        /// What becomes of an operation whose pass is over without success.
        on_give_up: OnGiveUp = OnGiveUp::Drop,
        /// Whether first attempts go before retries that are due.
        fresh_first: bool = false,
        /// The most workers that each destination may occupy: a lane for each. Without it, all share one.
        concurrency_each: Option<u32>,
        /// Lanes by name, which a policy's treatment may send retries to.
        lanes: Table<LaneConfig> = Table::default(),
        /// A token bucket for what is dispatched to each destination.
        rate: Option<DispatchRate>,
        /// The most operations that wait or are scheduled; beyond, new ones are refused at ingress.
        bound: u32 = 2_000_000,
    } => |q: &QueueConfig| match (q.bound, q.concurrency_each) {
        (0, _) => Err("`bound` must be 1 or more".to_string()),
        (_, Some(0)) => Err("`concurrency_each` must be 1 or more".to_string()),
        (1..=MAX_BOUND, _) => Ok(()),
        _ => Err(format!("`bound` can be {MAX_BOUND} at most")),
    }
}

record! {
    /// Workers that pull from one queue.
    pub struct WorkersConfig {
        /// How many workers, or `unlimited`: then one for whatever is ready.
        workers: WorkerCount,
        /// What they pull from.
        queue: QueueConfig,
        /// How long a worker's connection lives.
        connections: Connections = Connections::KeepAlive,
        /// The `Priority` header (RFC 9218) of every request, such as `u=1`.
        priority: Option<String>,
        /// When the idempotency key is made.
        idempotency_key: IdempotencyKey = IdempotencyKey::Enqueue,
    }
}

impl QueueConfig {
    /// The destinations with their names, the only one of a queue without names included.
    pub fn streams(&self) -> Vec<(&str, DestinationConfig)> {
        if self.destinations.0.is_empty() {
            let only = DestinationConfig { arrivals: self.arrivals.clone(), backlog: 0, concurrency: None, rate: None };
            return vec![("", only)];
        }
        self.destinations.0.iter().map(|entry| (entry.name.as_str(), entry.value.clone())).collect()
    }
}
