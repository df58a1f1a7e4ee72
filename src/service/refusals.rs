//! What refusals cost: they are cheap, not free. An idle server is taken for as long as a refusal costs; where none is idle, the cost is
//! owed, and the next request that enters service waits for it to be paid. So a storm of refusals eats the capacity that was to
//! be saved by them.

use crate::time::Span;

/// The most that is owed, in refusals: beyond it they are dropped before they cost anything, as by a full backlog of connections.
const MOST_OWED: u64 = 1000;

/// What refusals cost and owe.
#[derive(Clone, Debug)]
pub struct Refusals {
    cost: Span,
    owed: Span,
}

impl Refusals {
    /// Refusals that cost so much each, of one server's time.
    pub const fn new(cost: Span) -> Self {
        Self { cost, owed: Span::ZERO }
    }

    /// Somebody was refused. Nothing is owed for what costs nothing.
    pub fn refused(&mut self) {
        self.owed = (self.owed + self.cost).min(self.cost.times(MOST_OWED));
    }

    /// What is owed; it is paid with that.
    pub fn pay(&mut self) -> Span {
        std::mem::take(&mut self.owed)
    }

    /// Whether anything is owed.
    pub const fn is_owing(&self) -> bool {
        !self.owed.is_zero()
    }
}
