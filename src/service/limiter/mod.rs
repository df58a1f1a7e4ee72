//! Refuses requests above a rate, before they queue.

pub mod sliding_log;
pub mod token_bucket;

pub use sliding_log::SlidingLog;
pub use token_bucket::TokenBucket;

use super::refusal::Refusal;
use crate::choice;
use crate::config::{Node, Problems, Read, Shape, TimeScale, Value};
use crate::policy::hint::Said;
use crate::time::Timestamp;

choice! {
    /// Refuses requests above a rate, before they queue.
    pub enum LimiterConfig {
        /// A token bucket.
        token_bucket => TokenBucket(TokenBucket),
        /// A sliding log.
        sliding_log => SlidingLog(SlidingLog),
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
    /// The most that pass in a second in the long run; none where nothing limits that.
    pub fn rate(&self) -> Option<f64> {
        self.0.iter().filter_map(LimiterConfig::rate).reduce(f64::min)
    }

    /// What those say that always say the same.
    pub fn hints(&self) -> impl Iterator<Item = Said> {
        self.0.iter().filter_map(LimiterConfig::hint)
    }
}

impl LimiterConfig {
    /// The most that pass in a second in the long run; none where it does not limit that.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::TokenBucket(bucket) => Some(bucket.rate.get()),
            Self::SlidingLog(log) => Some(f64::from(log.limit) / log.window.as_secs_f64()),
        }
    }

    /// What a refusal says, where it always says the same.
    pub fn hint(&self) -> Option<Said> {
        match self {
            Self::TokenBucket(bucket) => Said::new(bucket.retry_after, bucket.hint),
            Self::SlidingLog(log) => Said::new(log.retry_after, log.hint),
        }
    }
}

/// The state of a limiter. `now` must not run backwards.
#[derive(Clone, Debug)]
pub enum Limiter {
    /// A token bucket.
    TokenBucket(token_bucket::Bucket),
    /// A sliding log.
    SlidingLog(sliding_log::Log),
}

impl Limiter {
    /// A limiter that has seen nothing.
    pub fn new(config: &LimiterConfig) -> Self {
        match config {
            LimiterConfig::TokenBucket(bucket) => Self::TokenBucket(token_bucket::Bucket::new(bucket)),
            LimiterConfig::SlidingLog(log) => Self::SlidingLog(sliding_log::Log::new(log)),
        }
    }

    /// Whether a request at this moment passes, and what it is told where not.
    ///
    /// # Errors
    /// The refusal.
    pub fn admit(&mut self, now: Timestamp) -> Result<(), Refusal> {
        match self {
            Self::TokenBucket(bucket) => bucket.admit(now),
            Self::SlidingLog(log) => log.admit(now),
        }
    }
}
