//! One direction vanishes, and nobody is told.

use super::{Direction, Taken};
use crate::record;
use crate::time::Timestamp;

record! {
    /// One direction of a connection vanishes, its end included, and nobody is told: neither side sees a close, and the other direction goes
    /// on. A connection that has lost bytes so does not get better when the fault ends; one that has lost none does.
    pub struct HalfOpen {
        /// Which way.
        stream: Direction = Direction::Downstream,
    }
}

#[derive(Debug, Default)]
pub(super) struct Stage {
    pub(super) swallowed: bool,
}

impl Stage {
    pub(super) fn take(&mut self) -> Taken {
        self.swallowed = true;
        Taken::Vanish
    }

    pub(super) fn end(&mut self) -> Option<Timestamp> {
        self.swallowed = true;
        None
    }
}
