//! A line: jobs in the order in which they joined it, each linked to its neighbours through its slot.

use crate::service::job::{Jobs, NO_SLOT, Slot};

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
    pub fn is_empty(&self) -> bool {
        self.first == NO_SLOT
    }

    /// Puts a job at the end.
    pub fn append(&mut self, jobs: &mut Jobs, slot: Slot) {
        let last = std::mem::replace(&mut self.last, slot);
        let job = jobs.at_mut(slot);
        (job.before, job.after) = (last, NO_SLOT);
        if last == NO_SLOT {
            self.first = slot;
        } else {
            jobs.at_mut(last).after = slot;
        }
    }

    /// Takes out a job that is in this line, wherever it stands.
    pub fn remove(&mut self, jobs: &mut Jobs, slot: Slot) {
        let job = jobs.at_mut(slot);
        let before = std::mem::replace(&mut job.before, NO_SLOT);
        let after = std::mem::replace(&mut job.after, NO_SLOT);
        if before == NO_SLOT {
            self.first = after;
        } else {
            jobs.at_mut(before).after = after;
        }
        if after == NO_SLOT {
            self.last = before;
        } else {
            jobs.at_mut(after).before = before;
        }
    }
}
