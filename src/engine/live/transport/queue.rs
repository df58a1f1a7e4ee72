//! Where the clients' tasks put what ended, and the driver takes it: a queue of one thread.

use crate::event::AttemptOutcome;
use crate::policy::Hint;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// An attempt that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// The fleet's number.
    pub fleet: u16,
    /// The connection's number in its fleet.
    pub connection: u32,
    /// The number that the transport gave the attempt.
    pub serial: u64,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The response's Retry-After.
    pub hint: Hint,
}

/// The queue. Holds at most one entry for every connection and one more for each attempt given up since the last look.
#[derive(Default)]
pub struct Completions {
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: VecDeque<Completion>,
    waker: Option<Waker>,
}

impl Completions {
    /// Adds an entry and wakes the driver.
    pub fn push(&self, completion: Completion) {
        let mut inner = self.inner.borrow_mut();
        inner.entries.push_back(completion);
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    /// The oldest entry.
    pub fn pop(&self) -> Option<Completion> {
        self.inner.borrow_mut().entries.pop_front()
    }

    /// Ready while there is an entry.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner.borrow_mut();
        if !inner.entries.is_empty() {
            return Poll::Ready(());
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
