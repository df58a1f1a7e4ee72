//! The wait before a retry: one shape, one file.

pub mod exponential;
pub mod fixed;
pub mod jitter;
pub mod none;

use crate::choice;
use crate::time::Span;

pub use exponential::Exponential;
pub use fixed::Fixed;
pub use jitter::Jitter;
pub use none::NoBackoff;

choice! {
    /// The wait before a retry.
    pub enum Backoff {
        /// At once.
        none => None(NoBackoff),
        /// The same wait every time.
        fixed => Fixed(Fixed),
        /// A wait that grows by a factor up to a cap.
        exponential => Exponential(Exponential),
    }
}

/// What a wait depends on. `draw` is uniform in [0, 1]; tests pin it.
#[derive(Clone, Copy, Debug)]
pub struct WaitInput {
    /// The number of the attempt that failed, from 1, within its pass.
    pub failed_attempt: u32,
    /// The wait before it; none where it was the first.
    pub previous: Option<Span>,
    /// Uniform in [0, 1].
    pub draw: f64,
}

impl Backoff {
    /// Retries at once.
    pub const fn none() -> Self {
        Self::None(NoBackoff {})
    }

    /// The wait before the next attempt.
    pub fn wait(&self, input: WaitInput) -> Span {
        match self {
            Self::None(none) => none.wait(),
            Self::Fixed(fixed) => fixed.wait(input),
            Self::Exponential(exponential) => exponential.wait(input),
        }
    }
}
