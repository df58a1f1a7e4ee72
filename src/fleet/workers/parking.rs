//! Retries that wait in the queue until a budget has earned them: their message waits, and no worker waits with it.
//!
//! By destination, first come first served. They are asked for whenever a worker is free, before what is ready, because they wait
//! longer; where each worker has a budget of its own, it is that worker's that pays. And now and then: a budget may earn by time.

use super::Workers;
use super::job::Place;
use super::machine::wake_at;
use crate::fleet::interface::{Output, Reason};
use crate::fleet::rules::LOOK_EVERY;
use crate::fleet::slab::Held;
use crate::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// What is parked.
#[derive(Debug, Default)]
pub(super) struct Parking {
    /// By destination; operations by slot and generation: those that left are skipped.
    lines: BTreeMap<u16, VecDeque<(u32, u32)>>,
    /// Whether the next look is asked for.
    is_watched: bool,
}

impl Workers {
    /// The wait before a retry is over that the budget has not earned. Dispatching is left to the caller.
    pub(super) fn owed(&mut self, slot: u32, now: Timestamp, out: &mut Output) {
        let job = *self.held.get(slot);
        let generation = self.held.put(slot, Place::Parked, job.since);
        self.parked.lines.entry(job.destination).or_default().push_back((slot, generation));
        if let Some(at) = self.rules.expires(&job) {
            wake_at(at.max(now), Reason::Operation { slot, generation }, out);
        }
        self.watch_parked(now, out);
    }

    /// Asks for all that are parked.
    pub(super) fn look_at_parked(&mut self, now: Timestamp, out: &mut Output) {
        self.parked.is_watched = false;
        self.dispatch(now, out);
        if !self.parked.lines.is_empty() {
            self.watch_parked(now, out);
        }
    }

    fn watch_parked(&mut self, now: Timestamp, out: &mut Output) {
        if !std::mem::replace(&mut self.parked.is_watched, true) {
            wake_at(self.rules.on_grid(now + LOOK_EVERY), Reason::Parked, out);
        }
    }

    /// Gives those that a budget pays for now to who is free.
    pub(super) fn dispatch_parked(&mut self, now: Timestamp, out: &mut Output) {
        if self.parked.lines.is_empty() {
            return;
        }
        let destinations: Vec<u16> = self.parked.lines.keys().copied().collect();
        for destination in destinations {
            while self.crew.any_free() && self.advance_line(destination, now, out) {}
        }
    }

    /// Lets the first of a line go; whether there may be more.
    fn advance_line(&mut self, destination: u16, now: Timestamp, out: &mut Output) -> bool {
        let Some(&(slot, generation)) = self.parked.lines.get(&destination).and_then(VecDeque::front) else { return false };
        if !self.held.is_current(slot, generation) {
            self.leave_line(destination);
            return true;
        }
        let lane = self.lane_of(destination, self.held.get(slot).sent_to);
        if !self.ready.has_room(lane) || !self.destinations[usize::from(destination)].is_open(now) {
            return false;
        }
        let Some(worker) = self.crew.give(slot) else { return false };
        self.rules.equip(worker);
        let mut job = *self.held.get(slot);
        (job.account, job.lane, job.held) = (worker, lane, Held::AtOnce);
        if !job.operation.unpark(now, &self.rules.terms(&job)) {
            self.crew.release(worker);
            return false;
        }
        *self.held.get_mut(slot) = job;
        self.leave_line(destination);
        self.scheduled();
        self.set_to_work(slot, worker, now, out);
        true
    }

    fn leave_line(&mut self, destination: u16) {
        if let Some(waiting) = self.parked.lines.get_mut(&destination) {
            waiting.pop_front();
            if waiting.is_empty() {
                self.parked.lines.remove(&destination);
            }
        }
    }
}
