//! The ceiling on attempts per second, as a shard of a fleet keeps it.
//!
//! A pacer gives moments and takes none back. If every client reserved its own, operations that meet their
//! deadline while they wait would waste theirs, and under a deadline shorter than the line nothing would pass at all. So
//! clients stand in one line, and the shard holds one reservation at a time, for whoever is first when it comes due.

use crate::pace::Pacer;
use crate::time::{Span, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// How far a reservation may lie back and still count from its own moment: less and the timer's grain would lower the
/// ceiling, more and a stalled generator would break it in one burst.
const CATCH_UP: Span = Span::from_millis(10);

/// The line before the ceiling.
#[derive(Debug)]
pub(super) struct Ceiling {
    pacer: Arc<Pacer>,
    line: VecDeque<u32>,
    reserved: Option<Timestamp>,
    holds: u64,
}

/// What the ceiling says to a client that wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Send now.
    Now,
    /// Stand in line; whoever is first may send at this moment, for which a wake-up is needed.
    WaitUntil(Timestamp),
    /// Stand in line; the wake-up is already asked for.
    Wait,
}

impl Ceiling {
    pub(super) fn new(pacer: Arc<Pacer>) -> Self {
        Self { pacer, line: VecDeque::new(), reserved: None, holds: 0 }
    }

    /// How often a send was held back.
    pub(super) const fn holds(&self) -> u64 {
        self.holds
    }

    /// A client that is not in line wants to send; unless it may now, it stands in line.
    pub(super) fn admit(&mut self, client: u32, now: Timestamp) -> Admission {
        let admission = match self.reserved {
            Some(_) => Admission::Wait,
            None => match self.pacer.reserve(now) {
                at if at <= now => return Admission::Now,
                at => Admission::WaitUntil(at),
            },
        };
        if let Admission::WaitUntil(at) = admission {
            self.reserved = Some(at);
        }
        self.line.push_back(client);
        self.holds += 1;
        admission
    }

    /// The next client in line, if the reservation has come due. The caller tells by [`Ceiling::used`] or
    /// by asking for another client what became of it.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<u32> {
        if self.reserved? > now {
            return None;
        }
        let first = self.line.pop_front();
        if first.is_none() {
            self.reserved = None;
        }
        first
    }

    /// The reservation was used. Where others wait, the moment of the next one.
    pub(super) fn used(&mut self, now: Timestamp) -> Option<Timestamp> {
        let at = self.reserved.take()?;
        if !self.line.is_empty() {
            self.reserved = Some(self.pacer.reserve(at.max(now - CATCH_UP)));
        }
        self.reserved
    }
}
