//! A state for each client or fleet, with a bound: when there is no room, states that are as new are forgotten, and where there is
//! none of them further clients share one.

use super::meter::State;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// The most clients (or fleets) that one limiter tells apart.
pub const MAX_KEYS: usize = 100_000;
/// So many states are looked at for one that can be forgotten: whoever is new pays no more, and in turn all are looked at.
const LOOKED_AT: usize = 16;

/// The states of one limiter.
#[derive(Clone, Debug)]
pub struct Keyed {
    new: State,
    states: BTreeMap<u64, State>,
    most: usize,
    /// Of those for whom there was no room.
    shared: State,
    overflowed: u64,
    /// Where the looking for what can be forgotten goes on.
    hand: u64,
}

impl Keyed {
    /// For as many as `most`, each beginning with `new`.
    pub fn new(new: State, most: usize) -> Self {
        Self { shared: new.clone(), new, states: BTreeMap::new(), most, overflowed: 0, hand: 0 }
    }

    /// The state of a request that comes.
    pub fn of(&mut self, key: u64, now: Timestamp) -> &mut State {
        if self.states.contains_key(&key) || self.has_room(now) {
            return self.states.entry(key).or_insert_with(|| self.new.clone());
        }
        self.overflowed += 1;
        &mut self.shared
    }

    /// The state of a request that was let in.
    pub fn of_admitted(&mut self, key: u64) -> &mut State {
        self.states.get_mut(&key).unwrap_or(&mut self.shared)
    }

    /// How many requests met the shared state.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    fn has_room(&mut self, now: Timestamp) -> bool {
        // Nobody gets a state of its own while a request of it may be inside by the shared one, or that would never be freed.
        if self.shared.meter.inside() > 0 {
            return false;
        }
        if self.states.len() >= self.most {
            self.forget_some(now);
        }
        self.states.len() < self.most
    }

    /// Forgets those among the next few that are as new.
    fn forget_some(&mut self, now: Timestamp) {
        let next: Vec<(u64, bool)> =
            self.states.range(self.hand..).take(LOOKED_AT).map(|(key, state)| (*key, state.is_new(now))).collect();
        let went_round = next.len() < LOOKED_AT;
        self.hand = next.last().filter(|_| !went_round).map_or(0, |(key, _)| key.wrapping_add(1));
        for (key, _) in next.iter().filter(|(_, is_new)| *is_new) {
            self.states.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Concurrency, LimiterConfig, Shared, SlidingLog};
    use super::*;
    use crate::time::Span;

    fn once_per_window(most: usize) -> Keyed {
        let log = SlidingLog { limit: 1, window: Span(100), shared: Shared::plain() };
        Keyed::new(State::new(&LimiterConfig::SlidingLog(log)), most)
    }

    #[test]
    fn who_finds_no_room_shares_one_state_and_that_is_counted() {
        let mut keyed = once_per_window(3);
        let mut admit = |key: u64, at: u64| keyed.of(key, Timestamp(at)).meter.admit(Timestamp(at), None);
        assert_eq!([admit(1, 0), admit(2, 10), admit(3, 20)], [true; 3]);
        assert_eq!([admit(4, 30), admit(5, 40), admit(1, 50)], [true, false, false], "4 and 5 share");
        assert_eq!([admit(5, 105), admit(4, 106)], [true, false], "1 is forgotten for 5; nobody yet for 4");
        assert_eq!([admit(4, 112), admit(3, 113)], [true, false], "2 is forgotten for 4; 3 is as it was");
        assert_eq!((keyed.overflowed(), keyed.states.len()), (3, 3));
    }

    #[test]
    fn what_is_forgotten_is_found_wherever_it_is() {
        let mut keyed = once_per_window(200);
        for key in 0..200 {
            let at = if key == 150 { Timestamp(0) } else { Timestamp(100) };
            assert!(keyed.of(key, at).meter.admit(at, None));
        }
        let tries = (1000..2000).take_while(|key| {
            keyed.of(*key, Timestamp(150));
            !keyed.states.contains_key(key)
        });
        assert_eq!((tries.count(), keyed.states.contains_key(&150)), (9, false), "16 at a time, the tenth finds it");
    }

    #[test]
    fn places_taken_by_the_shared_state_are_freed_by_it() {
        let config = LimiterConfig::Concurrency(Concurrency { limit: 1, shared: Shared::plain() });
        let mut keyed = Keyed::new(State::new(&config), 1);
        let now = Timestamp::ZERO;
        assert!(keyed.of(1, now).meter.admit(now, None) && keyed.of(2, now).meter.admit(now, None));
        keyed.of_admitted(1).meter.left(now, Span(1), true);
        assert!(!keyed.of(2, now).meter.admit(now, None), "2 is inside, though there is room for a state of its own by now");
        keyed.of_admitted(2).meter.left(now, Span(1), true);
        assert!(keyed.of(2, now).meter.admit(now, None));
        assert_eq!((keyed.states.contains_key(&2), keyed.shared.meter.inside(), keyed.overflowed()), (true, 0, 2));
    }
}
