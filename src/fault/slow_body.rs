//! Answers drip.

use super::{Dice, Effect, Harm};
use crate::record;
use crate::time::{Share, Span};

record! {
    /// The head of an answer passes at once, and its body in drops: each behind a pause.
    pub struct SlowBody {
        /// How many bytes pass at once.
        bytes: u32 = 1,
        /// The pause before each drop.
        every: Span,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    } => |slow: &SlowBody| match (slow.bytes, slow.every.is_zero()) {
        (0, _) => Err("`bytes` is 0: the answer would never end; use `blackhole` for that".to_string()),
        (_, true) => Err("`every` is nothing: the body would not be slow; such as `every: 100ms`".to_string()),
        _ => Ok(()),
    }
}

impl SlowBody {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if !dice.strikes_in_full(self.share) || dice.level() <= 0.0 {
            return Effect::Pass;
        }
        Effect::Harm(Harm::Drip { bytes: self.bytes.max(1), every: self.every.scale(dice.level()) })
    }
}

/// How long a body of this length takes at so many bytes behind each pause.
pub fn drip_time(length: u64, bytes: u32, every: Span) -> Span {
    every.times(length.div_ceil(bytes.max(1).into()))
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_takes_a_pause_for_each_drop() {
        let ms = Span::from_millis;
        let times: Vec<Span> = [0, 1, 3, 4].into_iter().map(|length| drip_time(length, 3, ms(10))).collect();
        assert_eq!(times, [ms(0), ms(10), ms(10), ms(20)]);
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let slow = |share| SlowBody { bytes: 2, every: ms(8), share }.effect(dice);
        assert_eq!(slow(Share::ALL), Effect::Harm(Harm::Drip { bytes: 2, every: ms(8) }));
        assert_eq!(slow(Share::default()), Effect::Pass);
        let ramping = SlowBody { bytes: 2, every: ms(8), share: Share::ALL }.effect(dice.at_level(0.25));
        assert_eq!(ramping, Effect::Harm(Harm::Drip { bytes: 2, every: ms(2) }));
    }
}
