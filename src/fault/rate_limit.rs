//! Requests above a rate are refused.

use super::Effect;
use crate::record;
use crate::time::{Rate, Span, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

record! {
    /// Requests above a rate are answered with 429 (a token bucket).
    pub struct RateLimit {
        /// Requests per second that pass.
        rate: Rate,
        /// How many may pass at once after a quiet time.
        burst: u32 = 1,
        /// The Retry-After of a refusal, in whole seconds.
        retry_after: Option<Span>,
    }
}

impl RateLimit {
    /// A request either got a token, or is refused.
    pub(super) fn effect(&self, token: bool) -> Effect {
        if token {
            return Effect::Pass;
        }
        Effect::Answer { status: 429, retry_after: self.retry_after, body: String::new() }
    }

    /// The bucket of this limit, full.
    pub(super) fn bucket(&self) -> Bucket {
        Bucket::new(self.rate, self.burst)
    }
}

/// A token bucket that shards share without a lock. Kept as the moment from which the bucket would be full again
/// (the generic cell rate algorithm), which is one number and so one atomic.
#[derive(Debug)]
pub(super) struct Bucket {
    interval: u64,
    tolerance: u64,
    full_at: AtomicU64,
}

impl Bucket {
    fn new(rate: Rate, burst: u32) -> Self {
        let interval = rate.interval().0;
        let tolerance = interval.saturating_mul(u64::from(burst.max(1) - 1));
        Self { interval, tolerance, full_at: AtomicU64::new(0) }
    }

    /// Takes a token, if there is one. At a rate of zero there never is.
    pub(super) fn take(&self, now: Timestamp) -> bool {
        let next = |full_at: u64| {
            let from = full_at.max(now.0);
            let allowed = from - now.0 <= self.tolerance && self.interval != u64::MAX;
            allowed.then(|| from.saturating_add(self.interval))
        };
        self.full_at.try_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rate: f64, burst: u32) -> RateLimit {
        RateLimit { rate: Rate::per_second(rate).unwrap(), burst, retry_after: Some(Span::from_secs(3)) }
    }

    #[test]
    fn it_refuses_with_429_and_a_hint() {
        let refusal = Effect::Answer { status: 429, retry_after: Some(Span::from_secs(3)), body: String::new() };
        assert_eq!(limit(1.0, 1).effect(false), refusal);
        assert_eq!(limit(1.0, 1).effect(true), Effect::Pass);
    }

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate() {
        let bucket = limit(100.0, 5).bucket();
        let at = |ms| Timestamp::ZERO + Span::from_millis(ms);
        assert_eq!((0..20).filter(|_| bucket.take(at(0))).count(), 5);
        let passed = (1..=1_000).filter(|&ms| bucket.take(at(ms))).count();
        assert_eq!(passed, 100);
        assert_eq!((0..20).filter(|_| bucket.take(at(60_000))).count(), 5, "a quiet time fills it to its burst, not above");
    }

    #[test]
    fn a_rate_of_zero_lets_nothing_pass() {
        let bucket = limit(0.0, 10).bucket();
        assert!((0..20).all(|s| !bucket.take(Timestamp::ZERO + Span::from_secs(s))));
    }
}
