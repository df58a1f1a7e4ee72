//! Whether and when to retry: the parts of a policy, each a file. A policy is data; its state lives in the
//! operation (attempt number, previous wait, what its retries cost), the client or the fleet (budget, breaker, throttle).
//!
//! The parts act in this order, which decides outcomes: the outcome is classified, the server's hint is read, the shape gives a
//! wait, jitter and clamp shape it, the hint raises it, limits and then the budget may refuse it; when the moment has come, the
//! breaker and the throttle may; what is sent may be hedged. The retry loop (`operation`) asks a [`Policy`] only what
//! [`Policy::retries`] and [`Policy::wait`] answer, so that a part can be added, or made to depend on the class of
//! outcome, without touching the loop.

pub mod audit;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod classify;
pub mod guards;
pub mod hedge;
pub mod hint;
pub mod throttle;
pub mod treatment;

use crate::config::{At, Node, Problems, Read, Shape, TimeScale, read_text};
use crate::event::AttemptOutcome;
use crate::record;
use crate::rng::{Key, Purpose};
use crate::time::Span;

pub use backoff::{Backoff, WaitInput};
pub use breaker::{Breaker, BreakerConfig};
pub use budget::{Budget, BudgetConfig};
pub use classify::RetryOn;
pub use guards::Guards;
pub use hedge::HedgeConfig;
pub use hint::{Asked, Hint, RetryAfter};
pub use throttle::{Throttle, ThrottleConfig};
pub use treatment::{Treatment, Treatments};

record! {
    /// How a client tries, waits and gives up.
    pub struct Policy {
        /// How many attempts one pass may take, the first included; or `unlimited`: as many as `deadline`, `max_elapsed` and the run allow.
        attempts: Attempts,
        /// How long one attempt may take, connecting included.
        timeout: Span,
        /// How long the whole operation may take, from its intended start: a success after it does not count.
        deadline: Option<Span>,
        /// No retry starts later than this after the first attempt was sent.
        max_elapsed: Option<Span>,
        /// What is retried: `connect`, `reset`, `timeout`, `malformed`, `unexpected`, `refused` (by the client's own breaker or throttle), a status (`429`) or a class (`5xx`).
        retry_on: Vec<RetryOn> = classify::default_classes(),
        /// The wait before a retry.
        backoff: Backoff = Backoff::none(),
        /// What differs after one class of outcomes, such as `429: { backoff: { fixed: { delay: 5s } } }`. A class that stands here is retried unless it says `retry: false`.
        on: Treatments = Treatments::default(),
        /// What a server's hint is worth: `ignore` (default) or `honor`.
        retry_after: RetryAfter = RetryAfter::ignore(),
        /// A cap on retries in proportion to first attempts.
        budget: Option<At<BudgetConfig>>,
        /// Refuses attempts for a while after too many have failed.
        breaker: Option<At<BreakerConfig>>,
        /// Slows or refuses attempts by what came of the last ones.
        throttle: Option<At<ThrottleConfig>>,
        /// Further attempts beside one that is not answered yet.
        hedge: Option<At<HedgeConfig>>,
    } => Policy::check
}

/// An attempt that failed, as the wait after it depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// How.
    pub outcome: AttemptOutcome,
    /// The number of the attempt within its pass, from 1.
    pub failed_attempt: u32,
    /// The backoff before it; none where it was the first.
    pub previous: Option<Span>,
    /// What the server asked for.
    pub hint: Hint,
}

/// A wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The backoff's part, which the next decorrelated wait grows from: a hint must not feed the jitter.
    pub backoff: Span,
    /// All of it.
    pub total: Span,
}

/// Why there is no wait: no retry follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWait {
    /// The schedule of waits is used up.
    Used,
    /// The server asked for no retry.
    Stopped,
}

impl Policy {
    /// A policy that says nothing else: default classes, no backoff, no hints, no budget.
    pub fn new(attempts: Attempts, timeout: Span) -> Self {
        Self {
            attempts,
            timeout,
            deadline: None,
            max_elapsed: None,
            retry_on: classify::default_classes(),
            backoff: Backoff::none(),
            on: Treatments::default(),
            retry_after: RetryAfter::ignore(),
            budget: None,
            breaker: None,
            throttle: None,
            hedge: None,
        }
    }

    /// Whether an outcome is retried at all, limits aside.
    pub fn retries(&self, outcome: AttemptOutcome) -> bool {
        match self.on.of(outcome) {
            Some(treatment) => treatment.retry,
            None => self.retry_on.iter().any(|class| class.matches(outcome)),
        }
    }

