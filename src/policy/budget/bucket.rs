//! A budget of tokens: each new operation deposits a part of one, a retry needs and takes a whole one.
//!
//! The bucket starts full, and holds so many at most: it knows no time, only how much came and went. What decides is that
//! operations deposit and not successes: an overloaded service has few of those, so a bucket that earned on successes would
//! run dry just when it matters, and stay dry. One word, so that a deposit or a withdrawal is one exchange: exact whatever the
//! interleaving, and never below nothing or above the cap.

use super::ONE;
use crate::record;
use crate::time::{Share, Span};
use std::sync::atomic::{AtomicU64, Ordering};

record! {
    /// Tokens: each new operation deposits a part of one, a retry takes a whole one. It starts full.
    pub struct BucketConfig {
        /// What each new operation deposits, in per cent of a token.
        deposit: Share,
        /// The most tokens that it holds.
        burst: u32,
    } => BucketConfig::check
}

/// The largest bucket.
const MAX_BURST: u32 = 1_000_000;

impl BucketConfig {
    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_BURST).contains(&self.burst) {
            return Err(format!("`burst` is {}: expected 1 to {MAX_BURST}, since a retry takes one whole token", self.burst));
        }
        Ok(())
    }
}

/// The tokens that are there. Lock-free.
#[derive(Debug)]
pub struct Bucket {
    deposit: u64,
    cap: u64,
    /// In billionths.
    tokens: AtomicU64,
}

impl Bucket {
    /// A full bucket.
    pub fn new(config: &BucketConfig) -> Self {
        let cap = u64::from(config.burst) * ONE;
        let deposit = Span::from_secs_f64(config.deposit.get()).0;
        Self { deposit, cap, tokens: AtomicU64::new(cap) }
    }

    /// Books a new operation.
    pub fn earn(&self) {
        self.change(|tokens| Some(tokens.saturating_add(self.deposit).min(self.cap)));
    }

    /// Takes so many tokens for a retry, one as a rule, if they are there whole.
    pub fn spend(&self, cost: u16) -> bool {
        self.change(|tokens| tokens.checked_sub(u64::from(cost) * ONE))
    }

    /// Puts so many back, up to the cap.
    pub fn give_back(&self, cost: u16) {
        self.change(|tokens| Some(tokens.saturating_add(u64::from(cost) * ONE).min(self.cap)));
    }

    /// The tokens that are there.
    pub fn balance(&self) -> f64 {
        self.tokens.load(Ordering::Relaxed) as f64 / ONE as f64
    }

    /// Whether the change could be made. Relaxed: nothing else is published by it.
    fn change(&self, to: impl Fn(u64) -> Option<u64>) -> bool {
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn bucket(deposit: f64, burst: u32) -> Bucket {
        Bucket::new(&BucketConfig { deposit: Share::new(deposit).unwrap(), burst })
    }

    fn spend_all(bucket: &Bucket) -> u64 {
        (0..20_000u64).take_while(|_| bucket.spend(1)).count() as u64
    }

    #[test]
    fn it_starts_full_and_a_retry_takes_a_whole_token() {
        let b = bucket(0.1, 5);
        assert_eq!(b.balance(), 5.0);
        assert_eq!(spend_all(&b), 5);
        (0..9).for_each(|_| b.earn());
        assert!(!b.spend(1), "nine tenths are no token");
        assert_eq!(b.balance(), 0.9, "and a refusal costs nothing");
        b.earn();
        assert!(b.spend(1) && !b.spend(1));
        b.give_back(3);
        assert!(!b.spend(4) && b.spend(3), "a cost is had whole or not at all");
        b.give_back(u16::MAX);
        assert_eq!(b.balance(), 5.0);
    }

    #[test]
    fn every_deposit_is_exact() {
        for percent in 0..=100u64 {
            for operations in [1u64, 10, 99, 100, 1_000, 12_345] {
                let b = bucket(percent as f64 / 100.0, 13_000);
                assert_eq!(spend_all(&b), 13_000);
                (0..operations).for_each(|_| b.earn());
                assert_eq!(spend_all(&b), operations * percent / 100, "{percent}% of {operations}");
            }
        }
    }

    #[test]
    fn it_never_holds_more_than_its_cap() {
        let b = bucket(0.3, 2);
        (0..1_000).for_each(|_| b.earn());
        assert_eq!(b.balance(), 2.0);
        assert!(b.spend(1));
        (0..4).for_each(|_| b.earn());
        assert_eq!(b.balance(), 2.0, "what does not fit is lost");
    }

    #[test]
    fn two_threads_never_exceed_it_and_lose_nothing() {
        let b = Arc::new(bucket(0.1, 5));
        let work = |b: Arc<Bucket>| {
            std::thread::spawn(move || {
                let mut spent = 0u64;
                for _ in 0..200_000 {
                    b.earn();
                    spent += u64::from(b.spend(1));
                }
                spent
            })
        };
        let (one, two) = (work(b.clone()), work(b.clone()));
        let spent = one.join().unwrap() + two.join().unwrap();
        // 5 to begin with and 40,000 earned. Each thread spends after each deposit, so only the first three can meet the cap.
        assert!(spent <= 40_005, "{spent}");
        let in_all = spent as f64 + b.balance();
        assert!((40_004.7..=40_005.0).contains(&in_all), "{in_all}");
    }
}
