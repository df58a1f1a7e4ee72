//! What one client's, one fleet's or everybody's requests are measured by: the state of a limiter of any kind.

use super::adaptive::Adaptive;
use super::concurrency::Slots;
use super::config::LimiterConfig;
use super::fixed_window::Window;
use super::penalty_box::{Ban, PenaltyBox};
use super::sliding_log::Log;
use super::token_bucket::Bucket;
use crate::time::{Span, Timestamp};

/// The state of a limiter of any kind. `now` must not run backwards.
#[derive(Clone, Debug)]
pub enum Meter {
    /// A token bucket.
    TokenBucket(Bucket),
    /// A fixed window.
    FixedWindow(Window),
    /// A sliding log.
    SlidingLog(Log),
    /// A concurrency limit.
    Concurrency(Slots),
    /// An adaptive concurrency limit.
    Adaptive(Adaptive),
}

impl Meter {
    /// One that has seen nothing.
    pub fn new(config: &LimiterConfig) -> Self {
        match config {
            LimiterConfig::TokenBucket(config) => Self::TokenBucket(Bucket::new(config)),
            LimiterConfig::FixedWindow(config) => Self::FixedWindow(Window::new(config)),
            LimiterConfig::SlidingLog(config) => Self::SlidingLog(Log::new(config)),
            LimiterConfig::Concurrency(config) => Self::Concurrency(Slots::new(config)),
            LimiterConfig::AdaptiveConcurrency(config) => Self::Adaptive(Adaptive::new(config)),
        }
    }

    /// Whether a request at this moment passes. `inside` is how many are in the service, where that is what counts.
    pub fn admit(&mut self, now: Timestamp, inside: Option<u64>) -> bool {
        match self {
            Self::TokenBucket(bucket) => bucket.admit(now),
            Self::FixedWindow(window) => window.admit(now),
            Self::SlidingLog(log) => log.admit(now),
            Self::Concurrency(slots) => slots.admit(inside),
            Self::Adaptive(adaptive) => adaptive.admit(now, inside),
        }
    }

    /// One that passed has left the service.
    pub fn left(&mut self, now: Timestamp, took: Span, ok: bool) {
        match self {
            Self::Concurrency(slots) => slots.leave(),
            Self::Adaptive(adaptive) => adaptive.left(now, took, ok),
            Self::TokenBucket(_) | Self::FixedWindow(_) | Self::SlidingLog(_) => {}
        }
    }

    /// One that passed was turned away by a later limiter: a place in the service is free again. What counts a rate has seen it.
    pub fn give_back(&mut self) {
        match self {
            Self::Concurrency(slots) => slots.leave(),
            Self::Adaptive(adaptive) => adaptive.leave(),
            Self::TokenBucket(_) | Self::FixedWindow(_) | Self::SlidingLog(_) => {}
        }
    }

    /// How many it has let in that have not left; 0 of a kind that does not ask.
    pub fn inside(&self) -> u64 {
        match self {
            Self::Concurrency(slots) => slots.inside(),
            Self::Adaptive(adaptive) => adaptive.inside(),
            Self::TokenBucket(_) | Self::FixedWindow(_) | Self::SlidingLog(_) => 0,
        }
    }

    /// Whether nothing is lost when it is forgotten. An adaptive limit with nothing inside counts as that: it learns again.
    pub fn is_new(&self, now: Timestamp) -> bool {
        match self {
            Self::TokenBucket(bucket) => bucket.is_new(now),
            Self::FixedWindow(window) => window.is_new(now),
            Self::SlidingLog(log) => log.is_new(now),
            Self::Concurrency(_) | Self::Adaptive(_) => self.inside() == 0,
        }
    }
}

/// A meter, and the ban of those whom it measures.
#[derive(Clone, Debug)]
pub struct State {
    /// What measures them.
    pub meter: Meter,
    ban: Ban,
}

impl State {
    /// One that has seen nothing.
    pub fn new(config: &LimiterConfig) -> Self {
        Self { meter: Meter::new(config), ban: Ban::default() }
    }

    /// Whether a request at this moment passes, with a penalty box.
    pub fn admit(&mut self, now: Timestamp, inside: Option<u64>, penalty: &PenaltyBox, count_rejected: bool) -> bool {
        let banned = self.ban.is_on(now);
        // The meter sees what a ban refuses only where the rejected count.
        let seen = !banned || count_rejected;
        let passes = seen && self.meter.admit(now, inside) && !banned;
        if !passes {
            self.ban.extend(now, penalty);
        }
        passes
    }

    /// Whether nothing is lost when it is forgotten.
    pub fn is_new(&self, now: Timestamp) -> bool {
        !self.ban.is_on(now) && self.meter.is_new(now)
    }
}
