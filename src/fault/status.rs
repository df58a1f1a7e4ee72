//! Requests are answered with a status.

use crate::record;
use crate::time::{Share, Span};

record! {
    /// Requests are answered with a status before the upstream sees them.
    pub struct Status {
        /// The status.
        code: u16,
        /// The Retry-After of the answer, in whole seconds.
        retry_after: Option<Span>,
        /// The body of the answer.
        body: String = String::new(),
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    } => |s: &Status| check_status(s.code)
}

/// A final status that a proxy may answer with.
pub(crate) fn check_status(code: u16) -> Result<(), String> {
    if (200..=599).contains(&code) { Ok(()) } else { Err(format!("{code} is not a status of an answer: expected 200 to 599")) }
}
