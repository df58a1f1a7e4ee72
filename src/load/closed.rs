//! Closed load: the next operation starts when the last has ended.

use crate::record;
use crate::time::Span;

record! {
    /// Each client starts its next operation when its last one has ended, after a pause.
    pub struct Closed {
        /// The pause.
        think: Span = Span::ZERO,
    }
}
