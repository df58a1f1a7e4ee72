//! Clients that share a load shape and a policy.

pub mod config;

pub use config::{Connections, FleetConfig, IdempotencyKey, LateStarts};

use crate::time::Span;

/// What a fleet's clients hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Attempts on the wire.
    pub in_flight: u64,
    /// Operations offered and not finished.
    pub backlog: u64,
    /// Age of the oldest of them.
    pub oldest_age: Span,
    /// Of them, those past attempt 3.
    pub deep_retries: u64,
    /// Of them, those past their deadline.
    pub late: u64,
}
