//! The wait before a retry: one shape, one file.

pub mod exponential;
pub mod fibonacci;
pub mod fixed;
pub mod jitter;
mod kept;
pub mod linear;
pub mod none;
pub mod schedule;

use crate::choice;
use crate::time::Span;

pub use exponential::Exponential;
pub use fibonacci::Fibonacci;
pub use fixed::Fixed;
pub use jitter::Jitter;
pub use kept::Clamp;
pub use linear::Linear;
pub use none::NoBackoff;
pub use schedule::{AfterLast, Schedule};

choice! {
    /// The wait before a retry.
    pub enum Backoff {
        /// At once.
        none => None(NoBackoff),
        /// The same wait every time.
        fixed => Fixed(Fixed),
        /// A wait that grows by the same step.
        linear => Linear(Linear),
        /// Waits out of a table.
        schedule => Schedule(Schedule),
        /// A wait that grows by the sum of the two before it.
        fibonacci => Fibonacci(Fibonacci),
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

/// The numbers of a backoff, as a plan has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The key of the plain wait.
    pub key: &'static str,
    /// What is written there; the longest where there are several.
    pub written: Span,
    /// The longest wait.
    pub cap: Option<Span>,
    /// The shortest wait.
    pub floor: Span,
}

impl Backoff {
    /// Retries at once.
    pub const fn none() -> Self {
        Self::None(NoBackoff {})
    }

    /// The wait before the next attempt; none where the shape has ended, and no retry follows.
    pub fn wait(&self, input: WaitInput) -> Option<Span> {
        match self {
            Self::None(none) => Some(none.wait()),
            Self::Fixed(fixed) => Some(fixed.wait(input)),
            Self::Linear(linear) => Some(linear.wait(input)),
            Self::Schedule(schedule) => schedule.wait(input),
            Self::Fibonacci(fibonacci) => Some(fibonacci.wait(input)),
            Self::Exponential(exponential) => Some(exponential.wait(input)),
        }
    }

    /// What must make sense together: the plain waits' key and the longest of them that is written, the cap and the floor.
    pub fn numbers(&self) -> Numbers {
        let numbers = |key, written, cap, floor| Numbers { key, written, cap, floor };
        match self {
            Self::None(_) => numbers("", Span::ZERO, None, Span::ZERO),
            Self::Fixed(f) => numbers("delay", f.delay, None, f.floor),
            Self::Linear(l) => numbers("base", l.base, l.cap, l.floor),
            Self::Schedule(s) => numbers("waits", s.longest(), None, s.floor),
            Self::Fibonacci(f) => numbers("base", f.base, f.cap, f.floor),
            Self::Exponential(e) => numbers("base", e.base, e.cap, e.floor),
        }
    }

    /// The random part of its waits.
    pub fn jitter(&self) -> &Jitter {
        const NONE: Jitter = Jitter::none();
        match self {
            Self::None(_) => &NONE,
            Self::Fixed(fixed) => &fixed.jitter,
            Self::Linear(linear) => &linear.jitter,
            Self::Schedule(schedule) => &schedule.jitter,
            Self::Fibonacci(fibonacci) => &fibonacci.jitter,
            Self::Exponential(exponential) => &exponential.jitter,
        }
    }
}