    /// The wait before the retry of a failed attempt. Draws are keyed by that attempt.
    ///
    /// # Errors
    /// No retry follows.
    pub fn wait(&self, failure: Failure, key: Key) -> Result<Wait, NoWait> {
        let draw = |purpose| key.stream(purpose).unit();
        let Failure { outcome, failed_attempt, previous, hint } = failure;
        let treatment = self.on.of(outcome);
        let shape = treatment.and_then(|treatment| treatment.backoff.as_ref()).unwrap_or(&self.backoff);
        let backoff = shape.wait(WaitInput { failed_attempt, previous, draw: draw(Purpose::Backoff) }).ok_or(NoWait::Used)?;
        if hint.is_none() {
            return Ok(Wait { backoff, total: backoff });
        }
        let honor = treatment.and_then(|treatment| treatment.retry_after.as_ref()).unwrap_or(&self.retry_after);
        match honor.wait(backoff, hint, draw(Purpose::HintSpread)) {
            Asked::Wait(total) => Ok(Wait { backoff, total }),
            Asked::Stop => Err(NoWait::Stopped),
        }
    }

    /// How many attempts one client may have on the wire at once: more than one where it hedges, or where its throttle sets
    /// how many.
    pub fn concurrency(&self) -> u32 {
        let hedges = self.hedge.as_ref().map_or(0, |hedge| hedge.value.at_most);
        let throttle = self.throttle.as_ref().map_or(1, |throttle| throttle.value.most_at_once());
        throttle.max(1) + hedges
    }

    fn check(&self) -> Result<(), String> {
        if self.timeout.is_zero() {
            return Err("`timeout` must be longer than nothing".into());
        }
        if self.deadline.is_some_and(Span::is_zero) {
            return Err("`deadline` must be longer than nothing".into());
        }
        Ok(())
    }
}

/// A limit on the attempts of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// At most so many, the first included.
    Limited(u32),
    /// As many as time allows.
    Unlimited,
}

impl Attempts {
    /// Whether another attempt may follow after `made` of them.
    pub fn allow(self, made: u32) -> bool {
        match self {
            Self::Limited(n) => made < n,
            Self::Unlimited => true,
        }
    }
}

impl Read for Attempts {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match (text, text.parse::<u32>()) {
            ("unlimited", _) => Ok(Self::Unlimited),
            (_, Ok(n)) if (1..=1_000_000).contains(&n) => Ok(Self::Limited(n)),
            _ => Err(format!("expected a number of attempts from 1 to 1000000, or `unlimited`, found `{text}`")),
        })
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![
            Shape::Integer { min: 1, max: 1_000_000 },
            Shape::Text { what: "no limit", pattern: "^unlimited$", examples: &["unlimited"] },
        ])
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_without_time_is_refused() {
        let good = Policy::new(Attempts::Limited(4), Span::from_secs(1));
        for (policy, want) in [
            (good.clone(), ""),
            (Policy { attempts: Attempts::Unlimited, ..good.clone() }, ""),
            (Policy { timeout: Span::ZERO, ..good.clone() }, "`timeout`"),
            (Policy { deadline: Some(Span::ZERO), ..good }, "`deadline`"),
        ] {
            let message = policy.check().err().unwrap_or_default();
            assert!(message.contains(want) && message.is_empty() == want.is_empty(), "{message}");
        }
    }

    #[test]
    fn a_class_can_have_a_treatment_of_its_own() {
        let fixed = |secs| Backoff::Fixed(backoff::Fixed::new(Span::from_secs(secs)));
        let of = |retry, backoff| Treatment { retry, backoff, retry_after: None, cost: None, lane: None };
        let on = Treatments::new(vec![
            (RetryOn::Status(429), of(true, Some(fixed(5)))),
            (RetryOn::Status(501), of(false, None)),
            (RetryOn::Unexpected, of(true, None)),
        ]);
        let policy = Policy { on, backoff: fixed(1), ..Policy::new(Attempts::Limited(4), Span::from_secs(1)) };
        for (outcome, want) in [
            (AttemptOutcome::Status(429), Some(5)),
            (AttemptOutcome::Status(503), Some(1)),
            (AttemptOutcome::Status(501), None),
            (AttemptOutcome::Unexpected, Some(1)),
            (AttemptOutcome::Malformed, None),
        ] {
            let failure = Failure { outcome, failed_attempt: 1, previous: None, hint: Hint::NONE };
            let wait = policy.retries(outcome).then(|| policy.wait(failure, Key::default()).unwrap().total.as_secs_up());
            assert_eq!(wait, want, "{outcome:?}");
        }
    }

    #[test]
    fn draws_are_keyed_by_the_attempt() {
        let jitter = backoff::Jitter::Full(backoff::jitter::Plain {});
        let backoff = Backoff::Fixed(backoff::Fixed { jitter, ..backoff::Fixed::new(Span::from_secs(1)) });
        let policy = Policy { backoff, ..Policy::new(Attempts::Limited(4), Span::from_secs(1)) };
        let failure = Failure { outcome: AttemptOutcome::Reset, failed_attempt: 1, previous: None, hint: Hint::NONE };
        let wait = |attempt| policy.wait(failure, Key { attempt, ..Key::default() });
        assert_eq!(wait(1), wait(1));
        assert_ne!(wait(1), wait(2));
    }
}
