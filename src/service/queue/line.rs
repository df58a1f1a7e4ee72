//! A line: jobs in the order in which they joined it, each linked to its neighbours through its slot.

use crate::service::job::{Jobs, NO_SLOT, Place, Slot};

/// The ends of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who joined first of those that are there.
    pub first: Slot,
    /// Who joined last.
    pub last: Slot,
}

impl Line {
    /// Nobody.
    pub const EMPTY: Self = Self { first: NO_SLOT, last: NO_SLOT };

    /// Whether nobody is there.
    pub fn is_empty(self) -> bool {
        self.first == NO_SLOT
    }

    /// Puts a job at the end of this line, which has that number.
    pub fn append(&mut self, jobs: &mut Jobs, slot: Slot, number: u8) {
        let job = jobs.at_mut(slot);
        job.place = Place::Queued { line: number };
        job.before = self.last;
        if self.is_empty() {
            self.first = slot;
        } else {
            jobs.at_mut(self.last).after = slot;
        }
        self.last = slot;
    }

    /// Takes out a job that is in this line, wherever it stands. Whoever stands at an end has nobody beyond it, whatever its link says: so
    /// taking one out at an end touches no other job.
    pub fn remove(&mut self, jobs: &mut Jobs, slot: Slot) {
        let (before, after) = (jobs.at(slot).before, jobs.at(slot).after);
        match (slot == self.first, slot == self.last) {
            (true, true) => *self = Self::EMPTY,
            (true, false) => self.first = after,
            (false, true) => self.last = before,
            (false, false) => {
                jobs.at_mut(before).after = after;
                jobs.at_mut(after).before = before;
            }
        }
    }
}
