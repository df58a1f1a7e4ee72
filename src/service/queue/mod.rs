//! A bounded queue, first in, first out.

pub mod codel;
pub mod config;
pub mod expiry;
pub mod line;
pub mod lines;
pub mod shed;

pub use config::{Bound, Order, QueueConfig};

use crate::time::Span;
use std::collections::BTreeMap;

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The caller's name for it; none once its client has gone.
    pub id: Option<u64>,
    /// How long it will be served.
    pub work: Span,
}

/// Requests in the order of their arrival. Joining, leaving from anywhere and taking the first cost O(log n),
/// and a request that left takes no memory.
#[derive(Clone, Debug)]
pub struct Queue {
    waiting: BTreeMap<u64, Waiting>,
    bound: usize,
}

impl Queue {
    /// An empty queue for so many requests.
    pub fn new(bound: u32) -> Self {
        Self { waiting: BTreeMap::new(), bound: bound as usize }
    }

    /// Appends a request; false where the queue is full. Tickets must grow.
    pub fn join(&mut self, ticket: u64, request: Waiting) -> bool {
        let room = self.waiting.len() < self.bound;
        if room {
            self.waiting.insert(ticket, request);
        }
        room
    }

    /// Takes the first request out.
    pub fn pop(&mut self) -> Option<(u64, Waiting)> {
        self.waiting.pop_first()
    }

    /// Takes a request out of the middle.
    pub fn leave(&mut self, ticket: u64) {
        self.waiting.remove(&ticket);
    }

    /// Lets a request wait on for a client that has gone.
    pub fn orphan(&mut self, ticket: u64) {
        if let Some(request) = self.waiting.get_mut(&ticket) {
            request.id = None;
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_with_leavers_and_a_bound() {
        let mut queue = Queue::new(3);
        let request = |id| Waiting { id: Some(id), work: Span(1) };
        let joined: Vec<bool> = (0..4).map(|n| queue.join(n, request(10 + n))).collect();
        assert_eq!(joined, [true, true, true, false]);
        queue.leave(1);
        assert!(queue.join(5, request(15)), "who left made room");
        queue.orphan(2);
        let order: Vec<(u64, Option<u64>)> = std::iter::from_fn(|| queue.pop()).map(|(t, w)| (t, w.id)).collect();
        assert_eq!(order, [(0, Some(10)), (2, None), (5, Some(15))]);
        assert!(queue.is_empty());
    }
}
