//! Deduplication by idempotency key: what waits or is served under a key, and which keys were done not long ago.
//!
//! A second request with a key that is taken in does no work: the caller lets it wait for the first one's answer. One whose key is done gets that
//! answer at once. Only a success (2xx) makes a key done: after anything else (a refusal, an expiry, a failure of what is called, work that
//! is given up) nothing was achieved that a repetition could harm, so the key is free, and a retry is executed.

use super::job::Slot;
use super::key::KeyHash;
use super::names::Names;
use crate::record;
use crate::time::{Span, Timestamp};
use std::collections::VecDeque;

/// The most finished keys that are remembered, whatever the plan says: it bounds the memory, to about 1 GB.
pub const MAX_KEPT: u32 = 10_000_000;

record! {
    /// Deduplication by idempotency key.
    pub struct Deduplication {
        /// How long a key is remembered whose work was done.
        ttl: Span = Span::from_secs(300),
        /// How many of those at most; beyond that the oldest is forgotten early.
        keep: u32 = 1_000_000,
    } => |d: &Deduplication| {
        if d.keep > MAX_KEPT {
            return Err(format!("`keep` must be {MAX_KEPT} or less: it bounds the memory"));
        }
        Ok(())
    }
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: it is to be executed.
    New,
    /// It waits, or is served, in this slot.
    Waiting(Slot),
    /// It was done.
    Done {
        /// What it was answered.
        status: u16,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    TakenIn(Slot),
    Done { at: Timestamp, status: u16 },
}

/// The keys that a service knows. Every call costs O(1) but for the keys that [`Duplicates::find`] and [`Duplicates::done`] forget, each once. Moments must not run
/// backwards.
#[derive(Clone, Debug)]
pub struct Duplicates {
    ttl: Span,
    keep: usize,
    keys: Names<Entry>,
    /// Those that were done, in the order in which they were.
    done: VecDeque<(Timestamp, KeyHash)>,
    forgotten: u64,
}

impl Duplicates {
    /// Knows nothing.
    pub fn new(config: &Deduplication) -> Self {
        let keep = config.keep as usize;
        Self { ttl: config.ttl, keep, keys: Names::default(), done: VecDeque::new(), forgotten: 0 }
    }

    /// What is known of a key.
    pub fn find(&mut self, now: Timestamp, key: KeyHash) -> Found {
        self.forget(now);
        match self.keys.get(key.get()) {
            None => Found::New,
            Some(Entry::TakenIn(slot)) => Found::Waiting(*slot),
            Some(Entry::Done { status, .. }) => Found::Done { status: *status },
        }
    }

    /// A request with a new key was taken in: it waits, or is served.
    pub fn took_in(&mut self, key: KeyHash, slot: Slot) {
        self.keys.insert(key.get(), Entry::TakenIn(slot));
    }

    /// The work of a key was ended with this status. A success is remembered; after anything else the key is free.
    pub fn done(&mut self, now: Timestamp, key: KeyHash, status: u16) {
        if !(200..300).contains(&status) {
            return self.dropped(key);
        }
        if matches!(self.keys.get(key.get()), Some(Entry::Done { .. })) {
            return;
        }
        self.keys.insert(key.get(), Entry::Done { at: now, status });
        self.done.push_back((now, key));
        self.forget(now);
        while self.done.len() > self.keep {
            self.forgotten += 1;
            self.forget_first();
        }
    }

    /// What was taken in under a key was not done: it expired, was refused, shed or given up. The key is free.
    pub fn dropped(&mut self, key: KeyHash) {
        if matches!(self.keys.get(key.get()), Some(Entry::TakenIn(_))) {
            self.keys.remove(key.get());
        }
    }

