//! AWS's adaptive mode: once the service has throttled, each attempt waits for a token, and CUBIC sets the rate.
//!
//! After a throttling answer the rate is β times what was sent, and then it grows along a cubic: back to the old rate at first
//! quickly, around it slowly, beyond it quickly again. It is never above twice the measured rate nor below a minimum. The sent
//! rate is measured in steps of half a second and smoothed. Until the first throttling answer nothing waits. After
//! `botocore/retries/adaptive.py`, `throttling.py` and `bucket.py` (1.43), whose figures the test holds.

use super::Admission;
use crate::event::AttemptOutcome;
use crate::policy::breaker::SharedBy;
use crate::policy::classify::RetryOn;
use crate::record;
use crate::time::{Rate, Share, Span, Timestamp};

record! {
    /// From the first throttling answer on, attempts wait for tokens that come at a rate set by CUBIC.
    pub struct AdaptiveConfig {
        /// Which outcomes are throttling.
        throttled_by: Vec<RetryOn> = vec![RetryOn::Status(429)],
        /// What remains of the rate after a throttling answer.
        beta: Share = usual_beta(),
        /// How fast the rate grows again: CUBIC's C.
        scale: f64 = 0.4,
        /// The rate never falls below this.
        min_rate: Rate = usual_min_rate(),
        /// The rate never rises above so many times the measured one.
        at_most: f64 = 2.0,
        /// The weight of the newest half second in the measured rate.
        smoothing: Share = usual_smoothing(),
        /// Who shares it: `client` or `fleet`.
        tier: SharedBy,
    } => AdaptiveConfig::check
}

fn usual_beta() -> Share {
    Share::new(0.7).expect("it lies within 0 and 1")
}

fn usual_smoothing() -> Share {
    Share::new(0.8).expect("it lies within 0 and 1")
}

fn usual_min_rate() -> Rate {
    Rate::per_second(0.5).expect("it is not negative")
}

impl AdaptiveConfig {
    fn check(&self) -> Result<(), String> {
        if self.throttled_by.is_empty() {
            return Err("`throttled_by` is empty: without a throttling answer nothing ever waits; write `[429]`".into());
        }
        if !(0.0001..=1000.0).contains(&self.scale) {
            return Err(format!("`scale` is {}: expected 0.0001 to 1000", self.scale));
        }
        if !(0.001..=1e9).contains(&self.min_rate.get()) {
            return Err(format!("`min_rate` is {}: expected 0.001/s or more, or attempts might wait for ever", self.min_rate));
        }
        if !(1.0..=1000.0).contains(&self.at_most) {
            return Err(format!("`at_most` is {}: expected 1 to 1000", self.at_most));
        }
        Ok(())
    }
}

/// The rate is measured in steps of this many seconds.
const STEP: f64 = 0.5;

/// A token that is there but for the error of a sum is there.
const ALMOST: f64 = 1e-9;

/// The rate limiter of one client.
#[derive(Clone, Debug)]
pub struct Adaptive {
    throttled_by: Vec<RetryOn>,
    at_most: f64,
    is_on: bool,
    cubic: Cubic,
    measured: Measured,
    tokens: Tokens,
}

impl Adaptive {
    /// One that has seen nothing: nothing waits.
    pub fn new(config: &AdaptiveConfig) -> Self {
        Self {
            throttled_by: config.throttled_by.clone(),
            at_most: config.at_most,
            is_on: false,
            cubic: Cubic::new(config.scale, config.beta.get()),
            measured: Measured { smoothing: config.smoothing.get(), rate: 0.0, last: 0.0, count: 0.0 },
            tokens: Tokens::new(config.min_rate.get()),
        }
    }

    /// Takes a token, if it is on.
    pub fn admit(&mut self, now: Timestamp) -> Admission {
        if !self.is_on {
            return Admission::Now;
        }
        match self.tokens.acquire(now.as_secs_f64()) {
            None => Admission::Now,
            // A wait that rounds to nothing would be asked for again and again.
            Some(wait) => Admission::WaitUntil(now + Span::from_secs_f64(wait).max(Span(1))),
        }
    }

    /// An attempt has ended: sets the rate anew.
    pub fn ended(&mut self, now: Timestamp, outcome: AttemptOutcome) {
        let now = now.as_secs_f64();
        let measured = self.measured.record(now);
        let rate = if self.throttled_by.iter().any(|class| class.matches(outcome)) {
            let was = if self.is_on { measured.min(self.tokens.rate) } else { measured };
            self.is_on = true;
            self.cubic.throttled(was, now)
        } else {
            self.cubic.grown(now)
        };
        self.tokens.set_rate(rate.min(self.at_most * measured), now);
    }

    /// Attempts per second that it lets through; infinite until the first throttling answer.
    pub fn rate(&self) -> f64 {
        if self.is_on { self.tokens.rate } else { f64::INFINITY }
    }
}

/// How the rate grows.
#[derive(Clone, Debug)]
struct Cubic {
    scale: f64,
    beta: f64,
    /// The rate at the last throttling answer.
    max: f64,
    /// Seconds after it at which the rate is back there.
    back_after: f64,
    /// When it was.
    last: f64,
}

impl Cubic {
    fn new(scale: f64, beta: f64) -> Self {
        Self { scale, beta, max: 0.0, back_after: 0.0, last: 0.0 }
    }

    fn grown(&self, now: f64) -> f64 {
        let beyond = now - self.last - self.back_after;
        self.scale * beyond * beyond * beyond + self.max
    }

