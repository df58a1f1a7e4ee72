//! Whether what is executed was executed before, by its idempotency key.
//!
//! It sees the last million keys at least, and never more than two: two generations of up to 2²⁰ keys each, of which the older one is forgotten
//! when the younger one is full. A key in neither counts as executed for the first time, so with more operations than that between two
//! executions of a key a count of duplicates is too low, never too high (but for two keys with one hash, see [`KeyHash`]).

use super::key::KeyHash;
use super::names::Names;

/// How many keys a generation holds.
const GENERATION: usize = 1 << 20;

/// The keys that were executed.
#[derive(Clone, Debug)]
pub struct Executions {
    young: Names<()>,
    old: Names<()>,
    generation: usize,
}

impl Default for Executions {
    fn default() -> Self {
        Self::with_generations_of(GENERATION)
    }
}

impl Executions {
    fn with_generations_of(generation: usize) -> Self {
        Self { young: Names::default(), old: Names::default(), generation }
    }

    /// A key is executed; whether it was before.
    pub fn executed(&mut self, key: KeyHash) -> bool {
        let is_new = self.young.insert(key.get(), ()).is_none();
        let is_duplicate = !is_new || self.old.contains(key.get());
        if is_new && self.young.len() >= self.generation {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        is_duplicate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_beyond_the_first_are_told_within_the_last_keys() {
        let mut executions = Executions::with_generations_of(4);
        let mut executed = |key: u128| executions.executed(KeyHash::new(key));
        let table = [(1, false), (2, false), (1, true), (1, true), (3, false), (4, false), (1, true), (2, true), (5, false)];
        for (step, (key, wanted)) in table.into_iter().enumerate() {
            assert_eq!(executed(key), wanted, "step {step}");
        }
        assert!(!executed(6), "the fourth of its generation: that of 1 to 4 is forgotten");
        assert!(executed(1) && executed(5), "they were in the younger one");
        assert!(!executed(3) && !executed(4), "these were not");
    }

    #[test]
    fn the_last_million_is_told_apart_and_memory_is_bounded() {
        let mut executions = Executions::default();
        let n = GENERATION as u128;
        let last = 2 * n + n / 8;
        assert!((1..=last).all(|key| !executions.executed(KeyHash::new(key))));
        assert!(executions.young.len() + executions.old.len() <= 2 * GENERATION);
        assert!((last - n..=last).rev().step_by(1009).all(|key| executions.executed(KeyHash::new(key))));
        assert!(!executions.executed(KeyHash::new(1)));
    }
}
