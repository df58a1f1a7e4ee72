//! A quota as AWS's standard mode has it: retries take from it, successes give back.
//!
//! It starts full. A success of a retry gives back what that retry took, a success without a retry gives one; nothing fills it
//! while everything fails, so it bounds the retries of an outage by a number, and of a partial failure by a
//! balance: at a cost of 5 it holds as long as one operation in six fails. Source: the SDKs' retry specification
//! (2.0: cost 5, a timeout 10; 2.1: cost 14, throttling 5) and `botocore/retries/quota.py`.

use super::End;
use crate::record;
use std::sync::atomic::{AtomicU32, Ordering};

record! {
    /// Retries take from it what they cost, a success of a retry gives that back, a success without one gives 1. It starts full.
    pub struct QuotaConfig {
        /// How much it holds.
        capacity: u32 = 500,
        /// What a retry takes, where its class of outcomes says nothing else (`on: { timeout: { cost: 10 } }`).
        cost: u16 = 5,
        /// What a success without a retry gives.
        first_success: u16 = 1,
    } => QuotaConfig::check
}

/// The largest quota.
const MAX_CAPACITY: u32 = 1_000_000_000;

impl QuotaConfig {
    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_CAPACITY).contains(&self.capacity) {
            return Err(format!("`capacity` is {}: expected 1 to {MAX_CAPACITY}", self.capacity));
        }
        if self.cost == 0 {
            return Err("`cost` is 0: a retry that takes nothing is not limited; leave the budget out".into());
        }
        Ok(())
    }
}

/// What is left of it. Lock-free.
#[derive(Debug)]
pub struct Quota {
    capacity: u32,
    cost: u16,
    first_success: u16,
    left: AtomicU32,
}

impl Quota {
    /// A full quota.
    pub fn new(config: &QuotaConfig) -> Self {
        let QuotaConfig { capacity, cost, first_success } = *config;
        Self { capacity, cost, first_success, left: AtomicU32::new(capacity) }
    }

    /// What a retry costs where its treatment says nothing.
    pub const fn usual_cost(&self) -> u16 {
        self.cost
    }

    /// Takes so much for a retry, if it is there.
    pub fn spend(&self, cost: u16) -> bool {
        self.change(|left| left.checked_sub(u32::from(cost)))
    }

    /// Books the end of an attempt.
    pub fn ended(&self, end: End) {
        if end.success {
            self.give_back(if end.retry { end.cost } else { self.first_success });
        }
    }

    /// Puts so much back, up to the capacity.
    pub fn give_back(&self, amount: u16) {
        self.change(|left| Some(left.saturating_add(u32::from(amount)).min(self.capacity)));
    }

    /// What is left.
    pub fn balance(&self) -> f64 {
        f64::from(self.left.load(Ordering::Relaxed))
    }

    /// Whether the change could be made. Relaxed: nothing else is published by it.
    fn change(&self, to: impl Fn(u32) -> Option<u32>) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn quota(capacity: u32, cost: u16) -> Quota {
        Quota::new(&QuotaConfig { capacity, cost, first_success: 1 })
    }

    fn success(retry: bool, cost: u16) -> End {
        End { success: true, retryable: false, retry, cost }
    }

    #[test]
    fn what_is_taken_and_given_is_what_the_sdk_takes_and_gives() {
        enum Do {
            Spend(u16, bool),
            First,
            Retried(u16),
            Fails,
        }
        use Do::{Fails, First, Retried, Spend};
        let q = quota(500, 5);
        assert_eq!(q.usual_cost(), 5);
        for (step, left) in [
            (First, 500),
            (Spend(5, true), 495),
            (Fails, 495),
            (Spend(10, true), 485),
            (Retried(10), 495),
            (First, 496),
            (Spend(496, true), 0),
            (Spend(1, false), 0),
            (First, 1),
            (Spend(5, false), 1),
            (Retried(5), 6),
            (Spend(5, true), 1),
        ] {
            match step {
                Spend(cost, want) => assert_eq!(q.spend(cost), want, "cost {cost}"),
                First => q.ended(success(false, 0)),
                Retried(cost) => q.ended(success(true, cost)),
                Fails => q.ended(End { success: false, retryable: true, retry: true, cost: 5 }),
            }
            assert_eq!(q.balance(), f64::from(left));
        }
    }

    #[test]
    fn two_threads_never_exceed_it_and_lose_nothing() {
        let q = Arc::new(quota(1_000, 7));
        let work = |q: Arc<Quota>| {
            std::thread::spawn(move || {
                let mut spent = 0u32;
                for _ in 0..100_000 {
                    spent += u32::from(q.spend(7));
                    q.ended(success(false, 0));
                }
                spent
            })
        };
        let (one, two) = (work(q.clone()), work(q.clone()));
        let spent = one.join().unwrap() + two.join().unwrap();
        assert!(spent * 7 <= 1_000 + 200_000, "{spent}");
        assert!(f64::from(spent) * 7.0 + q.balance() <= 201_000.0 && spent > 20_000, "{spent}");
    }
}
