//! So many requests at once, a queue before them, and a refusal beyond.
//!
//! A request has its place from when it is let through until its answer has left the proxy, or its connection has ended. Places
//! are given in the order in which requests came.

use super::answer::check_status;
use super::{Answer, Effect};
use crate::policy::hint::{HintForm, Said};
use crate::record;
use crate::time::Span;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

record! {
    /// At most so many requests at once pass to the upstream; some wait for that, and the others are refused.
    pub struct LimitConcurrency {
        /// How many pass at once.
        limit: u32,
        /// How many may wait for a place.
        queue: u32 = 0,
        /// How long one of them waits at most; then it is refused.
        wait: Span = Span::from_secs(1),
        /// The status of a refusal.
        status: u16 = 503,
        /// How long a refusal asks its client to wait.
        retry_after: Option<Span>,
        /// In which form it says so; `Retry-After` in seconds where nothing is said.
        hint: Option<HintForm>,
    } => LimitConcurrency::check
}

/// The most places and the longest queue.
const MOST: u32 = 1_000_000;

impl LimitConcurrency {
    fn check(&self) -> Result<(), String> {
        if self.limit == 0 {
            return Err("`limit` is 0: nothing would pass; use `fault: { status: { code: 503 } }` for that".into());
        }
        if self.limit > MOST || self.queue > MOST {
            let key = if self.limit > MOST { "limit" } else { "queue" };
            return Err(format!("`{key}` is {MOST} at most"));
        }
        if self.queue > 0 && self.wait.is_zero() {
            return Err("`wait` is nothing: nobody would wait; leave `queue` out".into());
        }
        check_status(self.status).and_then(|()| Said::check(self.retry_after, self.hint))
    }

    /// What a request gets that found no place, or waited too long for one.
    pub fn refusal(&self) -> Answer {
        Answer::bare(self.status, Said::new(self.retry_after, self.hint))
    }

    pub(super) fn effect(&self, entered: Entered) -> Effect {
        match entered {
            Entered::Passes => Effect::Enter,
            Entered::Waits => Effect::Wait { at_most: self.wait },
            Entered::Refused => Effect::Answer(self.refusal()),
        }
    }

    /// Its places, empty.
    pub(super) fn places(&self) -> Places {
        Places { limit: self.limit as usize, queue: self.queue as usize, state: Mutex::default() }
    }
}

/// What came of asking for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It has one.
    Passes,
    /// It waits for one.
    Waits,
    /// There is none.
    Refused,
}

/// Who has a place, and who waits for one, by their tickets.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    queue: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    inside: BTreeSet<u64>,
    waiting: VecDeque<u64>,
}

impl Places {
    /// Asks for a place.
    pub(super) fn enter(&self, ticket: u64) -> Entered {
        let mut state = self.state.lock().expect("nobody panics while holding it");
        if state.inside.len() < self.limit {
            state.inside.insert(ticket);
            Entered::Passes
        } else if state.waiting.len() < self.queue {
            state.waiting.push_back(ticket);
            Entered::Waits
        } else {
            Entered::Refused
        }
    }

    /// Whether it has a place.
    pub(super) fn is_inside(&self, ticket: u64) -> bool {
        self.state.lock().expect("nobody panics while holding it").inside.contains(&ticket)
    }

    /// Gives a place back, or the wait for one up. Gives who has a place now and waited for it.
    pub(super) fn leave(&self, ticket: u64) -> Option<u64> {
        let mut state = self.state.lock().expect("nobody panics while holding it");
        if !state.inside.remove(&ticket) {
            state.waiting.retain(|&waiting| waiting != ticket);
            return None;
        }
        let next = state.waiting.pop_front()?;
        state.inside.insert(next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(limit: u32, queue: u32) -> LimitConcurrency {
        let wait = Span::from_secs(1);
        LimitConcurrency { limit, queue, wait, status: 503, retry_after: Some(Span::from_secs(2)), hint: None }
    }

    #[test]
    fn places_are_given_in_order_and_beyond_the_queue_is_refused() {
        let places = limit(2, 2).places();
        let entered: Vec<Entered> = (1..6).map(|ticket| places.enter(ticket)).collect();
        assert_eq!(entered, [Entered::Passes, Entered::Passes, Entered::Waits, Entered::Waits, Entered::Refused]);
        assert_eq!(places.leave(9), None, "who is not there leaves nothing");
        assert_eq!(places.leave(3), None, "who gives up in the queue makes no room inside");
        assert_eq!((places.leave(1), places.is_inside(4)), (Some(4), true));
        assert_eq!((places.leave(2), places.leave(4)), (None, None));
        assert_eq!(places.enter(7), Entered::Passes, "it is empty again");
    }

    #[test]
    fn what_it_does_follows() {
        let of = limit(2, 2);
        assert_eq!(of.effect(Entered::Passes), Effect::Enter);
        assert_eq!(of.effect(Entered::Waits), Effect::Wait { at_most: Span::from_secs(1) });
        let hint = Said::new(Some(Span::from_secs(2)), None);
        assert_eq!(of.effect(Entered::Refused), Effect::Answer(Answer::bare(503, hint)));
    }

    #[test]
    fn a_limit_that_lets_nothing_through_is_refused() {
        assert!(limit(1, 0).check().is_ok());
        assert!(limit(0, 0).check().unwrap_err().contains("nothing would pass"));
        assert!(limit(1, MOST + 1).check().unwrap_err().contains("`queue` is"));
        let hasty = LimitConcurrency { wait: Span::ZERO, ..limit(1, 1) };
        assert!(hasty.check().unwrap_err().contains("leave `queue` out"));
        assert!(LimitConcurrency { status: 101, ..limit(1, 1) }.check().is_err());
    }
}
