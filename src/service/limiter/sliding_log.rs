//! A sliding log: at most so many requests within any window.
//!
//! A request at `now` passes when fewer than `limit` logged ones lie in (now − window, now]. Times only grow, so
//! that is the same as: there are fewer than `limit` in all, or the `limit`-th last has left the window. Hence
//! only the last `limit` times are kept, also where rejected requests are logged, however many come.

use super::shared::{Per, Shared};
use crate::record;
use crate::time::{Span, Timestamp};
use std::collections::VecDeque;

/// The largest `limit`: it bounds the log's memory, to 8 MB.
pub const MAX_LIMIT: u32 = 1_000_000;
/// The largest where each client or fleet has a log of its own: it bounds them all, to 800 MB.
pub const MAX_LIMIT_EACH: u32 = 1_000;

record! {
    /// A sliding log: at most so many requests within any window.
    pub struct SlidingLog {
        /// How many requests.
        limit: u32,
        /// The window.
        window: Span = Span::from_secs(1);
        with
        /// What all limiters share.
        shared: Shared,
    } => |s: &SlidingLog| {
        let most = if s.shared.per == Per::Global { MAX_LIMIT } else { MAX_LIMIT_EACH };
        if !(1..=most).contains(&s.limit) {
            let whose = if s.shared.per == Per::Global { "" } else { " in a log for each" };
            return Err(format!("`limit` must lie between 1 and {most}{whose}; above that use a `token_bucket`"));
        }
        if s.window.is_zero() {
            return Err("`window` must be above zero: write `1s`".to_string());
        }
        Ok(())
    }
}

/// The state of a sliding log.
#[derive(Clone, Debug)]
pub struct Log {
    limit: usize,
    window: Span,
    count_rejected: bool,
    /// The last `limit` logged times, oldest first.
    last: VecDeque<Timestamp>,
}

impl Log {
    /// An empty log.
    pub fn new(config: &SlidingLog) -> Self {
        Self {
            limit: config.limit as usize,
            window: config.window,
            count_rejected: config.shared.count_rejected,
            last: VecDeque::new(),
        }
    }

    /// Logs a request at this moment; whether there was room in the window.
    pub fn admit(&mut self, now: Timestamp) -> bool {
        let room = self.last.len() < self.limit;
        let passes = room || self.last.front().is_none_or(|oldest| *oldest + self.window <= now);
        if passes || self.count_rejected {
            if !room {
                self.last.pop_front();
            }
            self.last.push_back(now);
        }
        passes
    }

    /// Whether it behaves as one that has seen nothing.
    pub fn is_new(&self, now: Timestamp) -> bool {
        self.last.back().is_none_or(|newest| *newest + self.window <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    fn config(limit: u32, window: Span, count_rejected: bool) -> SlidingLog {
        SlidingLog { limit, window, shared: Shared { count_rejected, ..Shared::plain() } }
    }

    /// How many pass in each second of evenly spaced requests.
    fn passed_by_second(log: &mut Log, per_second: u64, seconds: u64) -> Vec<usize> {
        let second = |s: u64| {
            let at = |i| Timestamp::ZERO + Span::from_micros((s * per_second + i) * 1_000_000 / per_second);
            (0..per_second).filter(|i| log.admit(at(*i))).count()
        };
        (0..seconds).map(second).collect()
    }

    /// Says the definition and keeps everything.
    struct Naive {
        config: SlidingLog,
        logged: Vec<Timestamp>,
    }

    impl Naive {
        fn passes(&mut self, now: Timestamp) -> bool {
            let within = |t: &&Timestamp| **t + self.config.window > now;
            let passes = self.logged.iter().rev().take_while(within).count() < self.config.limit as usize;
            if passes || self.config.shared.count_rejected {
                self.logged.push(now);
            }
            passes
        }
    }

    #[test]
    fn it_agrees_with_the_definition_and_keeps_no_more_than_the_limit() {
        for round in 0..200u64 {
            let mut stream = Key { seed: 3, operation: round, ..Key::default() }.stream(Purpose::Arrival);
            let config = config(1 + (round % 9) as u32, Span(1 + round % 13), round % 2 == 0);
            let window = config.window;
            let (mut log, mut naive) = (Log::new(&config), Naive { config, logged: Vec::new() });
            let mut now = Timestamp::ZERO;
            for step in 0..400 {
                now += Span(stream.bits() % 4);
                let is_empty = naive.logged.iter().all(|t| *t + window <= now);
                assert_eq!(log.is_new(now), is_empty, "round {round}, step {step}");
                assert_eq!(log.admit(now), naive.passes(now), "round {round}, step {step}");
                assert!(log.last.len() <= log.limit);
            }
        }
    }

    #[test]
    fn incident_a_one_flag_decides_whether_a_storm_locks_itself_out() {
        let mut counting = Log::new(&config(100, Span::from_secs(1), true));
        let mut expected = vec![0; 60];
        expected[0] = 100;
        assert_eq!(passed_by_second(&mut counting, 400, 60), expected, "400/s against 100/s, rejections counted");
        let mut plain = Log::new(&config(100, Span::from_secs(1), false));
        assert_eq!(passed_by_second(&mut plain, 400, 60), vec![100; 60], "the same, not counted");
    }

    #[test]
    fn the_window_is_half_open() {
        let mut log = Log::new(&config(1, Span(10), false));
        let table = [(0, true), (9, false), (10, true), (19, false), (25, true)];
        for (at, passes) in table {
            assert_eq!(log.admit(Timestamp(at)), passes, "at {at}");
        }
    }
}
