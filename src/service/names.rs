//! What is looked up by a number that names it: keys by their hashes, jobs by the requests of calls.
//!
//! The one place with a hash table: it is on the path of every request, and several times as quick as an ordered map. It hashes alike in every
//! process, and nothing here gives its entries in an order, so that none can show in a run (invariant 3).
#![allow(clippy::disallowed_types, reason = "never iterated, so its order cannot show")]

use super::job::Slot;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What has a number for its name; a request's slot where nothing else is said. Every call costs O(1), some joins a move of all entries.
#[derive(Clone, Debug)]
pub struct Names<V = Slot>(HashMap<u64, V, BuildHasherDefault<Mixer>>);

impl<V> Default for Names<V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<V> Names<V> {
    /// Gives a name to something; gives what had it before.
    pub fn insert(&mut self, name: u64, value: V) -> Option<V> {
        self.0.insert(name, value)
    }

    /// Takes what has this name.
    pub fn remove(&mut self, name: u64) -> Option<V> {
        self.0.remove(&name)
    }

    /// What has this name.
    pub fn get(&self, name: u64) -> Option<&V> {
        self.0.get(&name)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, name: u64) -> Option<&mut V> {
        self.0.get_mut(&name)
    }

    /// Whether anything has this name.
    pub fn contains(&self, name: u64) -> bool {
        self.0.contains_key(&name)
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Mixes a number: both halves of its 128-bit product with an odd constant (that of rustc-hash 2), so that every bit of it moves those that choose its
/// place, whichever bits tell the names apart.
#[derive(Clone, Copy, Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(number ^ self.0) * 0xf135_7aea_2e62_a9c5;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_holds_what_an_ordered_map_holds_whichever_bits_tell_the_names_apart() {
        for shift in [0, 7, 32, 48] {
            let (mut names, mut map) = (Names::default(), BTreeMap::new());
            for step in 0..4000u64 {
                let name = (step * step % 911) << shift;
                if step.is_multiple_of(3) {
                    assert_eq!(names.remove(name), map.remove(&name), "step {step}");
                } else {
                    assert_eq!(names.insert(name, step), map.insert(name, step), "step {step}");
                }
                assert_eq!((names.len(), names.get(name)), (map.len(), map.get(&name)), "step {step}");
            }
            names.clear();
            assert!(names.is_empty() && !names.contains(1 << shift));
        }
    }

    #[test]
    fn names_that_differ_in_any_sixteen_bits_spread_over_places() {
        let places = |shift: u32| {
            let place = |n: u64| {
                let mut mixer = Mixer::default();
                mixer.write_u64(n << shift);
                mixer.finish() & 0xffff
            };
            let mut places: Vec<u64> = (0..1 << 16).map(place).collect();
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        // 65536 names drawn at random would take 1 - 1/e of the places: 41427.
        for shift in [0, 8, 16, 24, 32, 40, 48] {
            assert!(places(shift) > 25_000, "shift {shift}: {} places", places(shift));
        }
    }
}
