//! Requests above a rate are refused.

use crate::record;
use crate::time::{Rate, Span};

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
