//! A wait that grows by the same step after every failure.

use super::kept::{Clamp, Kept};
use super::{Jitter, WaitInput};
use crate::record;
use crate::time::Span;

record! {
    /// A wait that grows by the same step: n · base after the n-th failure, up to a cap.
    pub struct Linear {
        /// The first wait, and the step from each to the next.
        base: Span,
        /// The longest wait; none for no cap.
        cap: Option<Span>,
        /// Its random part.
        jitter: Jitter = Jitter::none(),
        /// Whether the cap acts before or after the jitter.
        clamp: Clamp = Clamp::BeforeJitter,
        /// The shortest wait, whatever jitter and cap have made of it.
        floor: Span = Span::ZERO,
        /// Whether the first retry follows at once; the others wait as if it had not.
        zero_first_retry: bool = false,
    }
}

impl Linear {
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
        kept.wait(self.base.times(u64::from(input.failed_attempt)), input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_table() {
        let linear = Linear {
            base: Span::from_millis(500),
            cap: Some(Span::from_secs(2)),
            jitter: Jitter::none(),
            clamp: Clamp::BeforeJitter,
            floor: Span::ZERO,
            zero_first_retry: false,
        };
        let wait =
            |linear: &Linear, failed_attempt| linear.wait(WaitInput { failed_attempt, previous: None, draw: 0.5 }).as_millis();
        assert_eq!([1, 2, 3, 4, 5, u32::MAX].map(|n| wait(&linear, n)), [500, 1000, 1500, 2000, 2000, 2000]);
        let first = Linear { zero_first_retry: true, cap: None, ..linear };
        assert_eq!([1, 2, 3, 5].map(|n| wait(&first, n)), [0, 1000, 1500, 2500]);
        let endless = Linear { base: Span::MAX, ..first };
        assert_eq!(endless.wait(WaitInput { failed_attempt: u32::MAX, previous: None, draw: 0.5 }), Span::MAX);
    }
}
