//! Clients that share a load shape and a policy.

pub mod config;

pub use config::{Connections, FleetConfig, IdempotencyKey, LateStarts};
