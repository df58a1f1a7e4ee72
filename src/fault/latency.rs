//! Requests are delayed.

use crate::record;
use crate::time::{Share, Span};

record! {
    /// Requests are delayed on their way to the upstream.
    pub struct Latency {
        /// The delay.
        add: Span,
        /// The delay varies by U(−jitter, +jitter), never below zero.
        jitter: Span = Span::ZERO,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    }
}