    /// Finished keys that were forgotten early, because there were more than are kept.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Forgets whatever was done a `ttl` ago.
    fn forget(&mut self, now: Timestamp) {
        while self.done.front().is_some_and(|(at, _)| *at + self.ttl <= now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((when, key)) = self.done.pop_front() else { return };
        // A key that was taken in again since is somebody else's.
        if matches!(self.keys.get(key.get()), Some(Entry::Done { at, .. }) if *at == when) {
            self.keys.remove(key.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};
    use std::collections::BTreeMap;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(seconds)
    }

    fn duplicates(ttl: u64, keep: u32) -> Duplicates {
        Duplicates::new(&Deduplication { ttl: Span::from_secs(ttl), keep })
    }

    #[test]
    fn a_key_waits_is_done_and_is_forgotten() {
        let (mut known, key, slot) = (duplicates(10, 9), KeyHash::new(7), Slot(3));
        assert_eq!(known.find(at(0), key), Found::New);
        known.took_in(key, slot);
        assert_eq!(known.find(at(1000), key), Found::Waiting(slot), "however long that takes");
        known.done(at(1000), key, 200);
        known.dropped(key);
        for (second, wanted) in [(1000, Found::Done { status: 200 }), (1009, Found::Done { status: 200 }), (1010, Found::New)] {
            assert_eq!(known.find(at(second), key), wanted, "at {second} s");
        }
        assert!(known.is_empty() && known.forgotten() == 0);
    }

    #[test]
    fn what_was_not_done_leaves_its_key_free() {
        for (status, is_remembered) in [(200, true), (204, true), (0, false), (302, false), (429, false), (503, false)] {
            let (mut known, key) = (duplicates(10, 9), KeyHash::new(7));
            known.took_in(key, Slot(0));
            known.done(at(1), key, status);
            let wanted = if is_remembered { Found::Done { status } } else { Found::New };
            assert_eq!(known.find(at(2), key), wanted, "{status}");
        }
        let (mut known, key) = (duplicates(10, 9), KeyHash::new(7));
        known.took_in(key, Slot(0));
        known.dropped(key);
        assert_eq!(known.find(at(0), key), Found::New);
    }

    /// Random calls against a map of which everything is asked of every entry.
    #[test]
    fn it_agrees_with_the_definition_and_stays_within_its_bound() {
        const KEEP: usize = 20;
        let (mut known, mut model) = (duplicates(50, KEEP as u32), BTreeMap::<u128, (Found, u64)>::new());
        let (mut now, mut early) = (0, 0);
        for step in 0..6000u64 {
            let mut draws = Key { seed: 5, operation: step, ..Key::default() }.stream(Purpose::Arrival);
            now += draws.bits() % 2;
            let number = u128::from(draws.bits() % 40);
            let (key, slot) = (KeyHash::new(number), Slot(step as u32));
            let is_live = |(found, since): &(Found, u64)| matches!(found, Found::Waiting(_)) || since + 50 > now;
            model.retain(|_, entry| is_live(entry));
            let found = model.get(&number).map_or(Found::New, |(found, _)| *found);
            assert_eq!(known.find(at(now), key), found, "step {step}");
            match (found, draws.bits() % 4) {
                (Found::New, _) => {
                    known.took_in(key, slot);
                    model.insert(number, (Found::Waiting(slot), step));
                }
                (Found::Waiting(_), 0) => {
                    known.dropped(key);
                    model.remove(&number);
                }
                (Found::Waiting(_), 1) => {
                    known.done(at(now), key, 503);
                    model.remove(&number);
                }
                (Found::Waiting(_), _) => {
                    known.done(at(now), key, 201);
                    model.insert(number, (Found::Done { status: 201 }, now));
                    let mut done: Vec<(u64, u128)> = Vec::new();
                    done.extend(
                        model.iter().filter(|(_, (found, _))| *found == Found::Done { status: 201 }).map(|(k, (_, t))| (*t, *k)),
                    );
                    assert!(known.done.len() <= KEEP && done.len() <= KEEP + 1);
                    if done.len() > KEEP {
                        early += 1;
                        let first = known_first(&done, &known);
                        model.remove(&first);
                    }
                }
                (Found::Done { .. }, _) => {}
            }
            assert_eq!(known.len(), model.len(), "step {step}");
        }
        assert!(early > 0 && known.forgotten() == early);
    }

    /// Which of those that were done first was forgotten: of one moment there may be several.
    fn known_first(done: &[(u64, u128)], known: &Duplicates) -> u128 {
        let first = done.iter().min().expect("more than are kept").0;
        let gone = |key: &u128| known.keys.get(KeyHash::new(*key).get()).is_none();
        done.iter().filter(|(at, _)| *at == first).map(|(_, key)| *key).find(gone).expect("one of the oldest is gone")
    }
}
