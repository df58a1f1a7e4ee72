//! The operations that a shard of a fleet holds, in one vector, with the lists that run through them.
//!
//! Two lists are threaded through the entries, so that neither allocates: each client's operations that are ready to be
//! sent, first come first served, and all operations in the order of their offers. Both are doubly linked because
//! an operation can leave from the middle, at its deadline. A generation per entry makes stale tokens harmless.
//!
//! With a million clients nearly every access misses the caches, so what is read together lies together: an entry is one
//! cache line, and generations, which mostly tell that a timeout has become pointless, are dense.

use crate::operation::Operation;
use crate::time::Timestamp;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: the entry is free.
    Free,
    /// In its client's outbox, to be sent when the connection is free.
    Ready,
    /// Waiting for its next attempt.
    Backoff,
    /// Waiting for its next attempt, which the budget has not earned yet.
    Owing,
    /// Waiting until the budget has earned its next attempt.
    Parked,
    /// On its client's wire.
    Wire,
}

/// What of the plan kept an operation from being sent when it became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing.
    No,
    /// Nothing: it follows an answer at once, so there is no moment that it could be behind.
    AtOnce,
    /// The ceiling on attempts, or its client's throttle.
    Ceiling,
    /// Its client was busy.
    Busy,
}

/// A neighbour on either side in a list.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

const UNLINKED: Links = Links { before: NONE, after: NONE };

/// An operation with all that the shard knows of it, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Entry {
    /// The retry loop's part.
    pub(super) operation: Operation,
    /// Its number at its client.
    pub(super) number: u64,
    /// On the wire: when it was sent. Else: when the policy wants it sent.
    pub(super) since: Timestamp,
    /// Its client's place in the shard.
    pub(super) client: u32,
    /// Where it is.
    pub(super) place: Place,
    /// What held it back since it became ready.
    pub(super) held: Held,
}

/// An entry's places in the two lists.
#[derive(Clone, Copy, Debug)]
struct Lists {
    /// In its client's outbox; of a free entry, `after` is the next free one.
    ready: Links,
    /// Among all that are held.
    held: Links,
}

/// The head and tail of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    /// The first entry, or [`NONE`].
    pub(super) first: u32,
    last: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    pub(super) const fn is_empty(self) -> bool {
        self.first == NONE
    }
}

/// The entries: of devices where nothing is said.
#[derive(Debug)]
pub(super) struct Slab<E = Entry> {
    entries: Vec<E>,
    /// By entry.
    generations: Vec<u32>,
    /// By entry.
    lists: Vec<Lists>,
    free: u32,
    held: List,
    len: u64,
}

