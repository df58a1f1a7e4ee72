//! The retry budget: retries *earned* by what went well or began, and *spent* by retries. One kind, one file.
//!
//! A budget bounds the retry ratio where limits on attempts cannot: when everything fails, four attempts quadruple
//! the load, a 10% budget adds a tenth. A fleet's budget is shared by its shards, without a lock.
//!
//! The retry loop tells a budget all that happens, in this order: [`Budget::sent`], [`Budget::ended`], and then, where a retry
//! is wanted, [`Budget::spend`]. What of that counts is the kind's own affair.

pub mod bucket;
pub mod concurrent;
mod config;
pub mod grpc;
pub mod quota;
pub mod window;

use crate::time::Timestamp;

pub use bucket::{Bucket, BucketConfig};
pub use concurrent::{Concurrent, ConcurrentConfig};
pub use config::{BudgetConfig, Kind, Tier, WhenSpent};
pub use grpc::{Grpc, GrpcConfig};
pub use quota::{Quota, QuotaConfig};
pub use window::{Window, WindowConfig};

/// Retries are counted in billionths, in whole numbers.
const ONE: u64 = 1_000_000_000;

/// How an attempt ended, as a budget sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether it succeeded.
    pub success: bool,
    /// Whether its outcome is one that the policy retries, limits aside.
    pub retryable: bool,
    /// Whether it was a retry.
    pub retry: bool,
    /// What was spent for it; 0 for a first attempt.
    pub cost: u16,
}

/// The state of a budget. Lock-free: a fleet's is shared by its shards.
#[derive(Debug)]
pub enum Budget {
    /// Over a sliding window. Boxed: it is ten times as large as a bucket, of which a fleet may have one per client.
    Window(Box<Window>),
    /// Tokens.
    Bucket(Bucket),
    /// A quota that successes give back.
    Quota(Quota),
    /// Retries at one time.
    Concurrent(Concurrent),
    /// gRPC's tokens, which failures take.
    Grpc(Grpc),
}

impl Budget {
    /// A budget as it stands when the run begins.
    pub fn new(config: &BudgetConfig) -> Self {
        match &config.kind {
            Kind::Window(config) => Self::Window(Box::new(Window::new(config))),
            Kind::Bucket(config) => Self::Bucket(Bucket::new(config)),
            Kind::Quota(config) => Self::Quota(Quota::new(config)),
            Kind::Concurrent(config) => Self::Concurrent(Concurrent::new(config)),
            Kind::Grpc(config) => Self::Grpc(Grpc::new(config)),
        }
    }

    /// What a retry costs where its treatment says nothing.
    pub fn usual_cost(&self) -> u16 {
        match self {
            Self::Quota(quota) => quota.usual_cost(),
            Self::Window(_) | Self::Bucket(_) | Self::Concurrent(_) | Self::Grpc(_) => 1,
        }
    }

    /// An attempt goes on the wire.
    pub fn sent(&self, now: Timestamp, retry: bool) {
        match self {
            Self::Window(window) if !retry => window.earn(now),
            Self::Bucket(bucket) if !retry => bucket.earn(),
            Self::Concurrent(concurrent) => concurrent.sent(),
            Self::Window(_) | Self::Bucket(_) | Self::Quota(_) | Self::Grpc(_) => {}
        }
    }

    /// Books a retry of this cost, if it is allowed.
    pub fn spend(&self, now: Timestamp, cost: u16) -> bool {
        match self {
            Self::Window(window) => window.spend(now, cost),
            Self::Bucket(bucket) => bucket.spend(cost),
            Self::Quota(quota) => quota.spend(cost),
            Self::Concurrent(concurrent) => concurrent.spend(),
            Self::Grpc(grpc) => grpc.permits(),
        }
    }

    /// An attempt has ended. `now` is when.
    pub fn ended(&self, _now: Timestamp, end: End) {
        match self {
            Self::Quota(quota) => quota.ended(end),
            Self::Concurrent(concurrent) => concurrent.ended(end.retry),
            Self::Grpc(grpc) => grpc.ended(end),
            Self::Window(_) | Self::Bucket(_) => {}
        }
    }

    /// A retry that was paid for is not sent after all: its operation has left. What it took is given back; but from a window it leaves
    /// with its slot.
    pub fn forgone(&self, cost: u16) {
        match self {
            Self::Bucket(bucket) => bucket.give_back(cost),
            Self::Quota(quota) => quota.give_back(cost),
            Self::Concurrent(concurrent) => concurrent.forgone(),
            Self::Window(_) | Self::Grpc(_) => {}
        }
    }

    /// What is there to be spent: how many retries of cost 1, or tokens where a retry takes none.
    pub fn balance(&self, now: Timestamp) -> f64 {
        match self {
            Self::Window(window) => window.balance(now),
            Self::Bucket(bucket) => bucket.balance(),
            Self::Quota(quota) => quota.balance(),
            Self::Concurrent(concurrent) => concurrent.balance(),
            Self::Grpc(grpc) => grpc.balance(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_small() {
        assert!(size_of::<Budget>() <= 40, "a fleet may have one per client: {}", size_of::<Budget>());
    }
}
