//! What a plan says of limiters.

use super::{AdaptiveConcurrency, Concurrency, FixedWindow, Per, Shared, SlidingLog, TokenBucket};
use crate::choice;
use crate::config::{Node, Problems, Read, Shape, TimeScale, Value};
use crate::policy::hint::Said;

choice! {
    /// Refuses requests above a limit, before they queue.
    pub enum LimiterConfig {
        /// A token bucket.
        token_bucket => TokenBucket(TokenBucket),
        /// At most so many requests in each window.
        fixed_window => FixedWindow(FixedWindow),
        /// At most so many requests within any window.
        sliding_log => SlidingLog(SlidingLog),
        /// At most so many requests in the service.
        concurrency => Concurrency(Concurrency),
        /// A limit on the requests in the service that follows their latency.
        adaptive_concurrency => AdaptiveConcurrency(AdaptiveConcurrency),
    }
}

/// One limiter, or a list of them: a request has to pass each, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitersConfig(pub Vec<LimiterConfig>);

impl Read for LimitersConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::List(_) => Vec::read(node, problems).map(Self),
            _ => LimiterConfig::read(node, problems).map(|one| Self(vec![one])),
        }
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![LimiterConfig::shape(), Vec::<LimiterConfig>::shape()])
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}

impl LimitersConfig {
    /// The most that pass in a second in the long run, over all clients; none where nothing limits that.
    pub fn rate(&self) -> Option<f64> {
        self.0.iter().filter_map(LimiterConfig::rate).reduce(f64::min)
    }

    /// The most that are in the service at once, over all clients; none where nothing limits that.
    pub fn inside(&self) -> Option<u32> {
        self.0.iter().filter_map(LimiterConfig::inside).min()
    }

    /// What those say that always say the same.
    pub fn hints(&self) -> impl Iterator<Item = Said> {
        self.0.iter().filter_map(LimiterConfig::hint)
    }
}

impl LimiterConfig {
    /// What it shares with all others.
    pub const fn shared(&self) -> &Shared {
        match self {
            Self::TokenBucket(limiter) => &limiter.shared,
            Self::FixedWindow(limiter) => &limiter.shared,
            Self::SlidingLog(limiter) => &limiter.shared,
            Self::Concurrency(limiter) => &limiter.shared,
            Self::AdaptiveConcurrency(limiter) => &limiter.shared,
        }
    }

    /// The most that pass in a second in the long run, over all clients; none where it does not limit that: a limit for each client
    /// or fleet does not, nor does one on what is in the service.
    pub fn rate(&self) -> Option<f64> {
        if self.shared().per != Per::Global {
            return None;
        }
        match self {
            Self::TokenBucket(bucket) => Some(bucket.rate.get()),
            Self::FixedWindow(fixed) => Some(f64::from(fixed.limit) / fixed.window.as_secs_f64()),
            Self::SlidingLog(log) => Some(f64::from(log.limit) / log.window.as_secs_f64()),
            Self::Concurrency(_) | Self::AdaptiveConcurrency(_) => None,
        }
    }

    /// The most that are in the service at once, over all clients; none where it does not limit that.
    pub fn inside(&self) -> Option<u32> {
        match self {
            _ if self.shared().per != Per::Global => None,
            Self::Concurrency(concurrency) => Some(concurrency.limit),
            Self::AdaptiveConcurrency(adaptive) => Some(adaptive.max),
            Self::TokenBucket(_) | Self::FixedWindow(_) | Self::SlidingLog(_) => None,
        }
    }

    /// What a refusal says, where it always says the same.
    pub fn hint(&self) -> Option<Said> {
        self.shared().hint()
    }
}
