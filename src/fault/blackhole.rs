//! Data vanishes.

use super::{Dice, Effect, Harm, Strike, When};
use crate::record;
use crate::time::Share;

record! {
    /// Data vanishes in both directions, on live connections too; nothing is closed. The kernel still accepts new
    /// connections, because it does so without asking the proxy; nothing that is sent on them is answered.
    pub struct Blackhole {
        /// Before the upstream sees a request, or after it has done the work: then the answers alone vanish, to requests that come while it
        /// acts.
        when: When = When::Before,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
        /// Whether what it has taken goes on to the upstream when the fault ends.
        release: bool = false,
    } => |hole: &Blackhole| match (hole.when, hole.release) {
        (When::After, true) => Err("`release` lets go what was taken before the upstream saw it: leave it out with `when: after`".to_string()),
        _ => Ok(()),
    }
}

impl Blackhole {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        match (dice.strikes(self.share), self.when) {
            (false, _) => Effect::Pass,
            (true, When::Before) => Effect::Swallow { release: self.release },
            (true, When::After) => Effect::Harm(Harm::Lose),
        }
    }

    /// The answer to a request in flight vanishes on its way.
    pub(super) fn onset(&self, in_flight: Dice) -> Option<Strike> {
        let strikes = self.when == When::Before && in_flight.strikes(self.share);
        strikes.then_some(Strike::Swallow { release: self.release })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_takes_the_same_requests_at_its_onset_as_later() {
        let blackhole = Blackhole { share: Share::new(0.4).unwrap(), release: true, when: When::Before };
        let mut taken = 0;
        for n in 0..1_000 {
            let dice = Request::ours(0, n, 1).dice(1, 0);
            let later = blackhole.effect(dice) == Effect::Swallow { release: true };
            assert_eq!(blackhole.onset(dice) == Some(Strike::Swallow { release: true }), later);
            taken += u32::from(later);
        }
        assert!((340..460).contains(&taken), "{taken}");
    }

    #[test]
    fn after_the_work_it_takes_answers_alone() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let after = Blackhole { share: Share::ALL, release: false, when: When::After };
        assert_eq!((after.effect(dice), after.onset(dice)), (Effect::Harm(Harm::Lose), None));
    }
}