impl<E: Copy> Slab<E> {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), generations: Vec::new(), lists: Vec::new(), free: NONE, held: List::EMPTY, len: 0 }
    }

    /// How many operations are held.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn get(&self, slot: u32) -> &E {
        &self.entries[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut E {
        &mut self.entries[slot as usize]
    }

    /// Takes in an entry, as the last of all that are held.
    pub(super) fn take_in(&mut self, fresh: E) -> u32 {
        let slot = if self.free == NONE {
            self.entries.push(fresh);
            self.generations.push(0);
            self.lists.push(Lists { ready: UNLINKED, held: UNLINKED });
            u32::try_from(self.entries.len() - 1).expect("ten million clients with an outbox each do not fit into memory first")
        } else {
            let slot = self.free;
            self.free = std::mem::replace(&mut self.lists[slot as usize].ready, UNLINKED).after;
            *self.get_mut(slot) = fresh;
            slot
        };
        let mut held = self.held;
        self.append(&mut held, slot, |lists| &mut lists.held);
        self.held = held;
        self.len += 1;
        slot
    }

    /// Lets go of an entry that is in no ready list.
    pub(super) fn let_go(&mut self, slot: u32) {
        let mut held = self.held;
        self.unlink(&mut held, slot, |lists| &mut lists.held);
        self.held = held;
        self.turn(slot);
        self.lists[slot as usize].ready.after = self.free;
        self.free = slot;
        self.len -= 1;
    }

    /// Whether a token of this generation still means something. Leaving takes a generation of its own, for which there are no tokens.
    pub(super) fn is_current(&self, slot: u32, generation: u32) -> bool {
        self.generations.get(slot as usize) == Some(&generation)
    }

    /// An entry's generation: what its tokens must carry.
    pub(super) fn generation(&self, slot: u32) -> u32 {
        self.generations[slot as usize]
    }

    /// Reads an entry's generation, and gives it.
    pub(super) fn foresee_generation(&self, slot: u32) -> u64 {
        self.generations.get(slot as usize).map_or(0, |generation| u64::from(*generation))
    }

    /// Makes the tokens of an entry stale. Returns the new generation.
    pub(super) fn turn(&mut self, slot: u32) -> u32 {
        let generation = &mut self.generations[slot as usize];
        *generation = generation.wrapping_add(1);
        *generation
    }

    /// Appends to a ready list: of devices, a client's outbox.
    pub(super) fn push_ready(&mut self, outbox: &mut List, slot: u32) {
        self.append(outbox, slot, |lists| &mut lists.ready);
    }

    /// Takes out of a ready list.
    pub(super) fn take_ready(&mut self, outbox: &mut List, slot: u32) {
        self.unlink(outbox, slot, |lists| &mut lists.ready);
    }

    /// The operations that are held, in the order of their offers.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u32, &E)> {
        let step = move |slot: u32| (slot != NONE).then(|| (slot, self.get(slot)));
        std::iter::successors(step(self.held.first), move |(slot, _)| step(self.lists[*slot as usize].held.after))
    }

    fn append(&mut self, list: &mut List, slot: u32, links: fn(&mut Lists) -> &mut Links) {
        *links(&mut self.lists[slot as usize]) = Links { before: list.last, after: NONE };
        match list.last {
            NONE => list.first = slot,
            last => links(&mut self.lists[last as usize]).after = slot,
        }
        list.last = slot;
    }

    fn unlink(&mut self, list: &mut List, slot: u32, links: fn(&mut Lists) -> &mut Links) {
        let Links { before, after } = std::mem::replace(links(&mut self.lists[slot as usize]), UNLINKED);
        match before {
            NONE => list.first = after,
            before => links(&mut self.lists[before as usize]).after = after,
        }
        match after {
            NONE => list.last = before,
            after => links(&mut self.lists[after as usize]).before = before,
        }
    }
}

impl Slab<Entry> {
    /// Takes in an operation, as the last of all that are held.
    pub(super) fn insert(&mut self, client: u32, number: u64, operation: Operation) -> u32 {
        let (since, place) = (operation.intended(), Place::Ready);
        self.take_in(Entry { operation, number, since, client, place, held: Held::No })
    }

    /// Lets go of an operation that is in no client's outbox.
    pub(super) fn remove(&mut self, slot: u32) {
        self.get_mut(slot).place = Place::Free;
        self.let_go(slot);
    }

    /// Moves an operation to another place; tokens for the old one become stale. Returns the new generation.
    pub(super) fn put(&mut self, slot: u32, place: Place, since: Timestamp) -> u32 {
        let entry = self.get_mut(slot);
        entry.place = place;
        entry.since = since;
        self.turn(slot)
    }

    /// Reads an entry and its links, and gives its client.
    pub(super) fn foresee(&self, slot: u32) -> u32 {
        std::hint::black_box(self.lists[slot as usize].ready.before);
        self.get(slot).client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Entry>(), 64);
        assert_eq!(size_of::<Entry>() + size_of::<Lists>() + size_of::<u32>(), 84, "all of it");
    }

    #[test]
    fn places_are_reused_and_old_tokens_die() {
        let mut slab = Slab::new();
        let a = slab.insert(0, 0, Operation::new(Timestamp(1)));
        let generation = slab.put(a, Place::Backoff, Timestamp(5));
        assert!(slab.is_current(a, generation));
        slab.remove(a);
        assert!(!slab.is_current(a, generation));
        let b = slab.insert(0, 1, Operation::new(Timestamp(2)));
        assert_eq!((a, slab.len()), (b, 1));
        assert!(!slab.is_current(b, generation));
    }

    #[test]
    fn lists_keep_their_order_when_one_leaves_from_the_middle() {
        let mut slab = Slab::new();
        let mut outbox = List::EMPTY;
        let slots: Vec<u32> = (0..5).map(|n| slab.insert(0, n, Operation::new(Timestamp(n)))).collect();
        slots.iter().for_each(|&s| slab.push_ready(&mut outbox, s));
        for (leaving, want) in [(2, vec![0, 1, 3, 4]), (0, vec![1, 3, 4]), (4, vec![1, 3])] {
            slab.take_ready(&mut outbox, slots[leaving]);
            slab.remove(slots[leaving]);
            assert_eq!(slab.in_order().map(|(_, e)| e.number).collect::<Vec<_>>(), want);
            assert_eq!(slab.get(outbox.first).number, want[0]);
        }
    }
}
