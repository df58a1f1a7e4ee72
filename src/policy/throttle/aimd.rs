//! AIMD concurrency: how many attempts may be on the wire at once grows by a little while answers are quick, and falls by a factor when
//! one is slow or does not come.
//!
//! Each quick answer adds `increase` over the limit, so a whole round of them adds `increase`. A slow answer or an overload (no
//! answer; 429, 502, 503, 504) multiplies it by `decrease`, once per round: attempts that were sent before the last cut cut no further, as
//! in TCP. A limit below one makes pauses: at a quarter, one attempt is on the wire for a quarter of the time, which slows a client that has a single
//! connection. Source: Chiu and Jain's additive increase, multiplicative decrease; Netflix's concurrency-limits has it over latency.

use super::{Admission, is_overload};
use crate::event::AttemptOutcome;
use crate::record;
use crate::time::{Share, Span, Timestamp};

record! {
    /// Bounds each client's attempts at one time: more while answers are quick, less when they are slow or fail.
    pub struct AimdConfig {
        /// An answer that took longer than this is slow.
        slow_after: Span,
        /// What a round of quick answers adds.
        increase: f64 = 0.1,
        /// What a slow answer or an overload leaves of the limit.
        decrease: Share = half(),
        /// The limit never falls below this; under 1 it makes pauses between attempts.
        min: f64 = 0.1,
        /// The limit never rises above this.
        max: f64 = 1.0,
        /// The limit at first; `max` where nothing is said.
        start: Option<f64>,
    } => AimdConfig::check
}

fn half() -> Share {
    Share::new(0.5).expect("it lies within 0 and 1")
}

/// The largest limit: a client has as many connections.
const MAX: f64 = 256.0;

impl AimdConfig {
    fn check(&self) -> Result<(), String> {
        if self.slow_after.is_zero() {
            return Err("`slow_after` must be longer than nothing: every answer would be slow".into());
        }
        if !(1.0..=MAX).contains(&self.max) {
            return Err(format!("`max` is {}: expected 1 to {MAX}", self.max));
        }
        if !(0.001..=self.max).contains(&self.min) {
            return Err(format!("`min` is {}: expected 0.001 to `max`, which is {}", self.min, self.max));
        }
        if let Some(start) = self.start.filter(|start| !(self.min..=self.max).contains(start)) {
            return Err(format!("`start` is {start}: expected {} to {}, as `min` and `max` say", self.min, self.max));
        }
        if !(0.0001..=MAX).contains(&self.increase) {
            return Err(format!("`increase` is {}: expected 0.0001 to {MAX}", self.increase));
        }
        if !(0.01..=0.99).contains(&self.decrease.get()) {
            return Err(format!("`decrease` is {}: expected 1% to 99%, what is left of the limit", self.decrease));
        }
        Ok(())
    }
}

/// The limit, and what moves it.
#[derive(Clone, Debug)]
pub struct Aimd {
    slow_after: Span,
    increase: f64,
    decrease: f64,
    min: f64,
    max: f64,
    limit: f64,
    /// When it was last cut.
    cut: Timestamp,
    /// Below one, nothing is sent before this.
    pause: Timestamp,
}

impl Aimd {
    /// A limit that nothing has moved.
    pub fn new(config: &AimdConfig) -> Self {
        Self {
            slow_after: config.slow_after,
            increase: config.increase,
            decrease: config.decrease.get(),
            min: config.min,
            max: config.max,
            limit: config.start.unwrap_or(config.max),
            cut: Timestamp::ZERO,
            pause: Timestamp::ZERO,
        }
    }

    /// The limit.
    pub const fn limit(&self) -> f64 {
        self.limit
    }

    /// How many attempts may be on the wire at once: the limit's whole part, one at least.
    pub fn concurrency(&self) -> u32 {
        self.limit.max(1.0) as u32
    }

