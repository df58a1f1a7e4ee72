//! Connections are reset.

use super::{Dice, Effect, Harm, Strike, When};
use crate::record;
use crate::time::Share;

record! {
    /// Connections are reset (RST): live ones when the fault begins, and each request that it strikes.
    pub struct Reset {
        /// Before the upstream sees a request, or after it has done the work: then its answer is lost. Live connections are reset by the
        /// former alone.
        when: When = When::Before,
        /// The share of requests that it strikes; live and idle connections are reset at its start only at 100%.
        share: Share = Share::ALL,
    }
}

impl Reset {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        match (dice.strikes(self.share), self.when) {
            (false, _) => Effect::Pass,
            (true, When::Before) => Effect::Reset,
            (true, When::After) => Effect::Harm(Harm::Reset),
        }
    }

    /// Whether it ends live connections as it begins: a part of the requests has no part of the idle connections to go with it, so only
    /// all of them are reset.
    pub fn is_of_connections(&self) -> bool {
        self.share == Share::ALL && self.when == When::Before
    }

    pub(super) fn onset(&self) -> Option<Strike> {
        self.is_of_connections().then_some(Strike::Reset)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn a_share_strikes_requests_and_the_whole_strikes_connections_too() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let with = |share| Reset { share: Share::new(share).unwrap(), when: When::Before };
        assert_eq!(with(1.0).effect(dice), Effect::Reset);
        assert_eq!(with(0.0).effect(dice), Effect::Pass);
        assert_eq!(with(1.0).onset(), Some(Strike::Reset));
        assert_eq!(with(0.99).onset(), None);
        let after = Reset { when: When::After, ..with(1.0) };
        assert_eq!((after.effect(dice), after.onset()), (Effect::Harm(Harm::Reset), None));
    }
}
