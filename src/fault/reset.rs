//! Connections are reset.

use super::{Dice, Effect, Strike};
use crate::record;
use crate::time::Share;

record! {
    /// Connections are reset (RST): live ones when the fault begins, and each request that it strikes.
    pub struct Reset {
        /// The share of requests that it strikes; live and idle connections are reset at its start only at 100%.
        share: Share = Share::ALL,
    }
}

impl Reset {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if dice.strikes(self.share) { Effect::Reset } else { Effect::Pass }
    }

    /// A part of the requests has no part of the idle connections to go with it, so only all of them are reset.
    pub(super) fn onset(&self) -> Option<Strike> {
        (self.share == Share::ALL).then_some(Strike::Reset)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn a_share_strikes_requests_and_the_whole_strikes_connections_too() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let with = |share| Reset { share: Share::new(share).unwrap() };
        assert_eq!(with(1.0).effect(dice), Effect::Reset);
        assert_eq!(with(0.0).effect(dice), Effect::Pass);
        assert_eq!(with(1.0).onset(), Some(Strike::Reset));
        assert_eq!(with(0.99).onset(), None);
    }
}
