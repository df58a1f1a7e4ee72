//! The requests that a service has taken in, and has not ended: one slot for each, reused. What orders them (the queue's lines) is
//! linked through the slots, so that joining, leaving from the middle and taking either end cost the same few steps whatever waits.

use super::request::{Arrival, Metadata};
use crate::rng::Key;
use crate::time::{Span, Timestamp};

/// Names a job by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// No slot.
pub const NO_SLOT: Slot = Slot(u32::MAX);

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It waits, in this line of the queue.
    Queued {
        /// The line.
        line: u8,
    },
    /// It is served.
    InService {
        /// When it will be done, by the clock of the work (see `capacity`).
        done: u64,
        /// When its service began, by the same clock.
        since: u64,
    },
    /// It was served, and what it calls has not answered.
    Calling,
}

/// A request that was taken in.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The caller's name for it; none once its client has gone.
    pub id: Option<u64>,
    /// Which random streams it draws from.
    pub key: Key,
    /// What it says of itself.
    pub of: Metadata,
    /// When it came.
    pub since: Timestamp,
    /// In which order it came: grows.
    pub ticket: u64,
    /// How long it is served, at full capacity and alone.
    pub work: Span,
    /// Where it is.
    pub place: Place,
    /// Its neighbours in its line.
    pub(super) before: Slot,
    pub(super) after: Slot,
}

/// The jobs of a service.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    slots: Vec<Option<Job>>,
    free: Vec<Slot>,
}

impl Jobs {
    /// Takes one in.
    pub fn insert(&mut self, arrival: &Arrival, since: Timestamp, ticket: u64, work: Span) -> Slot {
        let Arrival { id, key, of, .. } = *arrival;
        let place = Place::Queued { line: 0 };
        let job = Job { id: Some(id), key, of, since, ticket, work, place, before: NO_SLOT, after: NO_SLOT };
        if let Some(slot) = self.free.pop() {
            self.slots[slot.0 as usize] = Some(job);
            return slot;
        }
        let slot = Slot(u32::try_from(self.slots.len()).expect("queue and servers are bounded far below that"));
        self.slots.push(Some(job));
        slot
    }

    /// The job of a slot that is in use.
    pub fn at(&self, slot: Slot) -> &Job {
        self.slots[slot.0 as usize].as_ref().expect("whoever holds a slot's name is told when it ends")
    }

    /// The job of a slot, if it is in use.
    pub fn get(&self, slot: Slot) -> Option<&Job> {
        self.slots.get(slot.0 as usize)?.as_ref()
    }

    /// The same of one that is, to be changed.
    pub fn at_mut(&mut self, slot: Slot) -> &mut Job {
        self.slots[slot.0 as usize].as_mut().expect("whoever holds a slot's name is told when it ends")
    }

    /// Takes one out.
    pub fn remove(&mut self, slot: Slot) -> Job {
        let job = self.slots[slot.0 as usize].take().expect("whoever holds a slot's name is told when it ends");
        self.free.push(slot);
        job
    }

    /// The slots of those that are asked for, in the order in which they came.
    pub fn slots(&self, asked: impl Fn(&Job) -> bool) -> Vec<Slot> {
        let all = self.slots.iter().enumerate().filter_map(|(slot, job)| Some((job.as_ref()?, Slot(slot as u32))));
        let mut slots: Vec<(u64, Slot)> = all.filter(|(job, _)| asked(job)).map(|(job, slot)| (job.ticket, slot)).collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
