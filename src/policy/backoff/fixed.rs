//! The same wait before every retry.

use super::{Jitter, WaitInput};
use crate::record;
use crate::time::Span;

record! {
    /// The same wait before every retry.
    pub struct Fixed {
        /// How long.
        delay: Span,
        /// Its random part.
        jitter: Jitter = Jitter::none(),
    }
}

impl Fixed {
    /// The wait before the next attempt.
    pub fn wait(&self, _input: WaitInput) -> Span {
        self.delay
    }
}
