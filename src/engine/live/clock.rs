//! The only file that reads a clock.
#![allow(clippy::disallowed_methods)]

use crate::time::{Span, Timestamp};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where the live engine takes its time from; a test drives its own.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the run began.
    fn now(&self) -> Timestamp;

    /// Seconds since 1970 UTC, for calendars: Retry-After dates, names of reports.
    fn wall(&self) -> i64;

    /// Milliseconds since 1970 UTC.
    fn wall_millis(&self) -> i64 {
        self.wall().saturating_mul(1000)
    }
}

/// The machine's monotonic clock, counted from a start that may lie a little ahead: until then it reads zero.
#[derive(Clone, Debug)]
pub struct LiveClock {
    // Set once: the hot path reads it without a lock.
    start: OnceLock<Instant>,
}

impl LiveClock {
    /// A clock whose zero is now.
    pub fn starting_now() -> Arc<Self> {
        Self::starting_in(Span::ZERO)
    }

    /// A clock whose zero lies ahead.
    pub fn starting_in(ahead: Span) -> Arc<Self> {
        let clock = Self::waiting();
        clock.begin_in(ahead);
        clock
    }

    /// A clock that reads zero until it is told to begin.
    pub fn waiting() -> Arc<Self> {
        Arc::new(Self { start: OnceLock::new() })
    }

    /// Puts the zero this far ahead. Only the first call counts.
    pub fn begin_in(&self, ahead: Span) {
        let _ = self.start.set(Instant::now() + ahead.to_std());
    }

    /// How far ahead the zero lies; nothing once it is reached, or where the clock still waits.
    pub fn until_zero(&self) -> Span {
        let left = self.start.get().map(|start| start.saturating_duration_since(Instant::now()));
        Span::from_std(left.unwrap_or_default())
    }
}

impl Clock for LiveClock {
    fn now(&self) -> Timestamp {
        let Some(start) = self.start.get() else { return Timestamp::ZERO };
        let passed = Instant::now().saturating_duration_since(*start);
        Timestamp(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
    }

    fn wall(&self) -> i64 {
        self.wall_millis().div_euclid(1000)
    }

    fn wall_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
