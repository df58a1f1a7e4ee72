//! A budget over a sliding window: retries within it may be at most a share of the first attempts within it.
//!
//! It counts both kinds over the window, so that a quiet night earns no
//! storm in the morning. The window is cut into ten slots; the oldest leaves as a whole, so the memory is between
//! nine and ten tenths of the window.
//!
//! Each count is one word that carries the number of its
//! slot. A spender books its retry first and looks at the sums after; where they exceed the allowance it takes
//! the booking back. So the cap is never exceeded, whatever the interleaving; the slack is on the other side: threads
//! that meet at the edge may all be refused where one would have fitted. Used by one thread it is exact, in
//! whole numbers: 29% of 100 is 29.

use super::ONE;
use crate::time::{Share, Span, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// Retries within the window may be at most `ratio` of the first attempts within it, plus `min_per_second`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowConfig {
    /// Retries earned per first attempt.
    pub ratio: Share,
    /// How far back first attempts and retries count.
    pub window: Span,
    /// Retries per second that need not be earned.
    pub min_per_second: f64,
}

/// Slots of a window.
const SLOTS: usize = 10;

/// What was booked within the window. Lock-free.
#[derive(Debug)]
pub struct Window {
    ratio: u64,
    reserve: u64,
    slot: Span,
    firsts: [Count; SLOTS],
    retries: [Count; SLOTS],
}

impl Window {
    /// An empty window.
    pub fn new(config: &WindowConfig) -> Self {
        Self {
            ratio: Span::from_secs_f64(config.ratio.get()).0,
            reserve: Span::from_secs_f64(config.min_per_second * config.window.as_secs_f64()).0,
            slot: Span((config.window / SLOTS as u64).0.max(1)),
            firsts: Default::default(),
            retries: Default::default(),
        }
    }

    /// Books a first attempt.
    pub fn earn(&self, now: Timestamp) {
        let (slot, place) = self.slot_of(now);
        self.firsts[place].add(slot, 1);
    }

    /// Books a retry, which counts as so many (one as a rule), if the window allows that.
    pub fn spend(&self, now: Timestamp, cost: u16) -> bool {
        let (slot, place) = self.slot_of(now);
        let (count, cost) = (&self.retries[place], u32::from(cost));
        let booked = count.add(slot, cost);
        let allowed = self.retries_at(slot).saturating_mul(ONE) <= self.allowance_at(slot);
        if !allowed {
            count.take_back(booked, cost);
        }
        allowed
    }

    /// How many more retries the window allows.
    pub fn balance(&self, now: Timestamp) -> f64 {
        let (slot, _) = self.slot_of(now);
        let spent = self.retries_at(slot).saturating_mul(ONE);
        self.allowance_at(slot).saturating_sub(spent) as f64 / ONE as f64
    }

    /// The number of the slot of a moment, which wraps (ages are taken by wrapping subtraction), and its place.
    fn slot_of(&self, now: Timestamp) -> (u32, usize) {
        let number = now.0 / self.slot.0;
        (number as u32, (number % SLOTS as u64) as usize)
    }

    fn allowance_at(&self, slot: u32) -> u64 {
        sum(&self.firsts, slot).saturating_mul(self.ratio).saturating_add(self.reserve)
    }

    fn retries_at(&self, slot: u32) -> u64 {
        sum(&self.retries, slot)
    }
}

fn sum(counts: &[Count; SLOTS], slot: u32) -> u64 {
    counts.iter().map(|count| count.within(slot)).sum()
}

