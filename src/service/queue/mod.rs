//! The queue before the servers: how many may wait, who is next, and who is served no more.

pub mod codel;
pub mod config;
pub mod expiry;
pub mod line;
pub mod lines;
pub mod shed;

pub use config::{Bound, Order, QueueConfig};
pub use lines::{Joined, Popped, Queue};
