//! The phase-lock audit: how far apart a backoff carries clients that failed together. A function of the policy alone.
//!
//! Many clients fail at one moment and everything keeps failing; attempts take no time, and limits on attempts, budgets
//! and breakers do not count. What is left is the backoff: its attempts are counted in windows of a second, long after
//! the failure. Clients that it has spread out make as many in each; those that march in step make all of theirs in one,
//! and then the target sees the mean load times the peak over the mean.

use super::backoff::{Backoff, Jitter, WaitInput};
use crate::rng::{Key, Purpose};
use crate::time::{Span, Timestamp};

/// The most attempts of one client that are followed.
const MOST_OF_ONE: u64 = 1_000_000;
/// The most attempts that are followed in all.
const MOST: u64 = 300_000_000;
/// A client that makes so many attempts while no time passes makes them for ever.
const AT_ONCE: u64 = 10_000;

/// What is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// How many clients fail together.
    pub clients: u32,
    /// The first window's start, in whole seconds after the failure.
    pub from: u32,
    /// The last window's end, in whole seconds after the failure.
    pub to: u32,
    /// Where the draws come from.
    pub seed: u64,
}

impl Default for Audit {
    /// 10,000 clients, ten to fifteen minutes after they failed.
    fn default() -> Self {
        Self { clients: 10_000, from: 600, to: 900, seed: 1 }
    }
}

/// What an audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Attempts by second, from the first window to the last; some, or none at all.
    Attempts(Vec<u64>),
    /// Every retry follows at once, without end: no time passes, and nothing spreads.
    AtOnce,
    /// The backoff had ended before the first window.
    Ended {
        /// Retries of one client.
        retries: u64,
        /// When the last of them was.
        at: Span,
    },
    /// More attempts than are worth following.
    TooMany,
}

/// One client on its way through the backoff.
struct Walk {
    retries: u64,
    at: Timestamp,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It came to the end of the last window.
    Reached,
    /// The backoff ended.
    Ended,
    /// No time passes any more.
    AtOnce,
    /// It made more attempts than are followed.
    TooMany,
}

impl Audit {
    /// Audits a backoff.
    pub fn run(&self, backoff: &Backoff) -> Found {
        let first = self.walk(backoff, 0, &mut |_| {});
        match first.end {
            End::AtOnce => return Found::AtOnce,
            End::TooMany => return Found::TooMany,
            End::Ended if first.at < self.start() && !any_jitter(backoff) => {
                return Found::Ended { retries: first.retries, at: first.at.since(Timestamp::ZERO) };
            }
            End::Ended | End::Reached => {}
        }
        // Without jitter all clients are one.
        let (walked, each) = if any_jitter(backoff) { (self.clients, 1) } else { (1, u64::from(self.clients)) };
        if first.retries.saturating_mul(u64::from(walked)) > MOST {
            return Found::TooMany;
        }
        let mut counts = vec![0u64; self.to.saturating_sub(self.from) as usize];
        let mut total = 0;
        let (mut last, mut ended) = (Timestamp::ZERO, true);
        for client in 0..walked {
            let walk = self.walk(backoff, client, &mut |window| counts[window] += each);
            total += walk.retries;
            if total > MOST.saturating_mul(2) {
                return Found::TooMany;
            }
            last = last.max(walk.at);
            ended &= walk.end == End::Ended;
        }
        if ended && last < self.start() {
            return Found::Ended { retries: first.retries, at: last.since(Timestamp::ZERO) };
        }
        Found::Attempts(counts)
    }

    fn start(&self) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(u64::from(self.from))
    }

    /// Follows one client to the end of the last window; `book` is told the window of every attempt within them.
    fn walk(&self, backoff: &Backoff, client: u32, book: &mut dyn FnMut(usize)) -> Walk {
        let end = Timestamp::ZERO + Span::from_secs(u64::from(self.to));
        let mut walk = Walk { retries: 0, at: Timestamp::ZERO, end: End::Reached };
        let (mut previous, mut still) = (None, 0);
        for failed_attempt in 1u32.. {
            let key = Key { seed: self.seed, client, attempt: failed_attempt, ..Key::default() };
            let draw = key.stream(Purpose::Backoff).unit();
            let Some(wait) = backoff.wait(WaitInput { failed_attempt, previous, draw }) else {
                return Walk { end: End::Ended, ..walk };
            };
            still = if wait.is_zero() { still + 1 } else { 0 };
            if walk.at + wait >= end {
                return walk;
            }
            if still >= AT_ONCE || walk.retries >= MOST_OF_ONE {
                return Walk { end: if still >= AT_ONCE { End::AtOnce } else { End::TooMany }, ..walk };
            }
            walk.at += wait;
            walk.retries += 1;
            previous = Some(wait);
            let second = walk.at.0 / 1_000_000_000;
            if let Some(window) = second.checked_sub(u64::from(self.from)) {
                book(window as usize);
            }
        }
        walk
    }
}

