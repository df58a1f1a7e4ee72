//! The end of a stream is passed on later.

use super::Direction;
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// The end of a stream (FIN) is passed on later than its bytes.
    pub struct SlowClose {
        /// By so much.
        delay: Span,
        /// Which way.
        stream: Direction = Direction::Both,
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    delay: Span,
}

impl Stage {
    pub(super) const fn new(delay: Span) -> Self {
        Self { delay }
    }

    pub(super) fn end(&self, at: Timestamp) -> Timestamp {
        at + self.delay
    }
}
