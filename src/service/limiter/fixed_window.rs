//! A fixed window: at most so many requests in each window, and the windows begin where the run does. Around the
//! end of a window twice as many pass within a moment, which a [`sliding_log`](super::sliding_log) does not allow.

use super::shared::Shared;
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// A fixed window: at most so many requests in each. Rejected ones that count change nothing, since the next window starts at none.
    pub struct FixedWindow {
        /// How many requests.
        limit: u32,
        /// The window.
        window: Span = Span::from_secs(1);
        with
        /// What all limiters share.
        shared: Shared,
    } => |f: &FixedWindow| {
        if f.limit == 0 {
            return Err("`limit` must be 1 or more: a window for nothing lets nothing through".to_string());
        }
        if f.window.is_zero() {
            return Err("`window` must be above zero: write `1s`".to_string());
        }
        Ok(())
    }
}

/// The state of a fixed window.
#[derive(Clone, Debug)]
pub struct Window {
    limit: u32,
    window: Span,
    /// Which window it is, from 0.
    number: u64,
    passed: u32,
}

impl Window {
    /// A window in which nothing has passed.
    pub fn new(config: &FixedWindow) -> Self {
        // A plan's window is above zero; one made in code that is not counts as the shortest.
        Self { limit: config.limit, window: config.window.max(Span(1)), number: 0, passed: 0 }
    }

    /// Whether a request at this moment passes.
    pub fn admit(&mut self, now: Timestamp) -> bool {
        let number = now.0 / self.window.0;
        if number != self.number {
            (self.number, self.passed) = (number, 0);
        }
        let passes = self.passed < self.limit;
        self.passed += u32::from(passes);
        passes
    }

    /// Whether it behaves as one that has seen nothing.
    pub fn is_new(&self, now: Timestamp) -> bool {
        self.passed == 0 || now.0 / self.window.0 != self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn it_agrees_with_the_definition() {
        for round in 0..100u64 {
            let mut stream = Key { seed: 4, operation: round, ..Key::default() }.stream(Purpose::Arrival);
            let (limit, window) = (1 + (round % 5) as u32, 1 + round % 13);
            let mut state = Window::new(&FixedWindow { limit, window: Span(window), shared: Shared::plain() });
            let (mut now, mut passed) = (Timestamp::ZERO, Vec::<u64>::new());
            for step in 0..400 {
                now += Span(stream.bits() % 4);
                let in_this = passed.iter().filter(|at| **at / window == now.0 / window).count();
                assert_eq!(state.is_new(now), in_this == 0, "round {round}, step {step}");
                let passes = in_this < limit as usize;
                assert_eq!(state.admit(now), passes, "round {round}, step {step}");
                passed.extend(passes.then_some(now.0));
            }
        }
    }

    #[test]
    fn two_windows_worth_pass_around_a_boundary() {
        let config = FixedWindow { limit: 100, window: Span::from_secs(1), shared: Shared::plain() };
        let mut window = Window::new(&config);
        let passed = |window: &mut Window, at: u64| (0..500).filter(|_| window.admit(Timestamp(at))).count();
        assert_eq!((passed(&mut window, 999_999_999), passed(&mut window, 1_000_000_000)), (100, 100));
    }
}