/// A count that belongs to one slot of time: the slot's number in the upper half, the count in the lower. All
/// accesses are sequentially consistent, because a spender must see what others booked in other slots.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    /// Counts `n` for a slot, or for the newer one that another thread has begun here; returns that slot.
    fn add(&self, slot: u32, n: u32) -> u32 {
        let mut word = self.0.load(Ordering::SeqCst);
        loop {
            let (held, count) = split(word);
            let next = if is_older(held, slot) { join(slot, n) } else { join(held, count.saturating_add(n)) };
            match self.0.compare_exchange_weak(word, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return split(next).0,
                Err(seen) => word = seen,
            }
        }
    }

    /// Takes back what was counted for a slot; nothing to do where the slot has gone.
    fn take_back(&self, slot: u32, n: u32) {
        let back = |word| {
            let (held, count) = split(word);
            (held == slot).then(|| join(held, count.saturating_sub(n)))
        };
        // An error says that the slot has gone, and its count with it.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, back);
    }

    /// The count, if its slot lies within the window that ends with `slot`. A newer slot, begun by a thread whose
    /// clock reading is a moment ahead, lies within it too.
    fn within(&self, slot: u32) -> u64 {
        let (held, count) = split(self.0.load(Ordering::SeqCst));
        let too_old = is_older(held, slot) && slot.wrapping_sub(held) >= SLOTS as u32;
        if too_old { 0 } else { u64::from(count) }
    }
}

fn is_older(held: u32, slot: u32) -> bool {
    (held.wrapping_sub(slot) as i32) < 0
}

fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

fn join(slot: u32, count: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn budget(ratio: f64, min_per_second: f64) -> Window {
        let window = Span::from_secs(10);
        Window::new(&WindowConfig { ratio: Share::new(ratio).unwrap(), window, min_per_second })
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    fn spend_all(budget: &Window, now: Timestamp) -> usize {
        (0..100_000).take_while(|_| budget.spend(now, 1)).count()
    }

    #[test]
    fn every_ratio_is_exact() {
        for percent in 0..=100u64 {
            for firsts in [1u64, 10, 99, 100, 1000] {
                let b = budget(percent as f64 / 100.0, 0.0);
                (0..firsts).for_each(|_| b.earn(at(0)));
                assert_eq!(spend_all(&b, at(1)) as u64, firsts * percent / 100, "{percent}% of {firsts}");
            }
        }
    }

    #[test]
    fn the_reserve_need_not_be_earned() {
        let b = budget(0.1, 2.0);
        assert_eq!(b.balance(at(0)), 20.0);
        assert_eq!(spend_all(&b, at(0)), 20);
        (0..10).for_each(|_| b.earn(at(10)));
        assert_eq!(b.balance(at(10)), 1.0);
        assert_eq!(spend_all(&b, at(20)), 1);
    }

    #[test]
    fn what_leaves_the_window_is_forgotten_on_both_sides() {
        let b = budget(0.5, 0.0);
        (0..100).for_each(|_| b.earn(at(500)));
        assert_eq!(spend_all(&b, at(600)), 50);
        (0..10).for_each(|_| b.earn(at(9_900)));
        assert_eq!(spend_all(&b, at(9_999)), 5, "the first second still counts");
        assert_eq!(spend_all(&b, at(10_000)), 0, "its 100 and its 50 are gone; 10 and 5 are left");
        (0..10).for_each(|_| b.earn(at(10_000)));
        assert_eq!(spend_all(&b, at(10_000)), 5);
        assert_eq!(spend_all(&b, at(60_000)), 0, "an idle minute saves nothing");
    }

    #[test]
    fn a_refusal_costs_nothing() {
        let b = budget(1.0, 0.0);
        (0..1000).for_each(|_| assert!(!b.spend(at(5), 1)));
        b.earn(at(6));
        assert!(b.spend(at(7), 1) && !b.spend(at(7), 1));
        (0..3).for_each(|_| b.earn(at(8)));
        assert!(!b.spend(at(8), 4) && b.spend(at(8), 3), "a cost is had whole or not at all");
    }

    #[test]
    fn two_threads_never_exceed_the_cap() {
        let b = Arc::new(budget(0.1, 0.0));
        let work = |b: Arc<Window>| {
            std::thread::spawn(move || {
                let mut spent = 0;
                for i in 0..200_000u64 {
                    // Both cross the slots of one window together.
                    let now = at(i / 25);
                    b.earn(now);
                    spent += u64::from(b.spend(now, 1));
                }
                spent
            })
        };
        let (one, two) = (work(b.clone()), work(b.clone()));
        let spent = one.join().unwrap() + two.join().unwrap();
        assert!(spent <= 40_000, "{spent}");
        assert!(spent > 38_000, "contention refuses few: {spent}");
        assert_eq!(b.balance(at(8_000)), (40_000 - spent) as f64, "nothing was lost");
    }
}
