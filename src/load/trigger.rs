//! Everybody at one moment.

use super::{Crowd, Next, Step};
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// Every client offers one operation at one moment.
    pub struct Trigger {
        /// The moment.
        at: Span,
        /// The moment of each client is later by U(0, spread).
        spread: Span = Span::ZERO,
    }
}

impl Trigger {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        if step.number > 0 {
            return Next::Never;
        }
        let later = self.spread.scale(crowd.draws(step.client, 0).unit());
        Next::At(Timestamp::ZERO + self.at + later)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;

    #[test]
    fn every_client_comes_once_within_the_spread() {
        let load = Load::Trigger(Trigger { at: Span::from_secs(5), spread: Span::from_secs(1) });
        let end = Timestamp::ZERO + Span::from_secs(60);
        let all = starts(&load, 1, 1000, end);
        assert_eq!(all.len(), 1000);
        let (first, last) = (all[0].0.as_secs_f64(), all[999].0.as_secs_f64());
        assert!((5.0..5.02).contains(&first) && (5.98..6.0).contains(&last), "{first} {last}");
        let exact = Load::Trigger(Trigger { at: Span::from_secs(5), spread: Span::ZERO });
        assert!(starts(&exact, 1, 10, end).iter().all(|(at, _)| at.0 == 5_000_000_000));
    }
}
