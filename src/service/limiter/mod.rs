//! Refuses requests above a limit, before they queue.
//!
//! Owns what a plan says of limiters ([`LimitersConfig`]) and their state ([`Limiters`]): each kind in a file of its own, what all of them share
//! in [`shared`], and whose state a request meets (one for all, or one for each client or fleet) in [`keyed`]. Leaves the queue and
//! admission by priority to others.

pub mod adaptive;
pub mod concurrency;
pub mod config;
pub mod fixed_window;
pub mod keyed;
pub mod meter;
pub mod penalty_box;
pub mod shared;
pub mod sliding_log;
pub mod state;
pub mod token_bucket;

pub use adaptive::AdaptiveConcurrency;
pub use concurrency::Concurrency;
pub use config::{LimiterConfig, LimitersConfig};
pub use fixed_window::FixedWindow;
pub use penalty_box::PenaltyBox;
pub use shared::{Per, Shared};
pub use sliding_log::SlidingLog;
pub use state::{Limiters, Load};
pub use token_bucket::TokenBucket;
