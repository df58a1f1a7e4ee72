//! What a server's Retry-After is worth to a client.

use crate::time::{Share, Span};
use crate::{choice, record};

record! {
    /// The hint is not read.
    pub struct Ignore {}
}

record! {
    /// The wait is the larger of hint and backoff, plus the spread.
    pub struct Honor {
        /// A longer hint counts as this long.
        cap: Span = Span::from_secs(300),
        /// Adds U(0, spread · hint), so that one hint does not bring everybody back together.
        spread: Option<Share>,
    }
}

choice! {
    /// What a Retry-After is worth.
    pub enum RetryAfter {
        /// It is not read.
        ignore => Ignore(Ignore),
        /// It is waited for.
        honor => Honor(Honor),
    }
}

impl RetryAfter {
    /// The hint is not read.
    pub const fn ignore() -> Self {
        Self::Ignore(Ignore {})
    }
}
/// scaffold
pub fn parse_retry_after(text: &str, _wall_seconds: i64) -> Option<Span> { text.trim().parse().ok().map(Span::from_secs) }
