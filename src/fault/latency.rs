//! Requests are delayed.

use super::pipe::latency::Delays;
use super::{Dice, Distribution, Effect};
use crate::record;
use crate::time::{Share, Span};

record! {
    /// Requests are delayed on their way to the upstream; where bytes are relayed, each piece that a client sends.
    pub struct Latency {
        /// The delay.
        add: Span,
        /// By how much the delay varies: by U(−jitter, +jitter), or as `distribution` says. Never below zero.
        jitter: Span = Span::ZERO,
        /// How it varies.
        distribution: Distribution = Distribution::Uniform,
        /// The share of requests that it strikes; of connections, where bytes are relayed.
        share: Share = Share::ALL,
    }
}

impl Latency {
    pub(super) const fn delays(&self) -> Delays {
        Delays::new(self.add, self.jitter, self.distribution)
    }

    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if !dice.strikes_in_full(self.share) {
            return Effect::Pass;
        }
        // A ramp makes the delay grow, not the share.
        Effect::Delay(self.delays().draw(&mut dice.delay()).scale(dice.level()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_delays_its_share_by_its_delay() {
        let ms = Span::from_millis;
        let latency =
            Latency { add: ms(50), jitter: ms(10), distribution: Distribution::Uniform, share: Share::new(0.5).unwrap() };
        let effects: Vec<Effect> = (0..1_000).map(|n| latency.effect(Request::ours(0, n, 1).dice(1, 0))).collect();
        let delays: Vec<Span> = effects.iter().filter_map(|e| if let Effect::Delay(d) = e { Some(*d) } else { None }).collect();
        assert!((440..560).contains(&delays.len()), "{}", delays.len());
        assert!(delays.iter().all(|d| (ms(40)..=ms(60)).contains(d)));
        assert!(delays.iter().any(|d| *d < ms(45)) && delays.iter().any(|d| *d > ms(55)), "the jitter uses its range");
        assert!(effects.iter().all(|e| matches!(e, Effect::Delay(_) | Effect::Pass)));
        let whole = Latency { share: Share::ALL, jitter: ms(0), ..latency };
        assert_eq!(whole.effect(Request::ours(0, 1, 1).dice(1, 0).at_level(0.5)), Effect::Delay(ms(25)));
    }
}