fn any_jitter(backoff: &Backoff) -> bool {
    !matches!(backoff.jitter(), Jitter::None(_))
}

/// What the counts of an audit say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rhythm {
    /// Attempts per second, on average.
    pub mean: f64,
    /// Attempts of the busiest second.
    pub peak: u64,
    /// The busiest second, from the first window.
    pub peak_at: usize,
    /// The share of seconds without any attempt.
    pub quiet: f64,
}

impl Rhythm {
    /// That of counts by second; none where there is no attempt.
    pub fn of(counts: &[u64]) -> Option<Self> {
        let total: u64 = counts.iter().sum();
        let (peak_at, peak) = counts.iter().copied().enumerate().max_by_key(|&(at, n)| (n, std::cmp::Reverse(at)))?;
        let quiet = counts.iter().filter(|n| **n == 0).count();
        let windows = counts.len() as f64;
        (total > 0).then_some(Self { mean: total as f64 / windows, peak, peak_at, quiet: quiet as f64 / windows })
    }

    /// How many times the mean the busiest second is: 1 where clients are spread out, and as many as there are seconds
    /// from one retry to the next where they march in step.
    pub fn peak_to_mean(&self) -> f64 {
        self.peak as f64 / self.mean
    }
}

/// The wait before one retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The retry, from 1.
    pub retry: u32,
    /// Where every draw so far was 0: no wait is shorter.
    pub least: Span,
    /// Where every draw so far was 1/2.
    pub middle: Span,
    /// Where every draw so far was 1: no wait is longer.
    pub most: Span,
}

