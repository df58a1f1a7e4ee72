//! Refuses requests above a rate, before they queue.

pub mod sliding_log;
pub mod token_bucket;

pub use sliding_log::SlidingLog;
pub use token_bucket::TokenBucket;

use crate::choice;
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

/// The state of a limiter. `now` must not run backwards.
#[derive(Clone, Debug)]
pub enum Limiter {
    /// A token bucket.
    TokenBucket(token_bucket::Bucket),
    /// A sliding log.
    SlidingLog(sliding_log::Log),
}

/// What a refused request is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// How long it asks its client to wait.
    pub hint: Option<Said>,
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
