//! An operation that a fleet of workers holds.

use crate::fleet::slab::{Held, Slab};
use crate::operation::Operation;
use crate::time::Timestamp;

/// Nobody works on it.
pub(super) const NOBODY: u32 = u32::MAX;

/// No lane in particular: its destination's.
pub(super) const NO_LANE: u16 = u16::MAX;

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the queue, to be dispatched.
    Ready,
    /// Waiting for its retry, with its worker or without.
    Backoff,
    /// Waiting for a retry that the budget has not earned.
    Owing,
    /// That wait is over, and the budget has not earned it yet.
    Parked,
    /// With its worker, who waits for the ceiling or a throttle.
    Line,
    /// On its worker's wire.
    Wire,
}

/// An operation with all that the fleet knows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The retry loop's part.
    pub(super) operation: Operation,
    /// Its number at its destination.
    pub(super) number: u64,
    /// On the wire: when it was sent. Else: when the policy wants it sent.
    pub(super) since: Timestamp,
    /// When it became ready, against others.
    pub(super) turn: u64,
    /// Who works on it, or [`NOBODY`].
    pub(super) worker: u32,
    /// Whose budget its retries are paid from, where each worker has one: who made the first attempt of its pass.
    pub(super) account: u32,
    /// Where it goes.
    pub(super) destination: u16,
    /// The lane that it stands in, or was dispatched from.
    pub(super) lane: u16,
    /// The lane that its policy sends its next retry to, or [`NO_LANE`].
    pub(super) sent_to: u16,
    /// Where it is.
    pub(super) place: Place,
    /// What held it back since it became ready.
    pub(super) held: Held,
}

impl Slab<Job> {
    /// Moves an operation to another place; tokens for the old one become stale. Returns the new generation.
    pub(super) fn put(&mut self, slot: u32, place: Place, since: Timestamp) -> u32 {
        let job = self.get_mut(slot);
        (job.place, job.since) = (place, since);
        self.turn(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_small() {
        // Beside it the slab keeps two pairs of links and a generation: 20 bytes.
        assert!(size_of::<Job>() + 20 <= 100, "{}", size_of::<Job>());
    }
}
