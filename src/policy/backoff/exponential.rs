//! A wait that grows by a factor up to a cap.
//!
//! The power is taken by squaring with plain IEEE products, never by the platform's `pow`, so that every machine
//! waits the same. With the usual factors (2, 1.5) it is exact as far as a nanosecond matters, and any attempt
//! number costs at most 32 steps: what grows too large becomes infinite, and then the cap.

use super::kept::{Clamp, Kept};
use super::{Jitter, WaitInput};
use crate::record;
use crate::time::Span;

record! {
    /// A wait that grows by a factor up to a cap: base · multiplier^(n − 1 + first_exponent) after the n-th failure.
    pub struct Exponential {
        /// The first wait, where `first_exponent` is 0.
        base: Span,
        /// The longest wait; none for no cap.
        cap: Option<Span>,
        /// The factor from one wait to the next.
        multiplier: f64 = 2.0,
        /// Its random part.
        jitter: Jitter = Jitter::none(),
        /// 0: the first wait is the base; 1: it is base · multiplier.
        first_exponent: u32 = 0,
        /// Whether the cap acts before or after the jitter.
        clamp: Clamp = Clamp::BeforeJitter,
        /// The shortest wait, whatever jitter and cap have made of it.
        floor: Span = Span::ZERO,
        /// Whether the first retry follows at once; the others wait as if it had not.
        zero_first_retry: bool = false,
    } => |e: &Exponential| match e.multiplier.is_finite() && e.multiplier >= 1.0 {
        true => Ok(()),
        false => Err(format!("`multiplier` is {}: it must be 1 or more; for a steady wait use `fixed`", e.multiplier)),
    }
}

impl Exponential {
    /// A wait that doubles without a cap and without a random part.
    pub const fn new(base: Span) -> Self {
        Self {
            base,
            cap: None,
            multiplier: 2.0,
            jitter: Jitter::none(),
            first_exponent: 0,
            clamp: Clamp::BeforeJitter,
            floor: Span::ZERO,
            zero_first_retry: false,
        }
    }

    /// The wait before the next attempt.
    pub fn wait(&self, input: WaitInput) -> Span {
        let kept = Kept {
            base: self.base,
            cap: self.cap.unwrap_or(Span::MAX),
            jitter: &self.jitter,
            clamp: self.clamp,
            floor: self.floor,
            zero_first_retry: self.zero_first_retry,
        };
        let exponent = input.failed_attempt.saturating_sub(1).saturating_add(self.first_exponent);
        kept.wait(self.base.scale(power(self.multiplier, exponent)), input)
    }
}

