//! What a plan says of a queue.

use super::codel::Codel;
use super::expiry::Expiry;
use super::shed::{self, ShedBy};
use crate::config::{Node, Problems, Read, Shape, TimeScale, Value, read_text};
use crate::keyword;
use crate::record;
use crate::service::refusal::Refusing;
use crate::time::Span;

/// The most requests that wait, whatever the plan says: it bounds the memory, to about 1 GB.
pub const MAX_QUEUED: u32 = 10_000_000;
/// How long an `adaptive_lifo` queue is not empty before the last comes first, where nothing is said.
const ADAPTIVE_AFTER: Span = Span::from_millis(100);

keyword! {
    /// Who is served next.
    pub enum Order {
        /// Whoever came first.
        fifo => Fifo,
        /// Whoever came last.
        lifo => Lifo,
        /// Whoever came first, until the queue has not been empty for `adaptive_after`; from then on whoever came last, until it is empty
        /// (Maurer, Fail at Scale, ACM Queue 13(8), 2015).
        adaptive_lifo => AdaptiveLifo,
        /// Whoever has the highest priority; of those, whoever came first.
        priority => Priority,
        /// First attempts before retries; of either, whoever came first.
        fresh_first => FreshFirst,
    }
}

/// How many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So many.
    Limited(u32),
    /// As many as come, up to [`MAX_QUEUED`].
    Unlimited,
}

impl Bound {
    /// As a number.
    pub const fn get(self) -> u32 {
        match self {
            Self::Limited(bound) => bound,
            Self::Unlimited => MAX_QUEUED,
        }
    }
}

impl Read for Bound {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match (text, text.parse::<u32>()) {
            ("unlimited", _) => Ok(Self::Unlimited),
            (_, Ok(bound)) if bound <= MAX_QUEUED => Ok(Self::Limited(bound)),
            _ => Err(format!("expected a number of requests from 0 to {MAX_QUEUED}, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 0, max: MAX_QUEUED.into() },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

record! {
    /// A queue before the servers.
    pub struct QueueSettings {
        /// How many requests may wait, or `unlimited`; more are refused at once.
        bound: Bound = Bound::Limited(1000),
        /// Who is served next.
        order: Order = Order::Fifo,
        /// For `adaptive_lifo`: how long the queue must not have been empty.
        adaptive_after: Span = ADAPTIVE_AFTER,
        /// Whoever has waited for so long is served no more.
        expire_after: Option<Expiry>,
        /// Drops whoever is taken out while the waits stay above a target. It sees those who are taken out, so it is for `fifo`.
        codel: Option<Codel>,
        /// Who is thrown out of a full queue, the newcomer included: by these words, one after the other. The newcomer where nothing is said.
        shed: Option<Vec<ShedBy>>;
        with
        /// What is told to whom the queue does not serve.
        refusing: Refusing,
    } => QueueSettings::check
}

impl QueueSettings {
    fn check(&self) -> Result<(), String> {
        if self.adaptive_after != ADAPTIVE_AFTER && self.order != Order::AdaptiveLifo {
            return Err("`adaptive_after` is for `order: adaptive_lifo`: leave it out, or change the order".to_string());
        }
        if self.shed.is_some() && self.bound == Bound::Limited(0) {
            return Err("`shed` needs somebody who waits: raise `bound`, or leave it out".to_string());
        }
        self.shed.as_deref().map_or(Ok(()), shed::check)
    }
}

/// A queue: how many may wait, or all of its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConfig(pub QueueSettings);

impl QueueConfig {
    /// How many may wait.
    pub const fn bound(&self) -> u32 {
        self.0.bound.get()
    }

    /// First in, first out, with a bound.
    pub const fn of(bound: Bound) -> Self {
        Self(QueueSettings {
            bound,
            order: Order::Fifo,
            adaptive_after: ADAPTIVE_AFTER,
            expire_after: None,
            codel: None,
            shed: None,
            refusing: Refusing::plain(),
        })
    }
}

impl Read for QueueConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Map(_) => QueueSettings::read(node, problems).map(Self),
            _ => Bound::read(node, problems).map(Self::of),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Bound::shape(), QueueSettings::shape()])
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}
