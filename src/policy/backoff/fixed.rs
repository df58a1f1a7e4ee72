//! The same wait before every retry.

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
    }
}

impl Fixed {
    /// The wait before the next attempt. With decorrelated jitter, which needs a cap to be steady, it grows freely.
    pub fn wait(&self, input: WaitInput) -> Span {
        self.jitter.apply(self.delay, self.delay, Span::MAX, input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::Additive;

    #[test]
    fn the_wait_does_not_depend_on_the_attempt() {
        let fixed = Fixed { delay: Span::from_secs(5), jitter: Jitter::Additive(Additive { range: Span::from_secs(1) }) };
        for failed_attempt in [1, 2, 100, u32::MAX] {
            for (draw, want) in [(0.0, 5000), (0.5, 5500), (1.0, 6000)] {
                let wait = fixed.wait(WaitInput { failed_attempt, previous: Some(Span::from_secs(9)), draw });
                assert_eq!(wait, Span::from_millis(want));
            }
        }
    }
}
