//! The shape of a fault in time: it comes and goes slowly, acts and rests in turn, or comes again.

use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// The fault's harm grows evenly from nothing, and wanes again at its end.
    pub struct Ramp {
        /// How long it takes to grow, from the fault's start.
        r#in: Span = Span::ZERO,
        /// How long it takes to wane, up to the fault's end.
        out: Span = Span::ZERO,
    } => |ramp: &Ramp| match (ramp.r#in.is_zero(), ramp.out.is_zero()) {
        (true, true) => Err("a ramp has an `in`, an `out`, or both: such as `ramp: { in: 10s }`".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// The fault acts and rests in turn.
    pub struct Flap {
        /// How long it acts.
        on: Span,
        /// How long it rests behind that.
        off: Span,
    } => |flap: &Flap| match (flap.on.is_zero(), flap.off.is_zero()) {
        (true, _) => Err("`on` is nothing: the fault would never act; such as `flap: { on: 2s, off: 3s }`".to_string()),
        (_, true) => Err("`off` is nothing: the fault would never rest; leave `flap` out".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// The fault comes again.
    pub struct Repeat {
        /// From one start to the next.
        every: Span,
        /// How many times it comes in all.
        times: u32,
    } => |repeat: &Repeat| match repeat.times {
        0 | 1 => Err("`times` counts all of them: 2 or more; leave `repeat` out for a fault that comes once".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// The shape of a fault in time.
    pub struct TimeShape {
        /// Its harm grows evenly from nothing and wanes at its end: the delay of `latency` and the pauses of `slow_body`; of the
        /// others the share of the requests that they strike.
        ramp: Option<Ramp>,
        /// It acts and rests in turn. A rest is no end: the fault, and what is to be recovered from, lasts from `at` for `for`.
        flap: Option<Flap>,
    }
}

impl TimeShape {
    /// All of it, all the time.
    pub const FULL: Self = Self { ramp: None, flap: None };

    /// How much of its harm a fault does at a moment between its start and its end, from 0 to 1.
    pub fn level(&self, from: Timestamp, to: Timestamp, now: Timestamp) -> f64 {
        let Some(ramp) = &self.ramp else { return 1.0 };
        let part = |passed: Span, of: Span| if passed >= of { 1.0 } else { passed.0 as f64 / of.0 as f64 };
        part(now.since(from), ramp.r#in).min(part(to.since(now), ramp.out))
    }

    /// Whether a fault that began at `from` rests at a moment.
    pub fn rests(&self, from: Timestamp, now: Timestamp) -> bool {
        self.flap.as_ref().is_some_and(|flap| {
            let period = flap.on.0.saturating_add(flap.off.0).max(1);
            now.since(from).0 % period >= flap.on.0
        })
    }

    /// When a fault that began at `from` begins to rest, or to act again, after a moment; none where it does neither.
    pub fn next_turn(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let flap = self.flap.as_ref()?;
        let period = flap.on.0.saturating_add(flap.off.0).max(1);
        let passed = now.since(from).0 % period;
        let turn = if passed < flap.on.0 { flap.on.0 } else { period };
        Some(now + Span(turn - passed))
    }

    /// The moments between a fault's start and its end at which it begins to rest or to act again; so many at most.
    pub fn turns(&self, from: Timestamp, to: Timestamp, most: usize) -> Vec<Timestamp> {
        let Some(flap) = &self.flap else { return Vec::new() };
        let spans = [flap.on, flap.off];
        let turns = (0..most).scan(from, |at, n| {
            *at += spans[n % 2];
            Some(*at)
        });
        turns.take_while(|&at| at < to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Span::from_millis(millis)
    }

    fn ramp(r#in: u64, out: u64) -> TimeShape {
        TimeShape { ramp: Some(Ramp { r#in: Span::from_secs(r#in), out: Span::from_secs(out) }), ..TimeShape::FULL }
    }

    #[test]
    fn a_ramp_grows_and_wanes_evenly() {
        let level = |shape: &TimeShape, millis| shape.level(at(10_000), at(20_000), at(millis));
        let both = ramp(4, 2);
        for (millis, wanted) in [
            (10_000, 0.0),
            (11_000, 0.25),
            (12_000, 0.5),
            (14_000, 1.0),
            (17_999, 1.0),
            (19_000, 0.5),
            (19_500, 0.25),
            (20_000, 0.0),
        ] {
            assert!((level(&both, millis) - wanted).abs() < 1e-9, "{millis}: {}", level(&both, millis));
        }
        assert_eq!((level(&ramp(4, 0), 19_999), level(&ramp(0, 4), 10_000)), (1.0, 1.0));
        assert_eq!(level(&TimeShape::FULL, 10_000), 1.0);
    }

    #[test]
    fn a_flap_acts_first_and_rests_then() {
        let shape = TimeShape { flap: Some(Flap { on: Span::from_secs(2), off: Span::from_secs(3) }), ..TimeShape::FULL };
        let rests: Vec<bool> = (10..21).map(|second| shape.rests(at(10_000), at(second * 1_000))).collect();
        assert_eq!(rests, [false, false, true, true, true, false, false, true, true, true, false]);
        assert_eq!(shape.turns(at(10_000), at(20_000), 100), [at(12_000), at(15_000), at(17_000)]);
        assert_eq!(shape.turns(at(10_000), at(20_000), 1), [at(12_000)]);
        for (now, turn) in [(10_000, 12_000), (11_999, 12_000), (12_000, 15_000), (14_500, 15_000), (15_000, 17_000)] {
            assert_eq!(shape.next_turn(at(10_000), at(now)), Some(at(turn)), "{now}");
        }
        assert!(TimeShape::FULL.turns(at(0), at(9), 9).is_empty() && !TimeShape::FULL.rests(at(0), at(9)));
        for turn in shape.turns(at(10_000), at(90_000), 100).chunks(2) {
            assert!(shape.rests(at(10_000), turn[0]), "what begins at a moment does so at that moment");
            assert!(turn.get(1).is_none_or(|&again| !shape.rests(at(10_000), again)));
        }
    }
}
