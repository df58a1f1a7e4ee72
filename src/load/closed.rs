//! Closed load: the next operation starts when the last has ended.
//!
//! At the start of the run each client is somewhere in its pause, at U(0, think): a fleet that began in step would
//! measure its own start. Without a pause all begin at once, and only the target's answers spread them.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// Each client starts its next operation when its last one has ended, after a pause.
    pub struct Closed {
        /// The pause.
        think: Span = Span::ZERO,
    }
}

impl Closed {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        match (step.number, step.ended) {
            (0, _) => Next::At(Timestamp::ZERO + self.think.scale(crowd.draws(step.client, 0).unit())),
            (_, Some(ended)) => Next::At(ended + self.think),
            (_, None) => Next::WhenItEnds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_counts_from_the_end() {
        let crowd = Crowd::new(1, 0, 10);
        let closed = Closed { think: Span::from_secs(2) };
        let step = |number, ended| Step { client: 3, number, previous: Timestamp::ZERO, ended };
        let Next::At(first) = closed.next(&crowd, step(0, None)) else { panic!("it starts") };
        assert!(first < Timestamp::ZERO + Span::from_secs(2));
        assert_eq!(closed.next(&crowd, step(1, None)), Next::WhenItEnds);
        assert_eq!(closed.next(&crowd, step(1, Some(Timestamp(7)))), Next::At(Timestamp(2_000_000_007)));
        let eager = Closed { think: Span::ZERO };
        assert_eq!(eager.next(&crowd, step(0, None)), Next::At(Timestamp::ZERO));
    }
}
