//! A token bucket, kept as one moment: when the bucket was, or will be, empty. Whole nanoseconds, so that evenly
//! spaced requests at exactly the rate are never refused by rounding. Rejected requests that count take a token too, and
//! drive the bucket into debt, down to one burst.

use super::shared::Shared;
use crate::record;
use crate::time::{Rate, Timestamp};

record! {
    /// A token bucket.
    pub struct TokenBucket {
        /// Tokens per second.
        rate: Rate,
        /// How many tokens it holds.
        burst: u32 = 1;
        with
        /// What all limiters share.
        shared: Shared,
    } => |t: &TokenBucket| {
        if t.burst == 0 {
            return Err("`burst` must be 1 or more: a bucket that holds nothing lets nothing through".to_string());
        }
        Ok(())
    }
}

/// The state of a token bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The time in which one token comes, in nanoseconds.
    token: i128,
    /// The time in which a whole bucket comes.
    full: i128,
    /// When the bucket was empty, had nothing overflowed since; ahead of now while it is in debt.
    empty_at: i128,
    count_rejected: bool,
}

impl Bucket {
    /// A full bucket.
    pub fn new(config: &TokenBucket) -> Self {
        let token = i128::from(config.rate.interval().0);
        let full = token * i128::from(config.burst);
        Self { token, full, empty_at: -full, count_rejected: config.shared.count_rejected }
    }

    /// Takes a token for a request at this moment; whether there was one.
    pub fn admit(&mut self, now: Timestamp) -> bool {
        let now = i128::from(now.0);
        self.empty_at = self.empty_at.max(now - self.full);
        if now - self.empty_at >= self.token {
            self.empty_at += self.token;
            return true;
        }
        if self.count_rejected {
            self.empty_at = (self.empty_at + self.token).min(now + self.full);
        }
        false
    }

    /// Whether it behaves as one that has seen nothing: it is full.
    pub fn is_new(&self, now: Timestamp) -> bool {
        i128::from(now.0) - self.empty_at >= self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn bucket(rate: &str, burst: u32, count_rejected: bool) -> Bucket {
        let rate = Rate::parse(rate).unwrap();
        Bucket::new(&TokenBucket { rate, burst, shared: Shared { count_rejected, ..Shared::plain() } })
    }

    /// How many of `n` requests pass, the first at `from` and one every `every` microseconds.
    fn passed(bucket: &mut Bucket, from: u64, every: u64, n: u64) -> usize {
        (0..n).filter(|i| bucket.admit(Timestamp::ZERO + Span::from_micros(from + i * every))).count()
    }

    #[test]
    fn the_rate_passes_for_ever_and_more_is_cut_to_it() {
        assert_eq!(passed(&mut bucket("100/s", 1, false), 0, 10_000, 10_000), 10_000, "exactly the rate");
        assert_eq!(passed(&mut bucket("100/s", 1, false), 0, 2_500, 4_000), 1_000, "four times the rate, 10 s");
        assert_eq!(passed(&mut bucket("100/s", 50, false), 0, 2_500, 4_000), 1_049, "the burst is had once");
        assert_eq!(passed(&mut bucket("0/s", 3, false), 0, 1_000_000, 100), 3, "no rate: the burst, and no more");
    }

    #[test]
    fn a_burst_fills_again_in_quiet_and_no_further() {
        let mut bucket = bucket("10/s", 5, false);
        assert_eq!(passed(&mut bucket, 0, 0, 20), 5);
        assert!(!bucket.is_new(Timestamp::ZERO));
        assert_eq!(passed(&mut bucket, 300_000, 0, 20), 3, "three tokens in 300 ms");
        assert_eq!([799, 800].map(|millis| bucket.is_new(Timestamp::ZERO + Span::from_millis(millis))), [false, true]);
        assert_eq!(passed(&mut bucket, 3_600_000_000, 0, 20), 5, "an hour fills it once");
    }

    #[test]
    fn counting_rejections_locks_a_storm_out_until_it_has_been_quiet_for_a_burst() {
        let mut bucket = bucket("100/s", 10, true);
        assert_eq!(passed(&mut bucket, 0, 2_500, 4_000), 13, "the burst and what came meanwhile, then nothing for 10 s");
        assert_eq!(passed(&mut bucket, 10_000_000 + 105_000, 0, 1), 0, "a debt of one burst takes 100 ms, a token 10 more");
        assert_eq!(passed(&mut bucket, 10_400_000, 0, 1), 1);
    }
}
