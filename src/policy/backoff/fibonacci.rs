//! A wait that grows as the Fibonacci numbers do: slower than doubling, at 1.618 times in the long run.

use super::kept::{Clamp, Kept};
use super::{Jitter, WaitInput};
use crate::record;
use crate::time::Span;

record! {
    /// A wait that grows by the sum of the two before it: base · 1, 1, 2, 3, 5, 8 and so on, up to a cap.
    pub struct Fibonacci {
        /// The first wait, and the second.
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

impl Fibonacci {
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
        kept.wait(self.base.times(number(input.failed_attempt)), input)
    }
}

/// The n-th Fibonacci number, from 1; what no longer fits, after the 93rd, saturates.
fn number(n: u32) -> u64 {
    let (mut this, mut next) = (1u64, 1u64);
    for _ in 1..n.min(100) {
        (this, next) = (next, this.saturating_add(next));
    }
    this
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::Plain;

    #[test]
    fn the_known_table() {
        let fibonacci = Fibonacci {
            base: Span::from_millis(100),
            cap: Some(Span::from_secs(1)),
            jitter: Jitter::none(),
            clamp: Clamp::BeforeJitter,
            floor: Span::ZERO,
            zero_first_retry: false,
        };
        let wait = |fibonacci: &Fibonacci, failed_attempt| {
            fibonacci.wait(WaitInput { failed_attempt, previous: None, draw: 0.5 }).as_millis()
        };
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(|n| wait(&fibonacci, n)), [100, 100, 200, 300, 500, 800, 1000, 1000]);
        let half = Fibonacci { jitter: Jitter::Full(Plain {}), ..fibonacci };
        assert_eq!([1, 4, 8, u32::MAX].map(|n| wait(&half, n)), [50, 150, 500, 500]);
        assert_eq!([0, 1, 2, 10, 93, 94, u32::MAX].map(number), [1, 1, 1, 55, 12_200_160_415_121_876_738, u64::MAX, u64::MAX]);
    }
}
