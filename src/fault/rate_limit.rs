//! Requests above a rate are refused.

use super::answer::check_status;
use super::{Answer, Effect};
use crate::pace::Pacer;
use crate::policy::hint::{HintForm, Said};
use crate::record;
use crate::time::{Rate, Span};

record! {
    /// Requests above a rate are refused, with 429 where nothing else is said (a token bucket).
    pub struct RateLimit {
        /// Requests per second that pass.
        rate: Rate,
        /// How many may pass at once after a quiet time.
        burst: u32 = 1,
        /// The status of a refusal.
        status: u16 = 429,
        /// How long a refusal asks its client to wait.
        retry_after: Option<Span>,
        /// In which form it says so; `Retry-After` in seconds where nothing is said.
        hint: Option<HintForm>,
    } => |limit: &RateLimit| check_status(limit.status).and_then(|()| Said::check(limit.retry_after, limit.hint))
}

impl RateLimit {
    /// A request either got a token, or is refused.
    pub(super) fn effect(&self, token: bool) -> Effect {
        if token {
            return Effect::Pass;
        }
        Effect::Answer(Answer::bare(self.status, Said::new(self.retry_after, self.hint)))
    }

    /// The bucket of this limit, full.
    pub(super) fn bucket(&self) -> Pacer {
        Pacer::new(self.rate, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn limit(rate: f64, burst: u32) -> RateLimit {
        RateLimit { rate: Rate::per_second(rate).unwrap(), burst, status: 429, retry_after: Some(Span::from_secs(3)), hint: None }
    }

    #[test]
    fn it_refuses_with_its_status_and_a_hint() {
        let hint = Said::new(Some(Span::from_secs(3)), None);
        assert_eq!(limit(1.0, 1).effect(false), Effect::Answer(Answer::bare(429, hint)));
        let other = RateLimit { status: 503, ..limit(1.0, 1) };
        assert_eq!(other.effect(false), Effect::Answer(Answer::bare(503, hint)));
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
