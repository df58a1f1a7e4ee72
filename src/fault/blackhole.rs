//! Data vanishes.

use super::{Dice, Effect, Strike};
use crate::record;
use crate::time::Share;

record! {
    /// Data vanishes in both directions, on live connections too; nothing is closed. The kernel still accepts new
    /// connections, because it does so without asking the proxy; nothing that is sent on them is answered.
    pub struct Blackhole {
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
        /// Whether what it has taken goes on to the upstream when the fault ends.
        release: bool = false,
    }
}

impl Blackhole {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if dice.strikes(self.share) { Effect::Swallow { release: self.release } } else { Effect::Pass }
    }

    /// The answer to a request in flight vanishes on its way.
    pub(super) fn onset(&self, in_flight: Dice) -> Option<Strike> {
        in_flight.strikes(self.share).then_some(Strike::Swallow { release: self.release })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_takes_the_same_requests_at_its_onset_as_later() {
        let blackhole = Blackhole { share: Share::new(0.4).unwrap(), release: true };
        let mut taken = 0;
        for n in 0..1_000 {
            let dice = Request::ours(0, n, 1).dice(1, 0);
            let later = blackhole.effect(dice) == Effect::Swallow { release: true };
            assert_eq!(blackhole.onset(dice) == Some(Strike::Swallow { release: true }), later);
            taken += u32::from(later);
        }
        assert!((340..460).contains(&taken), "{taken}");
    }
}
