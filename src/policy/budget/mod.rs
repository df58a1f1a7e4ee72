//! The retry budget: retries *earned* by first attempts and *spent* by retries. One kind, one file.
//!
//! A budget bounds the retry ratio where limits on attempts cannot: when everything fails, four attempts quadruple
//! the load, a 10% budget adds a tenth. A fleet's budget is shared by its shards, without a lock.

pub mod bucket;
mod config;
pub mod window;

use crate::time::Timestamp;

pub use bucket::{Bucket, BucketConfig};
pub use config::{BudgetConfig, Kind, Tier};
pub use window::{Window, WindowConfig};

/// Retries are counted in billionths, in whole numbers.
const ONE: u64 = 1_000_000_000;

/// The state of a budget. Lock-free: a fleet's is shared by its shards.
#[derive(Debug)]
pub enum Budget {
    /// Over a sliding window. Boxed: it is ten times as large as a bucket, of which a fleet may have one per client.
    Window(Box<Window>),
    /// Tokens.
    Bucket(Bucket),
}

impl Budget {
    /// A budget as it stands when the run begins.
    pub fn new(config: &BudgetConfig) -> Self {
        match &config.kind {
            Kind::Window(config) => Self::Window(Box::new(Window::new(config))),
            Kind::Bucket(config) => Self::Bucket(Bucket::new(config)),
        }
    }

    /// Books a first attempt.
    pub fn earn(&self, now: Timestamp) {
        match self {
            Self::Window(window) => window.earn(now),
            Self::Bucket(bucket) => bucket.earn(),
        }
    }

    /// Books a retry, if one more is allowed.
    pub fn spend(&self, now: Timestamp) -> bool {
        match self {
            Self::Window(window) => window.spend(now),
            Self::Bucket(bucket) => bucket.spend(),
        }
    }

    /// How many more retries are allowed.
    pub fn balance(&self, now: Timestamp) -> f64 {
        match self {
            Self::Window(window) => window.balance(now),
            Self::Bucket(bucket) => bucket.balance(),
        }
    }
}