/// The waits before the first retries, as many as there are up to `most`.
pub fn ranges(backoff: &Backoff, most: u32) -> Vec<Range> {
    let mut previous = [None; 3];
    let mut found = Vec::new();
    for retry in 1..=most {
        let mut waits = [Span::ZERO; 3];
        for ((wait, previous), draw) in waits.iter_mut().zip(&mut previous).zip([0.0, 0.5, 1.0]) {
            match backoff.wait(WaitInput { failed_attempt: retry, previous: *previous, draw }) {
                Some(next) => (*wait, *previous) = (next, Some(next)),
                None => return found,
            }
        }
        found.push(Range { retry, least: waits[0], middle: waits[1], most: waits[2] });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::{Additive, Plain, Proportional, Side};
    use crate::policy::backoff::{AfterLast, Clamp, Exponential, Fixed, Schedule};
    use crate::time::Share;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn exponential(base: u64, cap: u64, jitter: Jitter) -> Exponential {
        Exponential { cap: Some(ms(cap)), jitter, ..Exponential::new(ms(base)) }
    }

    /// The published table: mean per second within 3%, peak over mean within 10%.
    #[test]
    fn the_published_table_of_phase_lock() {
        let full = || Jitter::Full(Plain {});
        let second = Jitter::Additive(Additive { range: ms(1_000) });
        let above = Jitter::Proportional(Proportional { share: Share::new(0.99).unwrap(), side: Side::Above });
        let late = |exponential| Exponential { clamp: Clamp::AfterJitter, ..exponential };
        for (name, exponential, mean, peak) in [
            ("2 s x 2, cap 60 s", exponential(2_000, 60_000, Jitter::none()), 167.0, 60.0),
            (
                "Azure core Python",
                Exponential { zero_first_retry: true, ..exponential(800, 120_000, Jitter::none()) },
                67.0,
                150.0,
            ),
            ("tenacity, max 60 s", late(exponential(1_000, 60_000, second)), 167.0, 26.0),
            ("tower, 50 ms to 30 s", late(exponential(50, 30_000, above)), 333.0, 2.4),
            ("decorrelated 0.5 s / 30 s", exponential(500, 30_000, Jitter::Decorrelated(Plain {})), 594.0, 1.10),
            ("AWS standard, cap 20 s", exponential(1_000, 20_000, full()), 996.0, 1.09),
            ("full jitter 0.5 s / 30 s", exponential(500, 30_000, full()), 665.0, 1.08),
        ] {
            let Found::Attempts(counts) = Audit::default().run(&Backoff::Exponential(exponential)) else { panic!("{name}") };
            let rhythm = Rhythm::of(&counts).unwrap();
            let found = rhythm.peak_to_mean();
            assert!((rhythm.mean / mean - 1.0).abs() <= 0.03, "{name}: mean {} for {mean}", rhythm.mean);
            assert!((found / peak - 1.0).abs() <= 0.1, "{name}: peak/mean {found} for {peak}");
        }
    }

    #[test]
    fn what_cannot_be_counted_is_told_in_bounded_time() {
        let schedule = |waits: &[u64], after_last| {
            let waits = waits.iter().map(|wait| ms(*wait)).collect();
            Backoff::Schedule(Schedule { waits, after_last, jitter: Jitter::none(), floor: Span::ZERO })
        };
        let full = Jitter::Full(Plain {});
        let audit = Audit { clients: 100, from: 10, to: 20, seed: 1 };
        for (name, backoff, want) in [
            ("none", Backoff::none(), Found::AtOnce),
            ("a table that comes to nothing", schedule(&[5_000, 0], AfterLast::Repeat), Found::AtOnce),
            ("a nanosecond", Backoff::Fixed(Fixed::new(Span(1))), Found::TooMany),
            ("jitter on nothing", Backoff::Fixed(Fixed { jitter: full.clone(), ..Fixed::new(Span::ZERO) }), Found::AtOnce),
            ("a table", schedule(&[0, 5_000], AfterLast::End), Found::Ended { retries: 2, at: ms(5_000) }),
            ("a table within", schedule(&[5_000, 6_000], AfterLast::End), Found::Attempts(vec![0, 100, 0, 0, 0, 0, 0, 0, 0, 0])),
            ("a wait beyond the end", schedule(&[1_000, 60_000], AfterLast::End), Found::Attempts(vec![0; 10])),
            ("fixed", Backoff::Fixed(Fixed::new(ms(5_000))), Found::Attempts(vec![100, 0, 0, 0, 0, 100, 0, 0, 0, 0])),
        ] {
            assert_eq!(audit.run(&backoff), want, "{name}");
        }
        assert_eq!(Rhythm::of(&[0; 10]), None);
        let rhythm = Rhythm::of(&[100, 0, 0, 0, 0, 100, 0, 0, 0, 0]).unwrap();
        assert_eq!((rhythm.peak_to_mean(), rhythm.peak_at, rhythm.quiet), (5.0, 0, 0.8));
        let quick = Backoff::Fixed(Fixed { jitter: full, ..Fixed::new(ms(1)) });
        assert_eq!(Audit::default().run(&quick), Found::TooMany);
    }

    #[test]
    fn a_seed_gives_the_same_again() {
        let backoff = Backoff::Exponential(exponential(500, 5_000, Jitter::Full(Plain {})));
        let run = |seed| Audit { clients: 50, from: 10, to: 30, seed }.run(&backoff);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn ranges_follow_the_draws_through_the_waits_before() {
        let decorrelated = Backoff::Exponential(exponential(500, 30_000, Jitter::Decorrelated(Plain {})));
        let seconds = |range: Range| [range.least, range.middle, range.most].map(|wait| wait.as_millis());
        let found: Vec<_> = ranges(&decorrelated, 4).into_iter().map(seconds).collect();
        assert_eq!(found, [[500, 1_000, 1_500], [500, 1_750, 4_500], [500, 2_875, 13_500], [500, 4_562, 30_000]]);
        let waits = vec![ms(1), ms(2)];
        let (after_last, jitter) = (AfterLast::End, Jitter::none());
        let ends = Backoff::Schedule(Schedule { waits, after_last, jitter, floor: Span::ZERO });
        assert_eq!(ranges(&ends, 10).len(), 2);
    }
}
