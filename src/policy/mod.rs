//! Whether and when to retry: the parts of a policy, each a file. A policy is data; its state lives in the
//! operation (attempt number, previous wait), the client or the fleet (budget).

pub mod backoff;
pub mod budget;
pub mod classify;
pub mod hint;

use crate::config::{At, Node, Problems, Read, Shape, read_text};
use crate::record;
use crate::time::Span;

pub use backoff::Backoff;
pub use budget::BudgetConfig;
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

impl Policy {
    fn check(&self) -> Result<(), String> {
        if self.timeout.is_zero() {
            return Err("`timeout` must be longer than nothing".into());
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