    /// Whether the pause that a limit below one makes is over. Keeping to [`Aimd::concurrency`] is the caller's affair.
    pub fn admit(&self, now: Timestamp) -> Admission {
        if now < self.pause { Admission::WaitUntil(self.pause) } else { Admission::Now }
    }

    /// An attempt ended at `now`, `took` after it was sent.
    pub fn ended(&mut self, now: Timestamp, outcome: AttemptOutcome, took: Span) {
        if took > self.slow_after || is_overload(outcome) {
            if now - took >= self.cut {
                self.limit = (self.limit * self.decrease).max(self.min);
                self.cut = now;
            }
        } else {
            self.limit = (self.limit + self.increase / self.limit.max(1.0)).min(self.max);
        }
        if self.limit < 1.0 {
            self.pause = now + took.scale(1.0 / self.limit - 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> AimdConfig {
        let slow_after = Span::from_millis(500);
        AimdConfig { slow_after, increase: 1.0, decrease: half(), min: 0.25, max: 100.0, start: Some(10.0) }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn it_grows_by_one_a_round_and_is_halved_once_a_round() {
        use AttemptOutcome::{Status, Success, Timeout};
        let mut a = Aimd::new(&config());
        assert_eq!((a.limit(), a.concurrency()), (10.0, 10));
        (0..10).for_each(|_| a.ended(at(100), Success, Span::from_millis(100)));
        assert!((10.9..11.0).contains(&a.limit()), "{}", a.limit());
        for (now, outcome, took, what) in [
            (1_000, Success, 501, "slow"),
            (1_100, Success, 501, "sent before the cut"),
            (1_200, Timeout, 300, "sent before the cut"),
        ] {
            a.ended(at(now), outcome, Span::from_millis(took));
            assert!((5.4..5.5).contains(&a.limit()), "{what}: {}", a.limit());
        }
        assert_eq!(a.concurrency(), 5);
        a.ended(at(1_600), Status(503), Span::from_millis(10));
        assert!((2.7..2.75).contains(&a.limit()));
        a.ended(at(1_700), Status(404), Span::from_millis(10));
        assert!(a.limit() > 2.75, "another error is no overload");
        (0..100_000).for_each(|_| a.ended(at(2_000), Success, Span::from_millis(1)));
        assert_eq!(a.limit(), 100.0);
    }

    #[test]
    fn below_one_it_pauses() {
        let mut a = Aimd::new(&AimdConfig { start: None, max: 1.0, increase: 0.05, ..config() });
        assert_eq!(a.admit(at(0)), Admission::Now);
        a.ended(at(1_000), AttemptOutcome::Success, Span::from_millis(1_000));
        assert_eq!((a.limit(), a.concurrency()), (0.5, 1));
        assert_eq!((a.admit(at(1_999)), a.admit(at(2_000))), (Admission::WaitUntil(at(2_000)), Admission::Now));
        a.ended(at(3_000), AttemptOutcome::Success, Span::from_millis(1_000));
        a.ended(at(9_000), AttemptOutcome::Success, Span::from_millis(1_000));
        assert_eq!(a.limit(), 0.25, "its minimum");
        assert_eq!(a.admit(at(9_001)), Admission::WaitUntil(at(12_000)), "on the wire for a quarter of the time");
        (0..16).for_each(|_| a.ended(at(20_000), AttemptOutcome::Success, Span::from_millis(10)));
        assert_eq!((a.limit(), a.admit(at(30_000))), (1.0, Admission::Now));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (config, want) in [
            (AimdConfig { slow_after: Span::ZERO, ..config() }, "`slow_after`"),
            (AimdConfig { max: 0.5, ..config() }, "`max`"),
            (AimdConfig { min: 0.0, ..config() }, "`min`"),
            (AimdConfig { start: Some(101.0), ..config() }, "`start`"),
            (AimdConfig { increase: -1.0, ..config() }, "`increase`"),
            (AimdConfig { decrease: Share::ALL, ..config() }, "`decrease`"),
        ] {
            let message = config.check().unwrap_err();
            assert!(message.contains(want), "{message}");
        }
    }
}
