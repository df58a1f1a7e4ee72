//! A shared pacer: at most so many a second.
//!
//! Owns one number, the moment at which the next token is due at an even pace, and moves it forward by one
//! interval per token: the generic cell rate algorithm. So a token bucket costs eight bytes and no timer, it can
//! be shared between shards without a lock, and used by one thread it is a function of what it was asked.
//! Leaves to others what a token is: a request that a rate limit lets through ([`Pacer::take`]), or an attempt
//! that a ceiling holds back until its moment ([`Pacer::reserve`]).

use crate::time::{Rate, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// Moments are kept in 1/256 ns, because whole nanoseconds would bend a rate of 3,000,000/s by 0.1%.
/// That leaves room for two years of run; beyond, nothing passes.
const PARTS: u64 = 256;

/// At most `rate` tokens per second, and `burst` of them at once. It starts full.
#[derive(Debug)]
pub struct Pacer {
    interval: u64,
    tolerance: u64,
    due: AtomicU64,
}

impl Pacer {
    /// A full bucket of `burst` tokens (at least one) that refills at `rate`. At a rate of zero nothing passes.
    pub fn new(rate: Rate, burst: u32) -> Self {
        // At a rate of zero the quotient is infinite, and saturates.
        let interval = (1e9 * PARTS as f64 / rate.get() + 0.5) as u64;
        // Half the range at most, or a long interval times a large burst would read as "always".
        let tolerance = interval.saturating_mul(u64::from(burst.max(1) - 1)).min(u64::MAX / 2);
        Self { interval, tolerance, due: AtomicU64::new(0) }
    }

    /// Takes a token if one is there.
    pub fn take(&self, now: Timestamp) -> bool {
        self.advance(now, 1, false).is_some()
    }

    /// Takes the next token, and says from which moment it counts: `now`, or later. Tokens are given in the order
    /// in which they were asked for. [`Timestamp::NEVER`] at a rate of zero.
    pub fn reserve(&self, now: Timestamp) -> Timestamp {
        self.reserve_many(1, now)
    }

    /// Takes the next `count` tokens together, and says from which moment the first of them counts. What comes next waits for
    /// all of them.
    pub fn reserve_many(&self, count: u64, now: Timestamp) -> Timestamp {
        match self.advance(now, count, true) {
            Some(from) => Timestamp(from.div_ceil(PARTS)).max(now),
            None => Timestamp::NEVER,
        }
    }

    /// When the next token is there, `now` at the earliest; takes none. [`Timestamp::NEVER`] at a rate of zero.
    pub fn when(&self, now: Timestamp) -> Timestamp {
        if self.interval == u64::MAX {
            return Timestamp::NEVER;
        }
        let from = self.due.load(Ordering::Relaxed).saturating_sub(self.tolerance);
        Timestamp(from.div_ceil(PARTS)).max(now)
    }

    /// Moves the due moment by so many intervals; the moment of the first token, or nothing where there is none (yet).
    fn advance(&self, now: Timestamp, count: u64, may_wait: bool) -> Option<u64> {
        if self.interval == u64::MAX {
            return None;
        }
        let now = now.0.saturating_mul(PARTS);
        let mut due = self.due.load(Ordering::Relaxed);
        loop {
            let from = due.saturating_sub(self.tolerance).max(now);
            if from > now && !may_wait {
                return None;
            }
            let after = due.max(now).saturating_add(self.interval.saturating_mul(count));
            // One word holds all there is, so no ordering with other memory is needed.
            match self.due.compare_exchange_weak(due, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(from),
                Err(seen) => due = seen,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use std::sync::Arc;

    fn pacer(rate: f64, burst: u32) -> Pacer {
        Pacer::new(Rate::per_second(rate).unwrap(), burst)
    }

    fn ms(n: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(n)
    }

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate() {
        let p = pacer(100.0, 3);
        let passed: Vec<bool> = (0..5).map(|_| p.take(ms(0))).collect();
        assert_eq!(passed, [true, true, true, false, false]);
        assert!(!p.take(ms(9)));
        assert!(p.take(ms(10)));
        assert!(!p.take(ms(19)));
        assert!(p.take(ms(20)));
        // Idle time fills the bucket, and no further.
        let passed = (0..9).filter(|_| p.take(ms(5000))).count();
        assert_eq!(passed, 3);
    }

    #[test]
    fn reservations_are_evenly_spaced() {
        let p = pacer(100.0, 1);
        assert_eq!((0..4).map(|_| p.reserve(ms(7))).collect::<Vec<_>>(), [ms(7), ms(17), ms(27), ms(37)]);
        assert_eq!(p.reserve(ms(100)), ms(100));
    }

    #[test]
    fn many_tokens_at_once_hold_up_what_comes_behind_them() {
        let p = pacer(100.0, 1);
        assert_eq!([(3, ms(7)), (1, ms(7)), (2, ms(8))].map(|(n, now)| p.reserve_many(n, now)), [ms(7), ms(37), ms(47)]);
        assert_eq!(p.reserve(ms(7)), ms(67));
        assert_eq!(pacer(1.0, 1).reserve_many(u64::MAX, ms(1)), ms(1), "it saturates");
    }

    #[test]
    fn a_rate_that_does_not_divide_a_nanosecond_is_kept() {
        let p = pacer(3_000_000.0, 1);
        let last = (0..=3_000_000).fold(Timestamp::ZERO, |_, _| p.reserve(Timestamp::ZERO));
        assert!(last.0.abs_diff(1_000_000_000) < 6_000, "{last:?}");
    }

    #[test]
    fn extremes_neither_panic_nor_open_the_gate() {
        let p = pacer(0.0, 5);
        assert!(!p.take(ms(0)));
        assert_eq!(p.reserve(ms(0)), Timestamp::NEVER);
        let p = pacer(1.0 / 86_400.0, u32::MAX);
        assert!((0..1_000_000).filter(|_| p.take(ms(0))).count() < 1000);
        let p = pacer(1e300, 1);
        assert!((0..1000).all(|_| p.take(Timestamp::NEVER)));
    }

    #[test]
    fn two_threads_share_one_rate() {
        let p = Arc::new(pacer(1000.0, 10));
        let count = |p: Arc<Pacer>| std::thread::spawn(move || (0..2000).filter(|&i| p.take(ms(i))).count());
        let (a, b) = (count(p.clone()), count(p));
        let total = a.join().unwrap() + b.join().unwrap();
        assert!((1999..=2010).contains(&total), "{total}");
    }
}
