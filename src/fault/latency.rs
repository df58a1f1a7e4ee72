//! Requests are delayed.

use super::{Dice, Effect};
use crate::record;
use crate::time::{Share, Span};

record! {
    /// Requests are delayed on their way to the upstream.
    pub struct Latency {
        /// The delay.
        add: Span,
        /// The delay varies by U(−jitter, +jitter), never below zero.
        jitter: Span = Span::ZERO,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    }
}

impl Latency {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if !dice.strikes_in_full(self.share) {
            return Effect::Pass;
        }
        // A ramp makes the delay grow, not the share.
        Effect::Delay(dice.around(self.add, self.jitter).scale(dice.level()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_delays_its_share_by_its_delay() {
        let ms = Span::from_millis;
        let latency = Latency { add: ms(50), jitter: ms(10), share: Share::new(0.5).unwrap() };
        let effects: Vec<Effect> = (0..1_000).map(|n| latency.effect(Request::ours(0, n, 1).dice(1, 0))).collect();
        let delays: Vec<Span> = effects.iter().filter_map(|e| if let Effect::Delay(d) = e { Some(*d) } else { None }).collect();
        assert!((440..560).contains(&delays.len()), "{}", delays.len());
        assert!(delays.iter().all(|d| (ms(40)..=ms(60)).contains(d)));
        assert!(delays.iter().any(|d| *d < ms(45)) && delays.iter().any(|d| *d > ms(55)), "the jitter uses its range");
        assert!(effects.iter().all(|e| matches!(e, Effect::Delay(_) | Effect::Pass)));
        let whole = Latency { add: ms(50), jitter: ms(0), share: Share::ALL };
        assert_eq!(whole.effect(Request::ours(0, 1, 1).dice(1, 0).at_level(0.5)), Effect::Delay(ms(25)));
    }
}