/// `factor` to the power of `exponent`, by squaring.
fn power(factor: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, factor);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::{Additive, Plain, Proportional, Side};
    use crate::time::Share;

    fn shape(base_ms: u64, cap_ms: u64, jitter: Jitter) -> Exponential {
        let (base, cap) = (Span::from_millis(base_ms), Some(Span::from_millis(cap_ms)));
        Exponential { cap, jitter, ..Exponential::new(base) }
    }

    /// Waits in ms after failures 1.., each draw pinned.
    fn waits(e: &Exponential, n: u32, draw: f64) -> Vec<u64> {
        let mut previous = None;
        (1..=n)
            .map(|failed_attempt| {
                let wait = e.wait(WaitInput { failed_attempt, previous, draw });
                previous = Some(wait);
                assert_eq!(wait.0 % 1_000_000, 0, "{wait:?} is whole milliseconds");
                wait.as_millis()
            })
            .collect()
    }

    #[test]
    fn the_known_tables() {
        let full = || Jitter::Full(Plain {});
        let first_window = Exponential { first_exponent: 1, ..shape(5, 2000, full()) };
        let after = |jitter| Exponential { clamp: Clamp::AfterJitter, ..shape(1000, 4000, jitter) };
        let additive = || Jitter::Additive(Additive { range: Span::from_millis(100) });
        let sided = |share, side| Jitter::Proportional(Proportional { share: Share::new(share).unwrap(), side });
        let proportional = || sided(0.5, Side::Both);
        // The shapes of tower (50 ms to 30 s, 99% on top), of Stripe, and of Azure core and urllib3.
        let tower = || Exponential { clamp: Clamp::AfterJitter, ..shape(50, 30_000, sided(1.0, Side::Above)) };
        let stripe = || Exponential { floor: Span::from_millis(500), ..shape(500, 5000, Jitter::Equal(Plain {})) };
        let azure = Exponential { zero_first_retry: true, ..shape(800, 120_000, Jitter::none()) };
        for (name, e, draw, want) in [
            ("full at 1", shape(500, 30_000, full()), 1.0, vec![500, 1000, 2000, 4000, 8000, 16_000, 30_000]),
            ("full at 0", shape(500, 30_000, full()), 0.0, vec![0; 7]),
            ("none", shape(2000, 60_000, Jitter::none()), 0.5, vec![2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]),
            ("equal at 0", shape(1000, 5000, Jitter::Equal(Plain {})), 0.0, vec![500, 1000, 2000, 2500, 2500]),
            ("equal at 1", shape(1000, 5000, Jitter::Equal(Plain {})), 1.0, vec![1000, 2000, 4000, 5000, 5000]),
            ("decorrelated at 0", shape(500, 30_000, Jitter::Decorrelated(Plain {})), 0.0, vec![500; 4]),
            (
                "decorrelated at 1",
                shape(500, 30_000, Jitter::Decorrelated(Plain {})),
                1.0,
                vec![1500, 4500, 13_500, 30_000, 30_000],
            ),
            ("additive at 1", shape(1000, 4000, additive()), 1.0, vec![1100, 2100, 4100, 4100]),
            ("additive, cap after", after(additive()), 1.0, vec![1100, 2100, 4000, 4000]),
            ("proportional at 0", shape(1000, 4000, proportional()), 0.0, vec![500, 1000, 2000, 2000]),
            ("proportional at 1/2", shape(1000, 4000, proportional()), 0.5, vec![1000, 2000, 4000, 4000]),
            ("proportional at 1", shape(1000, 4000, proportional()), 1.0, vec![1500, 3000, 6000, 6000]),
            ("full, cap after", after(full()), 0.5, vec![500, 1000, 2000, 4000, 4000, 4000]),
            ("first exponent 1", first_window, 1.0, vec![10, 20, 40, 80]),
            ("above, at 0", tower(), 0.0, vec![50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]),
            ("above, at 1", tower(), 1.0, vec![100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]),
            ("below, at 0", shape(1000, 4000, sided(0.25, Side::Below)), 0.0, vec![750, 1500, 3000, 3000]),
            ("below, at 1", shape(1000, 4000, sided(0.25, Side::Below)), 1.0, vec![1000, 2000, 4000, 4000]),
            ("a floor, at 0", stripe(), 0.0, vec![500, 500, 1000, 2000, 2500, 2500]),
            ("a floor, at 1", stripe(), 1.0, vec![500, 1000, 2000, 4000, 5000]),
            ("the first at once", azure, 0.5, vec![0, 1600, 3200, 6400, 12_800, 25_600, 51_200, 102_400, 120_000, 120_000]),
        ] {
            assert_eq!(waits(&e, want.len() as u32, draw), want, "{name}");
        }
    }

    #[test]
    fn no_attempt_number_overflows() {
        for jitter in [Jitter::none(), Jitter::Full(Plain {}), Jitter::Equal(Plain {}), Jitter::Decorrelated(Plain {})] {
            for (multiplier, base, cap) in [
                (2.0, Span(1), Some(Span::from_secs(30))),
                (1e300, Span::MAX, None),
                (1.0, Span(7), None),
                (2.0, Span::ZERO, None),
            ] {
                let (first_exponent, clamp) = (u32::MAX, Clamp::AfterJitter);
                let jitter = jitter.clone();
                let e = Exponential { cap, multiplier, jitter, first_exponent, clamp, ..Exponential::new(base) };
                for failed_attempt in [0, 1, 2, 63, 64, 65, 1 << 31, u32::MAX] {
                    for draw in [0.0, 0.5, 1.0] {
                        let wait = e.wait(WaitInput { failed_attempt, previous: Some(Span::MAX), draw });
                        assert!(wait <= cap.unwrap_or(Span::MAX));
                    }
                }
            }
        }
    }

    #[test]
    fn a_fractional_multiplier_is_exact() {
        let e = Exponential { multiplier: 1.5, ..shape(512, 1_000_000, Jitter::none()) };
        assert_eq!(waits(&e, 8, 0.0), [512, 768, 1152, 1728, 2592, 3888, 5832, 8748]);
    }
}
