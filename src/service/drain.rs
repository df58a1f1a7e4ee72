//! A set rate at which the queue is drained, apart from arrivals: so that what came back after an outage meets what lies behind the
//! service at a pace that it stands.

use crate::time::{Rate, Span, Timestamp};

/// When the next request may leave the queue.
#[derive(Clone, Debug)]
pub struct Drain {
    rate: Rate,
    interval: Span,
    next: Timestamp,
}

impl Drain {
    /// The first may leave at once.
    pub fn new(rate: Rate) -> Self {
        Self { rate, interval: rate.interval(), next: Timestamp::ZERO }
    }

    /// How many leave in a second at most.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The time from one to the next.
    pub const fn interval(&self) -> Span {
        self.interval
    }

    /// When the next may leave.
    pub const fn next(&self) -> Timestamp {
        self.next
    }

    /// One leaves.
    pub fn left(&mut self, at: Timestamp) {
        self.next = self.next.max(at) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_late_takes_nothing_from_the_pace_after_it() {
        let mut drain = Drain::new(Rate::parse("10/s").unwrap());
        let at = |millis| Timestamp::ZERO + Span::from_millis(millis);
        for (left, next) in [(0, 100), (100, 200), (250, 350), (350, 450)] {
            assert!(drain.next() <= at(left));
            drain.left(at(left));
            assert_eq!(drain.next(), at(next));
        }
    }
}
