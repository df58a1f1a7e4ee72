//! The wake-ups that a shard's machines asked for, by time.

use crate::fleet::Token;
use crate::time::Timestamp;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A wake-up.
#[derive(Clone, Copy)]
pub struct Wakeup {
    /// When.
    pub at: Timestamp,
    /// Whose: the fleet's number.
    pub fleet: u16,
    /// What for.
    pub token: Token,
    sequence: u64,
}

/// A heap of them. Those of one moment come in the order in which they were asked for.
#[derive(Default)]
pub struct Wakeups {
    heap: BinaryHeap<Reverse<Wakeup>>,
    sequence: u64,
}

impl Wakeups {
    /// Adds one.
    pub fn push(&mut self, at: Timestamp, fleet: u16, token: Token) {
        self.sequence += 1;
        self.heap.push(Reverse(Wakeup { at, fleet, token, sequence: self.sequence }));
    }

    /// When the next one is due.
    pub fn next_at(&self) -> Timestamp {
        self.heap.peek().map_or(Timestamp::NEVER, |next| next.0.at)
    }

    /// Takes the next one if it is due.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<Wakeup> {
        if self.next_at() > now {
            return None;
        }
        self.heap.pop().map(|next| next.0)
    }
}

impl Ord for Wakeup {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Wakeup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Wakeup {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Wakeup {}
