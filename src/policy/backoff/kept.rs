//! From the plain wait of a shape to the wait that is kept: cap and jitter in the order that `clamp` says, then the
//! floor; or nothing at all before the first retry. It is the same for every shape that grows.

use super::{Jitter, WaitInput};
use crate::keyword;
use crate::time::Span;

keyword! {
    /// Whether the cap acts before or after the jitter.
    pub enum Clamp {
        /// The jitter spreads the capped wait.
        before_jitter => BeforeJitter,
        /// The cap cuts the jittered wait: at the cap the jitter is gone, and clients march in step.
        after_jitter => AfterJitter,
    }
}

/// What acts on the plain wait of a shape.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// The shape's first wait, which the decorrelated jitter starts from.
    pub base: Span,
    /// The longest wait.
    pub cap: Span,
    /// The random part.
    pub jitter: &'a Jitter,
    /// Whether the cap acts before or after the jitter.
    pub clamp: Clamp,
    /// The shortest wait, whatever jitter and cap have made of it.
    pub floor: Span,
    /// Whether the first retry follows at once.
    pub zero_first_retry: bool,
}

impl Kept<'_> {
    /// What is waited where the shape alone would wait `plain`.
    pub fn wait(&self, plain: Span, input: WaitInput) -> Span {
        if self.zero_first_retry && input.failed_attempt <= 1 {
            return Span::ZERO;
        }
        let wait = match self.clamp {
            Clamp::BeforeJitter => self.jitter.apply(plain.min(self.cap), self.base, self.cap, input),
            Clamp::AfterJitter => self.jitter.apply(plain, self.base, self.cap, input).min(self.cap),
        };
        wait.max(self.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::backoff::jitter::{Additive, Plain};

    #[test]
    fn the_parts_act_in_their_order() {
        let additive = Jitter::Additive(Additive { range: Span::from_millis(100) });
        let full = Jitter::Full(Plain {});
        let decorrelated = Jitter::Decorrelated(Plain {});
        let ms = Span::from_millis;
        let kept = |jitter, clamp, floor, zero_first_retry| Kept {
            base: ms(10),
            cap: ms(1_000),
            jitter,
            clamp,
            floor: ms(floor),
            zero_first_retry,
        };
        use Clamp::{AfterJitter as After, BeforeJitter as Before};
        for (name, kept, plain, failed_attempt, draw, want) in [
            ("before: above the cap", kept(&additive, Before, 0, false), 5_000, 3, 1.0, 1_100),
            ("after: at the cap", kept(&additive, After, 0, false), 5_000, 3, 1.0, 1_000),
            ("the floor", kept(&full, Before, 50, false), 1_000, 1, 0.0, 50),
            ("above the floor", kept(&full, Before, 50, false), 1_000, 1, 0.5, 500),
            ("the first at once, floor or not", kept(&additive, Before, 50, true), 10, 1, 1.0, 0),
            ("the second as ever", kept(&additive, Before, 50, true), 20, 2, 1.0, 120),
            ("decorrelated starts at the base all the same", kept(&decorrelated, Before, 0, true), 20, 2, 1.0, 30),
        ] {
            let previous = (failed_attempt > 1).then_some(Span::ZERO);
            let wait = kept.wait(ms(plain), WaitInput { failed_attempt, previous, draw });
            assert_eq!(wait, ms(want), "{name}");
        }
    }
}
