//! Whether and when to retry: the parts of a policy, each a file. A policy is data; its state lives in the
//! operation (attempt number, previous wait), the client or the fleet (budget).
//!
//! The parts act in this order, which decides outcomes: the outcome is classified, the shape gives a wait, jitter and
//! clamp shape it, the server's hint raises it, limits and then the budget may refuse it. The retry loop
//! (`operation`) asks a [`Policy`] only what [`Policy::retries`] and [`Policy::wait`] answer, so that a part can be
//! added, or made to depend on the class of outcome, without touching the loop.

pub mod audit;
pub mod backoff;
pub mod budget;
pub mod classify;
pub mod hint;

use crate::config::{At, Node, Problems, Read, Shape, read_text};
use crate::event::AttemptOutcome;
use crate::record;
use crate::rng::{Key, Purpose};
use crate::time::Span;

pub use backoff::{Backoff, WaitInput};
pub use budget::{Budget, BudgetConfig};
pub use classify::RetryOn;
pub use hint::RetryAfter;

record! {
    /// How a client tries, waits and gives up.
    pub struct Policy {
        /// How many attempts one pass may take, the first included; or `unlimited`, which needs a `deadline` or `max_elapsed`.
        attempts: Attempts,
        /// How long one attempt may take, connecting included.
        timeout: Span,
        /// How long the whole operation may take, from its intended start: a success after it does not count.
        deadline: Option<Span>,
        /// No retry starts later than this after the first attempt was sent.
        max_elapsed: Option<Span>,
        /// What is retried: `connect`, `reset`, `timeout`, `malformed`, `unexpected`, a status (`429`) or a class (`5xx`).
        retry_on: Vec<RetryOn> = classify::default_classes(),
        /// The wait before a retry.
        backoff: Backoff = Backoff::none(),
        /// What a server's Retry-After is worth: `ignore` (default) or `honor`.
        retry_after: RetryAfter = RetryAfter::ignore(),
        /// A cap on retries in proportion to first attempts.
        budget: Option<At<BudgetConfig>>,
    } => Policy::check
}

/// An attempt that failed, as the wait after it depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// The number of the attempt within its pass, from 1.
    pub failed_attempt: u32,
    /// The backoff before it; none where it was the first.
    pub previous: Option<Span>,
    /// What the server asked for.
    pub hint: Option<Span>,
}

/// A wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The backoff's part, which the next decorrelated wait grows from: a hint must not feed the jitter.
    pub backoff: Span,
    /// All of it.
    pub total: Span,
}

impl Policy {
    /// Whether an outcome is retried at all, limits aside.
    pub fn retries(&self, outcome: AttemptOutcome) -> bool {
        self.retry_on.iter().any(|class| class.matches(outcome))
    }

    /// The wait before the retry of a failed attempt; none where the backoff has ended, and no retry follows. Draws are
    /// keyed by that attempt.
    pub fn wait(&self, failure: Failure, key: Key) -> Option<Wait> {
        let draw = |purpose| key.stream(purpose).unit();
        let Failure { failed_attempt, previous, hint } = failure;
        let backoff = self.backoff.wait(WaitInput { failed_attempt, previous, draw: draw(Purpose::Backoff) })?;
        let spread = if hint.is_some() { draw(Purpose::HintSpread) } else { 0.0 };
        Some(Wait { backoff, total: self.retry_after.wait(backoff, hint, spread) })
    }

    fn check(&self) -> Result<(), String> {
        if self.timeout.is_zero() {
            return Err("`timeout` must be longer than nothing".into());
        }
        if self.deadline.is_some_and(Span::is_zero) {
            return Err("`deadline` must be longer than nothing".into());
        }
        if self.attempts == Attempts::Unlimited && self.deadline.is_none() && self.max_elapsed.is_none() {
            return Err("`attempts: unlimited` needs a `deadline` or a `max_elapsed`, or it never ends".into());
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_never_ends_or_never_begins_is_refused() {
        let good = Policy {
            attempts: Attempts::Limited(4),
            timeout: Span::from_secs(1),
            deadline: None,
            max_elapsed: None,
            retry_on: classify::default_classes(),
            backoff: Backoff::none(),
            retry_after: RetryAfter::ignore(),
            budget: None,
        };
        let unlimited = Policy { attempts: Attempts::Unlimited, ..good.clone() };
        for (policy, want) in [
            (good.clone(), ""),
            (Policy { max_elapsed: Some(Span::from_secs(9)), ..unlimited.clone() }, ""),
            (unlimited, "never ends"),
            (Policy { timeout: Span::ZERO, ..good.clone() }, "`timeout`"),
            (Policy { deadline: Some(Span::ZERO), ..good }, "`deadline`"),
        ] {
            let message = policy.check().err().unwrap_or_default();
            assert!(message.contains(want) && message.is_empty() == want.is_empty(), "{message}");
        }
    }

    #[test]
    fn draws_are_keyed_by_the_attempt() {
        let jitter = backoff::Jitter::Full(backoff::jitter::Plain {});
        let backoff = Backoff::Fixed(backoff::Fixed { jitter, ..backoff::Fixed::new(Span::from_secs(1)) });
        let policy = Policy {
            attempts: Attempts::Limited(4),
            timeout: Span::from_secs(1),
            deadline: None,
            max_elapsed: None,
            retry_on: Vec::new(),
            backoff,
            retry_after: RetryAfter::ignore(),
            budget: None,
        };
        let failure = Failure { failed_attempt: 1, previous: None, hint: None };
        let wait = |attempt| policy.wait(failure, Key { attempt, ..Key::default() });
        assert_eq!(wait(1), wait(1));
        assert_ne!(wait(1), wait(2));
    }
}