    fn throttled(&mut self, rate: f64, now: f64) -> f64 {
        self.max = rate;
        self.back_after = libm::cbrt(rate * (1.0 - self.beta) / self.scale);
        self.last = now;
        rate * self.beta
    }
}

/// The rate of answers: as many as attempts, a little later.
#[derive(Clone, Debug)]
struct Measured {
    smoothing: f64,
    rate: f64,
    /// The beginning of the step that is being counted.
    last: f64,
    count: f64,
}

impl Measured {
    fn record(&mut self, now: f64) -> f64 {
        let step = (now / STEP).floor() * STEP;
        self.count += 1.0;
        if step > self.last {
            let newest = self.count / (step - self.last);
            self.rate = newest * self.smoothing + self.rate * (1.0 - self.smoothing);
            (self.count, self.last) = (0.0, step);
        }
        self.rate
    }
}

/// Tokens that come at a rate, of which at most a second's worth is kept, and one at least.
#[derive(Clone, Debug)]
struct Tokens {
    min_rate: f64,
    rate: f64,
    most: f64,
    there: f64,
    /// When they were last counted.
    last: f64,
}

impl Tokens {
    fn new(min_rate: f64) -> Self {
        Self { min_rate, rate: min_rate.max(1.0), most: 1.0, there: 0.0, last: 0.0 }
    }

    fn set_rate(&mut self, rate: f64, now: f64) {
        // What came until now came at the old rate.
        self.refill(now);
        self.rate = rate.max(self.min_rate);
        self.most = rate.max(1.0);
        self.there = self.there.min(self.most);
    }

    /// Takes one; or the seconds to wait for it.
    fn acquire(&mut self, now: f64) -> Option<f64> {
        self.refill(now);
        if self.there + ALMOST >= 1.0 {
            self.there = (self.there - 1.0).max(0.0);
            return None;
        }
        Some((1.0 - self.there) / self.rate)
    }

    fn refill(&mut self, now: f64) {
        let since = (now - self.last).max(0.0);
        self.last = now;
        self.there = (self.there + since * self.rate).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive() -> Adaptive {
        Adaptive::new(&AdaptiveConfig {
            throttled_by: vec![RetryOn::Status(429)],
            beta: usual_beta(),
            scale: 0.4,
            min_rate: usual_min_rate(),
            at_most: 2.0,
            smoothing: usual_smoothing(),
            tier: SharedBy::Client,
        })
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    const THROTTLED: AttemptOutcome = AttemptOutcome::Status(429);

    /// An answer every 50 ms, of which six are throttling: the rate and the tokens as botocore 1.43.11 has them.
    #[test]
    fn its_figures_are_botocores() {
        let mut wanted = [
            (40, 13.977599999999999, 1.9625975),
            (42, 6.849023999999999, 3.150693500000002),
            (43, 7.069819503315605, 3.4931447000000007),
            (60, 9.330131505651705, 9.261648397228234),
            (79, 9.783995563962012, 9.783143955712106),
            (80, 6.848796894773408, 6.848796894773408),
            (81, 4.794157826341386, 4.794157826341386),
            (100, 6.662308801175223, 6.623857106845357),
            (119, 6.850925679480066, 6.849570516546462),
            (121, 4.969180227762373, 4.795647975636046),
            (199, 11.25349611062223, 10.963238536546369),
        ]
        .into_iter();
        let mut a = adaptive();
        let mut next = wanted.next();
        for answer in 1..200u64 {
            let throttled = [40, 41, 42, 80, 81, 120].contains(&answer);
            a.ended(at(answer * 50), if throttled { THROTTLED } else { AttemptOutcome::Success });
            if let Some((_, rate, tokens)) = next.filter(|(number, ..)| *number == answer) {
                assert!((a.rate() - rate).abs() < 1e-9 && (a.tokens.there - tokens).abs() < 1e-9, "{answer}: {a:?}");
                next = wanted.next();
            }
        }
        assert!(next.is_none(), "every figure was compared");
    }

    #[test]
    fn nothing_waits_before_the_first_throttling_answer_and_then_each_for_its_token() {
        let mut a = adaptive();
        for answer in 0..100 {
            a.ended(at(answer * 100), AttemptOutcome::Timeout);
            assert_eq!(a.admit(at(answer * 100)), Admission::Now);
        }
        a.ended(at(10_000), THROTTLED);
        assert!((a.rate() - 7.0).abs() < 0.2, "0.7 of ten a second: {}", a.rate());
        let (mut now, mut sent) = (at(10_000), 0);
        while now < at(20_000) {
            match a.admit(now) {
                Admission::Now => sent += 1,
                Admission::WaitUntil(later) => {
                    assert!(later > now && later.since(now) < Span::from_millis(200));
                    now = later;
                }
                Admission::Refused => panic!("it never refuses"),
            }
        }
        assert!((70..=78).contains(&sent), "ten seconds at 7/s, and what was there: {sent}");
    }

    #[test]
    fn the_rate_ends_at_its_minimum() {
        let mut a = adaptive();
        (1..200).for_each(|answer| a.ended(at(answer * 100), THROTTLED));
        assert_eq!(a.rate(), 0.5);
        assert!(matches!(a.admit(at(20_000)), Admission::Now | Admission::WaitUntil(_)));
        let Admission::WaitUntil(later) = a.admit(at(20_000)) else { panic!("one token at most is there") };
        assert!(later <= at(22_000));
    }
}
