//! Google SRE's adaptive throttling: a client refuses its own attempts once the service accepts too few of them.
//!
//! The chance of a refusal is max(0, (requests − K · accepts) / (requests + 1)) over the last two minutes, where
//! requests are all that the client wanted to send, those that it refused itself included. So some always get through as
//! probes, and it lets K times as many through as are accepted. Source: Site Reliability Engineering, chapter "Handling Overload".

use super::{Admission, is_overload};
use crate::event::AttemptOutcome;
use crate::policy::breaker::SharedBy;
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// Refuses an attempt locally with probability max(0, (requests − k · accepts) / (requests + 1)).
    pub struct SreConfig {
        /// How many attempts are let through for each that the service accepts.
        k: f64 = 2.0,
        /// How far back requests and accepts count, in tenths of it.
        window: Span = Span::from_secs(120),
        /// Who shares it: `client` or `fleet`.
        tier: SharedBy,
    } => SreConfig::check
}

impl SreConfig {
    fn check(&self) -> Result<(), String> {
        if !(1.0..=1000.0).contains(&self.k) {
            return Err(format!("`k` is {}: expected 1 to 1000; under 1 it would refuse what the service accepts", self.k));
        }
        if self.window < Span::from_millis(10) || self.window > Span::from_secs(86_400) {
            return Err(format!("`window` is {}: expected 10ms to 24h", self.window));
        }
        Ok(())
    }
}

/// Slots of the window; the oldest leaves as a whole.
const SLOTS: usize = 10;

/// Requests and accepts within the window.
#[derive(Clone, Debug)]
pub struct Sre {
    k: f64,
    slot: Span,
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    number: u64,
    requests: u32,
    accepts: u32,
}

impl Sre {
    /// Nothing requested.
    pub fn new(config: &SreConfig) -> Self {
        Self { k: config.k, slot: Span((config.window / SLOTS as u64).0.max(1)), slots: Default::default() }
    }

    /// The chance that an attempt is refused now.
    pub fn chance(&self, now: Timestamp) -> f64 {
        let oldest = now.0 / self.slot.0;
        let there = self.slots.iter().filter(|slot| slot.number + SLOTS as u64 > oldest);
        let (requests, accepts) =
            there.fold((0.0, 0.0), |(r, a), slot| (r + f64::from(slot.requests), a + f64::from(slot.accepts)));
        ((requests - self.k * accepts) / (requests + 1.0)).max(0.0)
    }

    /// Whether an attempt may be sent now; it counts as requested either way.
    pub fn admit(&mut self, now: Timestamp, draw: f64) -> Admission {
        let is_refused = draw < self.chance(now);
        let slot = self.slot_of(now);
        slot.requests = slot.requests.saturating_add(1);
        if is_refused { Admission::Refused } else { Admission::Now }
    }

    /// An attempt has ended.
    pub fn ended(&mut self, now: Timestamp, outcome: AttemptOutcome) {
        if !is_overload(outcome) {
            let slot = self.slot_of(now);
            slot.accepts = slot.accepts.saturating_add(1);
        }
    }

    fn slot_of(&mut self, now: Timestamp) -> &mut Slot {
        let number = now.0 / self.slot.0;
        let slot = &mut self.slots[(number % SLOTS as u64) as usize];
        if slot.number != number {
            *slot = Slot { number, ..Slot::default() };
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    fn sre() -> Sre {
        Sre::new(&SreConfig { k: 2.0, window: Span::from_secs(120), tier: SharedBy::Client })
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_secs(secs)
    }

    #[test]
    fn the_chance_is_the_books() {
        for (requests, accepts, want) in
            [(0, 0, 0.0), (1, 0, 0.5), (10, 10, 0.0), (10, 5, 0.0), (10, 4, 2.0 / 11.0), (99, 0, 0.99), (99, 45, 0.09)]
        {
            let mut s = sre();
            (0..requests).for_each(|_| assert_eq!(s.admit(at(1), 1.0), Admission::Now));
            (0..accepts).for_each(|_| s.ended(at(1), AttemptOutcome::Success));
            assert!((s.chance(at(1)) - want).abs() < 1e-12, "{requests}, {accepts}: {}", s.chance(at(1)));
            assert_eq!(s.chance(at(121)), 0.0, "two minutes later it is forgotten");
        }
    }

    /// A service that accepts ten a second of a hundred.
    #[test]
    fn it_sends_twice_what_is_accepted() {
        let (mut s, mut sent) = (sre(), 0);
        for second in 0..600u64 {
            let mut accepted = 0;
            for n in 0..100 {
                let now = at(second) + Span::from_millis(n * 10);
                let draw = Key { operation: second * 100 + n, ..Key::default() }.stream(Purpose::Backoff).unit();
                if s.admit(now, draw) == Admission::Refused {
                    continue;
                }
                sent += u32::from(second >= 300);
                accepted += 1;
                s.ended(now, if accepted <= 10 { AttemptOutcome::Success } else { AttemptOutcome::Status(503) });
            }
        }
        assert!((5_700..6_300).contains(&sent), "20/s over 300 s: {sent}");
    }

    #[test]
    fn an_error_that_the_service_made_itself_is_accepted() {
        for (outcome, accepted) in [
            (AttemptOutcome::Success, true),
            (AttemptOutcome::Status(404), true),
            (AttemptOutcome::Status(500), true),
            (AttemptOutcome::Status(429), false),
            (AttemptOutcome::Status(503), false),
            (AttemptOutcome::Timeout, false),
            (AttemptOutcome::Connect, false),
        ] {
            let mut s = sre();
            (0..2).for_each(|_| assert_eq!(s.admit(at(1), 1.0), Admission::Now));
            s.ended(at(1), outcome);
            assert_eq!(s.chance(at(1)) == 0.0, accepted, "{outcome:?}");
        }
    }
}
