//! Everybody at one moment.

use crate::record;
use crate::time::Span;

record! {
    /// Every client offers one operation at one moment.
    pub struct Trigger {
        /// The moment.
        at: Span,
        /// The moment of each client is later by U(0, spread).
        spread: Span = Span::ZERO,
    }
}
