//! A request's place among those that pass at once, or its wait for one, which ends when this is dropped: however a request ends,
//! the next one is let in.

use super::control::Control;
use crate::fault::Rule;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

/// Who waits for a place, on any thread. As many at most as all queues together hold.
#[derive(Default)]
pub(super) struct Waiting(Mutex<BTreeMap<u64, Waker>>);

impl Waiting {
    fn put(&self, ticket: u64, waker: &Waker) {
        self.0.lock().expect("nobody panics while holding it").insert(ticket, waker.clone());
    }

    fn take(&self, ticket: u64) -> Option<Waker> {
        self.0.lock().expect("nobody panics while holding it").remove(&ticket)
    }
}

/// A place, or the wait for one.
pub(super) struct Place {
    rule: Arc<Rule>,
    ticket: u64,
    control: Arc<Control>,
    /// Whether its task can be called.
    waits: bool,
}

impl Place {
    /// For a ticket that the rule has let in, or has in its queue.
    pub(super) fn new(rule: Arc<Rule>, ticket: u64, control: Arc<Control>) -> Self {
        Self { rule, ticket, control, waits: false }
    }

    /// Whether it is inside; the task is called once it is.
    pub(super) fn poll_inside(&mut self, cx: &Context<'_>) -> bool {
        // Left here first and asked then, so that nobody is let in between the two unheard.
        self.control.waiting.put(self.ticket, cx.waker());
        self.waits = !self.rule.has_place(self.ticket);
        if !self.waits {
            self.control.waiting.take(self.ticket);
        }
        !self.waits
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.waits {
            self.control.waiting.take(self.ticket);
        }
        if let Some(next) = self.rule.leave(self.ticket)
            && let Some(waker) = self.control.waiting.take(next)
        {
            waker.wake();
        }
    }
}
