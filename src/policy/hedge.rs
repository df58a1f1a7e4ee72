//! Hedging: further attempts of an operation that is not answered yet, beside the one on the wire; the first answer wins,
//! and the others are cancelled (gRFC A6).
//!
//! It cuts the tail where few attempts are slow, and doubles the load where all are. So a hedge is a retry in every
//! count: limits on attempts bound it, the budget pays for it, and its load is attempted load.

use crate::record;
use crate::time::Span;

/// The most hedges beside one attempt.
pub const MOST: u32 = 15;

record! {
    /// Further attempts beside the one that is not answered yet.
    pub struct HedgeConfig {
        /// Another attempt goes out each time this has passed without an answer, and at once where one fails.
        after: Span,
        /// How many at most, beside the first.
        at_most: u32 = 1,
    } => |h: &HedgeConfig| match (h.after.is_zero(), h.at_most) {
        (true, _) => Err("`after` must be longer than nothing: it is how long an answer may take before another is asked for".into()),
        (false, 1..=MOST) => Ok(()),
        (false, n) => Err(format!("`at_most` is {n}: expected 1 to {MOST}")),
    }
}
