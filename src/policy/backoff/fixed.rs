//! The same wait before every retry.

use super::kept::{Clamp, Kept};
use super::{Jitter, WaitInput};
use crate::record;
use crate::time::Span;

record! {
    /// The same wait before every retry.
    pub struct Fixed {
        /// How long.
        delay: Span,
        /// Its random part.
        jitter: Jitter = Jitter::none(),
        /// The shortest wait, whatever the jitter has made of it.
        floor: Span = Span::ZERO,
        /// Whether the first retry follows at once.
        zero_first_retry: bool = false,
    }
}

impl Fixed {
    /// The same wait, without a random part.
    pub const fn new(delay: Span) -> Self {
        Self { delay, jitter: Jitter::none(), floor: Span::ZERO, zero_first_retry: false }
    }

    /// The wait before the next attempt. With decorrelated jitter, which needs a cap to be steady, it grows freely.
    pub fn wait(&self, input: WaitInput) -> Span {
        let Self { delay, jitter, floor, zero_first_retry } = self;
        let (base, cap, clamp) = (*delay, Span::MAX, Clamp::BeforeJitter);
        Kept { base, cap, jitter, clamp, floor: *floor, zero_first_retry: *zero_first_retry }.wait(base, input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::Additive;

    #[test]
    fn the_wait_does_not_depend_on_the_attempt() {
        let jitter = Jitter::Additive(Additive { range: Span::from_secs(1) });
        let fixed = Fixed { jitter, ..Fixed::new(Span::from_secs(5)) };
        for failed_attempt in [1, 2, 100, u32::MAX] {
            for (draw, want) in [(0.0, 5000), (0.5, 5500), (1.0, 6000)] {
                let wait = fixed.wait(WaitInput { failed_attempt, previous: Some(Span::from_secs(9)), draw });
                assert_eq!(wait, Span::from_millis(want));
            }
        }
    }
}
