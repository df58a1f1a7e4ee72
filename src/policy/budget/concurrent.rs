//! A budget of retries at one time, as Envoy has it: a number, or a share of the attempts on the wire.
//!
//! A retry counts from when it is granted, through its backoff, until its attempt ends or it is forgone. The share is of attempts on the
//! wire, first attempts and retries; Envoy adds requests that wait for one of its own connections, which a client here does not
//! have. Both numbers stand in one word, so that a grant is decided on both at one moment. Source: Envoy's circuit breakers,
//! `max_retries` (3) and `retry_budget` (20%, at least 3).

use super::ONE;
use crate::record;
use crate::time::{Share, Span};
use std::sync::atomic::{AtomicU64, Ordering};

record! {
    /// Retries at one time: at most `max`, or a `share` of the attempts on the wire.
    pub struct ConcurrentConfig {
        /// The most retries at one time; or, in its place, `share`.
        max: Option<u32>,
        /// Retries at one time, as a share of the attempts on the wire.
        share: Option<Share>,
        /// With `share`: so many are always allowed; 3 where nothing is said.
        at_least: Option<u32>,
    } => ConcurrentConfig::check
}

/// As many are allowed whatever the share, where nothing is said.
const USUALLY_AT_LEAST: u32 = 3;
/// The largest number: an operation with a retry is held in memory.
const MAX: u32 = 10_000_000;

impl ConcurrentConfig {
    fn check(&self) -> Result<(), String> {
        match (self.max, self.share) {
            (None, None) => return Err("`concurrent` needs `max: 3`, or `share: 20%`".into()),
            (Some(_), Some(_)) => return Err("`max` and `share` exclude each other: keep one".into()),
            (Some(0), _) => return Err("`max` is 0: that never retries; write `attempts: 1`".into()),
            (Some(_), _) if self.at_least.is_some() => {
                return Err("`at_least` goes with `share`: `max` is a number already".into());
            }
            _ => {}
        }
        match self.max.or(self.at_least) {
            Some(n) if n > MAX => Err(format!("{n} retries at one time: {MAX} at most")),
            _ => Ok(()),
        }
    }

    /// The share, in billionths, and how many are always allowed.
    fn limit(&self) -> (u64, u32) {
        match (self.share, self.max) {
            (Some(share), _) => (Span::from_secs_f64(share.get()).0, self.at_least.unwrap_or(USUALLY_AT_LEAST)),
            (None, max) => (0, max.unwrap_or_default()),
        }
    }
}

/// Attempts on the wire and retries granted. Lock-free.
#[derive(Debug)]
pub struct Concurrent {
    share: u64,
    at_least: u32,
    /// Attempts on the wire in the upper half, retries in the lower.
    both: AtomicU64,
}

/// One attempt on the wire.
const ATTEMPT: u64 = 1 << 32;

impl Concurrent {
    /// Nothing on the wire.
    pub fn new(config: &ConcurrentConfig) -> Self {
        let (share, at_least) = config.limit();
        Self { share, at_least, both: AtomicU64::new(0) }
    }

    /// An attempt goes on the wire.
    pub fn sent(&self) {
        self.both.fetch_add(ATTEMPT, Ordering::Relaxed);
    }

    /// Grants a retry, if one more is allowed.
    pub fn spend(&self) -> bool {
        let one_more = |word| {
            let (_, retries) = split(word);
            (retries < self.allowed(word)).then_some(word + 1)
        };
        self.both.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    /// An attempt has ended.
    pub fn ended(&self, retry: bool) {
        self.leave(true, retry);
    }

    /// A retry that was granted is not sent.
    pub fn forgone(&self) {
        self.leave(false, true);
    }

    /// How many more retries are allowed now.
    pub fn balance(&self) -> f64 {
        let word = self.both.load(Ordering::Relaxed);
        self.allowed(word).saturating_sub(split(word).1) as f64
    }

    fn allowed(&self, word: u64) -> u64 {
        let (attempts, _) = split(word);
        (attempts.saturating_mul(self.share) / ONE).max(u64::from(self.at_least))
    }

    /// Neither number goes below nothing, whatever is told.
    fn leave(&self, attempt: bool, retry: bool) {
        let less = |word| {
            let (attempts, retries) = split(word);
            Some(attempts.saturating_sub(u64::from(attempt)) << 32 | retries.saturating_sub(u64::from(retry)))
        };
        // The closure always gives a value.
        let _ = self.both.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

fn split(word: u64) -> (u64, u64) {
    (word >> 32, word & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn of(max: Option<u32>, share: Option<f64>, at_least: Option<u32>) -> Concurrent {
        let config = ConcurrentConfig { max, share: share.map(|share| Share::new(share).unwrap()), at_least };
        config.check().unwrap();
        Concurrent::new(&config)
    }

    fn grants(c: &Concurrent) -> usize {
        (0..1_000).take_while(|_| c.spend()).count()
    }

    #[test]
    fn a_retry_counts_from_its_grant_until_its_end() {
        let c = of(Some(3), None, None);
        assert_eq!(grants(&c), 3);
        c.sent();
        assert!(!c.spend(), "on the wire it counts still");
        c.ended(true);
        assert!(c.spend() && !c.spend());
        c.forgone();
        assert!(c.spend() && !c.spend());
        c.sent();
        c.ended(false);
        assert!(!c.spend(), "the end of a first attempt frees nothing");
        for _ in 0..9 {
            c.ended(true);
        }
        assert_eq!(grants(&c), 3, "never more than the number, whatever is told");
    }

    #[test]
    fn the_share_is_of_what_is_on_the_wire() {
        for (on_wire, want) in [(0, 3), (10, 3), (15, 3), (19, 3), (20, 4), (100, 20), (104, 20)] {
            let c = of(None, Some(0.2), None);
            (0..on_wire).for_each(|_| c.sent());
            assert_eq!(grants(&c), want, "{on_wire} on the wire");
            assert_eq!(c.balance(), 0.0);
        }
        let c = of(None, Some(1.0), Some(0));
        assert!(!c.spend());
        c.sent();
        assert!(c.spend() && !c.spend());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (max, share, at_least, want) in [
            (None, None, None, "needs `max: 3`"),
            (Some(1), Some(Share::ALL), None, "exclude each other"),
            (Some(0), None, None, "never retries"),
            (Some(3), None, Some(3), "`at_least` goes with `share`"),
            (Some(u32::MAX), None, None, "at most"),
        ] {
            let message = ConcurrentConfig { max, share, at_least }.check().unwrap_err();
            assert!(message.contains(want), "{message}");
        }
    }

    #[test]
    fn two_threads_never_exceed_it() {
        let c = Arc::new(of(Some(1), None, None));
        let inside = Arc::new(AtomicU64::new(0));
        let work = || {
            let (c, inside) = (c.clone(), inside.clone());
            std::thread::spawn(move || {
                let mut granted = 0u32;
                for _ in 0..100_000 {
                    if c.spend() {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                        c.sent();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        c.ended(true);
                        granted += 1;
                    }
                }
                granted
            })
        };
        let (one, two) = (work(), work());
        assert!(one.join().unwrap() + two.join().unwrap() > 0);
        assert_eq!(c.balance(), 1.0, "nothing was lost");
    }
}
