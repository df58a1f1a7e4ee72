//! Retries that wait until their budget has earned them.
//!
//! First come first served, in one line where the fleet shares a budget and in one a client where each has its own. A line
//! is asked when an attempt of its own earned something, and all of them now and then: other shards earn too, and a
//! window forgets.

use super::{Devices, Held, NONE, Output, Place, Reason, wake_at};
use crate::fleet::rules::LOOK_EVERY;
use crate::policy::budget::Tier;
use crate::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// What is parked.
#[derive(Debug, Default)]
pub(super) struct Parking {
    /// By client, or all under one; operations by slot and generation: those that left are skipped.
    lines: BTreeMap<u32, VecDeque<(u32, u32)>>,
    /// Whether the next look is asked for.
    is_watched: bool,
}

impl Parking {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl Devices {
    /// The wait before a retry is over that the budget has not earned.
    pub(super) fn owed(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let entry = *self.held.get(slot);
        let line = self.line_of(entry.client);
        // Those that wait longer go first.
        if !self.parked.lines.contains_key(&line) && self.unpark(slot, now) {
            return self.make_ready(slot, Some(entry.since), now, out);
        }
        let generation = self.held.put(slot, Place::Parked, entry.since);
        self.parked.lines.entry(line).or_default().push_back((slot, generation));
        if let Some((at, _)) = self.rules.gives_up(self.held.get(slot)) {
            wake_at(at.max(now), Reason::Operation { slot, generation }, out);
        }
        self.watch_parked(now, out);
    }

    /// A first attempt of a client has earned something.
    pub(super) fn earned(&mut self, client: u32, now: Timestamp, out: &mut Output) {
        self.advance_line(self.line_of(client), now, out);
    }

    /// Asks for all that are parked.
    pub(super) fn look_at_parked(&mut self, now: Timestamp, out: &mut Output) {
        self.parked.is_watched = false;
        let lines: Vec<u32> = self.parked.lines.keys().copied().collect();
        lines.into_iter().for_each(|line| self.advance_line(line, now, out));
        if !self.parked.is_empty() {
            self.watch_parked(now, out);
        }
    }

    fn watch_parked(&mut self, now: Timestamp, out: &mut Output) {
        if !std::mem::replace(&mut self.parked.is_watched, true) {
            wake_at(self.rules.on_grid(now + LOOK_EVERY), Reason::Parked, out);
        }
    }

    /// Lets go of as many of a line as the budget pays for.
    fn advance_line(&mut self, line: u32, now: Timestamp, out: &mut Output) {
        while let Some(&(slot, generation)) = self.parked.lines.get(&line).and_then(VecDeque::front) {
            let is_here = self.held.is_current(slot, generation);
            if is_here && !self.unpark(slot, now) {
                return;
            }
            self.leave_line(line);
            if is_here {
                // It waited for the budget, so there is no moment that the engine could be behind.
                self.held.get_mut(slot).held = Held::AtOnce;
                self.make_ready(slot, None, now, out);
            }
        }
    }

    fn leave_line(&mut self, line: u32) {
        if let Some(waiting) = self.parked.lines.get_mut(&line) {
            waiting.pop_front();
            if waiting.is_empty() {
                self.parked.lines.remove(&line);
            }
        }
    }

    fn unpark(&mut self, slot: u32, now: Timestamp) -> bool {
        let entry = self.held.get_mut(slot);
        entry.operation.unpark(now, &self.rules.terms(entry.client, entry.number))
    }

    fn line_of(&self, client: u32) -> u32 {
        if self.rules.budget_tier() == Some(Tier::Client) { client } else { NONE }
    }
}
