//! A client's outbox: what stands ready in it and goes next, how it makes room, and what keeps it shut.
//!
//! Without priorities it is a list, first come first served. With them, or where a full outbox throws something out, the
//! order is kept by [`Ranks`](crate::fleet::ranks::Ranks). What leaves unsent, because a newer operation made it pointless or because the outbox
//! is full, leaves from wherever it waits, in backoff too; what is on the wire is never touched.

use super::{Devices, wake_at};
use crate::event::{AttemptOutcome, OperationOutcome};
use crate::fleet::interface::{Output, Reason};
use crate::fleet::ranks::Waiter;
use crate::fleet::restraint::Leave;
use crate::fleet::slab::{NONE, Place};
use crate::fleet::{FleetConfig, WhenFull};
use crate::time::Timestamp;

impl Devices {
    /// Makes room for a client's new operation, as far as the plan lets it. Whether there is some.
    pub(super) fn make_room(&mut self, client: u32, number: u64, now: Timestamp, out: &mut Output) -> bool {
        if let Some(ranks) = &self.ranks {
            let kind = self.rules.kind(client, number);
            if let Some(older) = ranks.before(client, kind).filter(|&older| self.held.get(older).place != Place::Wire) {
                self.leave(older, OperationOutcome::Superseded, now, out);
            }
            if self.client(client).held >= self.rules.outbox
                && self.rules.when_full == WhenFull::Evict
                && let Some(least) = self.ranks.as_ref().and_then(|ranks| ranks.least(client, kind.priority))
            {
                let never_sent = self.held.get(least).operation.attempts() == 0;
                let outcome = if never_sent { OperationOutcome::Refused } else { OperationOutcome::Failed };
                self.leave(least, outcome, now, out);
            }
        }
        self.client(client).held < self.rules.outbox
    }

    /// An operation was taken in.
    pub(super) fn taken_in(&mut self, slot: u32) {
        if self.ranks.is_some() {
            let of = self.waiter(slot);
            self.ranks.iter_mut().for_each(|ranks| ranks.comes(of));
        }
    }

    /// An operation may be sent: it takes its place in its client's outbox.
    pub(super) fn stand_ready(&mut self, slot: u32) {
        match self.ranks {
            Some(_) => {
                let of = self.waiter(slot);
                self.ranks.iter_mut().for_each(|ranks| ranks.is_ready(of));
            }
            None => {
                let client = self.held.get(slot).client;
                self.held.push_ready(&mut self.clients[client as usize].outbox, slot);
            }
        }
    }

    /// An operation leaves its place in its client's outbox.
    pub(super) fn stand_back(&mut self, slot: u32) {
        match self.ranks {
            Some(_) => {
                let of = self.waiter(slot);
                self.ranks.iter_mut().for_each(|ranks| ranks.is_not_ready(of));
            }
            None => {
                let client = self.held.get(slot).client;
                self.held.take_ready(&mut self.clients[client as usize].outbox, slot);
            }
        }
    }

    /// What goes next from a client's outbox, or [`NONE`].
    pub(super) fn first_ready(&self, client: u32) -> u32 {
        match &self.ranks {
            Some(ranks) => ranks.first(client).unwrap_or(NONE),
            None => self.clients[client as usize].outbox.first,
        }
    }

    /// Whether nothing keeps a client from sending that has something to send; else its wake-up is asked for.
    pub(super) fn may_send(&mut self, client: u32, now: Timestamp, out: &mut Output) -> bool {
        match self.restraint.as_mut().map_or(Leave::Now, |restraint| restraint.leave(client, now)) {
            Leave::Now => true,
            Leave::At(at) => {
                wake_at(self.rules.on_grid(at), Reason::Restraint(client), out);
                false
            }
            Leave::Later => false,
        }
    }

    /// An operation goes on the wire.
    pub(super) fn goes(&mut self, slot: u32) {
        if self.ranks.is_some() {
            let of = self.waiter(slot);
            self.ranks.iter_mut().for_each(|ranks| ranks.waits_no_more(of));
        }
    }

    /// A client hears how an attempt of its own ended. What it gave up itself says nothing.
    pub(super) fn heard(&mut self, client: u32, at: Timestamp, outcome: AttemptOutcome) {
        if let Some(restraint) = self.restraint.as_mut().filter(|_| outcome != AttemptOutcome::Cancelled) {
            restraint.ended(client, at, self.rules.is_outage(outcome));
        }
    }

    /// An operation is back from the wire, or was refused a try, and would wait: whether it may, since nothing newer has made it pointless.
    pub(super) fn comes_back(&mut self, slot: u32) -> bool {
        if self.ranks.is_none() {
            return true;
        }
        let of = self.waiter(slot);
        self.ranks.as_mut().is_none_or(|ranks| ranks.comes_back(of))
    }

    /// An operation has ended.
    pub(super) fn strike_out(&mut self, slot: u32) {
        if self.ranks.is_some() {
            let of = self.waiter(slot);
            self.ranks.iter_mut().for_each(|ranks| ranks.ended(of));
        }
    }

    /// An operation that waits, wherever it does, leaves.
    pub(super) fn leave(&mut self, slot: u32, outcome: OperationOutcome, now: Timestamp, out: &mut Output) {
        if self.held.get(slot).place == Place::Ready {
            self.stand_back(slot);
        }
        self.finish(slot, now, outcome, out);
    }

    fn waiter(&self, slot: u32) -> Waiter {
        let entry = self.held.get(slot);
        Waiter { client: entry.client, number: entry.number, slot, kind: self.rules.kind(entry.client, entry.number) }
    }
}

/// Whether the outboxes of a fleet are more than lists.
pub(super) fn is_ranked(config: &FleetConfig) -> bool {
    !config.operations.is_empty() || config.when_full == WhenFull::Evict
}
