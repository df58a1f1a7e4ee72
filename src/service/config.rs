//! What a plan says of the built-in target.

use crate::config::{Node, Problems, Read, Shape, Value, read_text};
use crate::time::{Rate, Span};
use crate::{choice, record};

/// How many requests are served at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// So many.
    Limited(u32),
    /// As many as come.
    Unlimited,
}

impl Read for Servers {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match (text, text.parse::<u32>()) {
            ("unlimited", _) => Ok(Self::Unlimited),
            (_, Ok(n)) if n > 0 => Ok(Self::Limited(n)),
            _ => Err(format!("expected a number of servers from 1, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 1, max: u64::from(u32::MAX) },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }
}

record! {
    /// Uniform between two times.
    pub struct Uniform {
        /// The least.
        from: Span,
        /// The greatest.
        to: Span,
    } => |u: &Uniform| if u.from <= u.to { Ok(()) } else { Err("`from` must not be longer than `to`".to_string()) }
}

record! {
    /// Exponential around a mean.
    pub struct ExponentialTime {
        /// The mean.
        mean: Span,
    }
}

record! {
    /// Lognormal through two percentiles.
    pub struct Lognormal {
        /// The median.
        p50: Span,
        /// The 99th percentile.
        p99: Span,
    } => |l: &Lognormal| if !l.p50.is_zero() && l.p50 <= l.p99 { Ok(()) } else { Err("`p50` must be above zero and not longer than `p99`".to_string()) }
}

choice! {
    /// A distribution of service times with a name.
    pub enum NamedTime {
        /// Uniform between two times.
        uniform => Uniform(Uniform),
        /// Exponential around a mean.
        exponential => Exponential(ExponentialTime),
        /// Lognormal through two percentiles.
        lognormal => Lognormal(Lognormal),
    }
}

/// How long one request is served: `10ms`, `{ p50: 40ms, p99: 180ms }`, or a named distribution.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceTime {
    /// Always the same.
    Constant(Span),
    /// Uniform.
    Uniform(Uniform),
    /// Exponential.
    Exponential(ExponentialTime),
    /// Lognormal.
    Lognormal(Lognormal),
}

impl Read for ServiceTime {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Text(_) => Span::read(node, problems).map(Self::Constant),
            Value::Map(_) if node.get("p50").is_some() || node.get("p99").is_some() => {
                Lognormal::read(node, problems).map(Self::Lognormal)
            }
            _ => NamedTime::read(node, problems).map(|named| match named {
                NamedTime::Uniform(u) => Self::Uniform(u),
                NamedTime::Exponential(e) => Self::Exponential(e),
                NamedTime::Lognormal(l) => Self::Lognormal(l),
            }),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Span::shape(), Lognormal::shape(), NamedTime::shape()])
    }
}

record! {
    /// A token bucket.
    pub struct TokenBucket {
        /// Tokens per second.
        rate: Rate,
        /// How many tokens it holds.
        burst: u32 = 1,
        /// Whether rejected requests take a token too (and drive the bucket into debt, down to one burst).
        count_rejected: bool = false,
        /// The status of a rejection.
        reject: u16 = 429,
        /// The Retry-After of a rejection, in whole seconds.
        retry_after: Option<Span>,
    } => |t: &TokenBucket| crate::fault::status::check_status(t.reject)
}

record! {
    /// A sliding log: at most so many requests within any window.
    pub struct SlidingLog {
        /// How many requests.
        limit: u32,
        /// The window.
        window: Span = Span::from_secs(1),
        /// Whether rejected requests count too: then a storm keeps itself locked out.
        count_rejected: bool = false,
        /// The status of a rejection.
        reject: u16 = 429,
        /// The Retry-After of a rejection, in whole seconds.
        retry_after: Option<Span>,
    } => |t: &SlidingLog| crate::fault::status::check_status(t.reject)
}

choice! {
    /// Refuses requests above a rate, before they queue.
    pub enum LimiterConfig {
        /// A token bucket.
        token_bucket => TokenBucket(TokenBucket),
        /// A sliding log.
        sliding_log => SlidingLog(SlidingLog),
    }
}

record! {
    /// The built-in target: servers, a queue before them, a limiter before that.
    pub struct ServiceConfig {
        /// How many requests are served at once; or `unlimited`.
        servers: Servers,
        /// How long each is served.
        service_time: ServiceTime,
        /// How many requests may wait (first in, first out); more are refused with 503 at once.
        queue: u32 = 1000,
        /// Refuses requests above a rate, before they queue.
        limiter: Option<LimiterConfig>,
        /// Whether the work for a client that has gone is given up. Where not, it is done, and wasted.
        notices_cancel: bool = false,
    }
}
